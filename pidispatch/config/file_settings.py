"""The settings that name files of the operator's own."""

from pathlib import Path

from pydantic import field_validator
from pydantic_settings import BaseSettings

from pidispatch.config.field import setting
from pidispatch.config.kinds import PositiveInt
from pidispatch.config.zone import zone_of


class FileSettings(BaseSettings):
    """Part of `Settings`. What stands in a file is read by who needs it, and watched while it runs."""

    pause_windows_file: Path | None = setting(
        None,
        "PI_PAUSE_WINDOWS_FILE",
        "File of the quiet hours, in which no job starts. A worker does not start on one that is missing or invalid, "
        "and takes an edit over within a second.",
        unit="path",
        bound="a file; unset: no quiet hours",
        remedy="PI_PAUSE_WINDOWS_FILE=/etc/pi-dispatch/pause-windows.json",
    )

    triggers_file: Path | None = setting(
        None,
        "PI_TRIGGERS_FILE",
        "File of the triggers. Every worker with one starts the jobs of its schedules, each of them once, however many "
        "workers there are. A worker does not start on one that is missing or invalid, and takes an edit over within a "
        "second.",
        unit="path",
        bound="a file; unset or empty: no schedules",
        remedy="PI_TRIGGERS_FILE=/etc/pi-dispatch/triggers.json",
    )
    tz: str | None = setting(
        None,
        "PI_TZ",
        "Time zone of all schedules. Unset: that of the worker's machine.",
        unit="IANA name",
        bound="one that the machine knows",
        remedy="PI_TZ=Europe/Berlin",
    )

    scheduler_stall_max: PositiveInt = setting(
        2,
        "PI_SCHEDULER_STALL_MAX",
        "Jobs of one schedule that may be lost with their worker within 24 hours of each other. Beyond that the "
        "schedule starts no more, until its file is edited or a worker starts.",
        unit="jobs",
        bound="1 or more",
        remedy="PI_SCHEDULER_STALL_MAX=2",
    )

    @field_validator("tz", mode="after")
    @classmethod
    def _known_zone(cls, name: str | None) -> str | None:
        if name is not None:
            zone_of(name)
        return name

    @field_validator("pause_windows_file", mode="before")
    @classmethod
    def _named(cls, path: object) -> object:
        if path == "":
            raise ValueError("must name a file; unset it to have none")
        return path

    @field_validator("pause_windows_file", "triggers_file", mode="after")
    @classmethod
    def _absolute_path(cls, path: Path | None) -> Path | None:
        # Once for good: Celery's own command can change the current folder.
        return None if path is None else path.absolute()

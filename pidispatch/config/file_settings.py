"""The settings that name files of the operator's own."""

from pathlib import Path

from pydantic import field_validator
from pydantic_settings import BaseSettings

from pidispatch.config.field import setting


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

    @field_validator("pause_windows_file", mode="before")
    @classmethod
    def _named(cls, path: object) -> object:
        if path == "":
            raise ValueError("must name a file; unset it to have none")
        return path

    @field_validator("pause_windows_file", mode="after")
    @classmethod
    def _absolute_path(cls, path: Path | None) -> Path | None:
        # Once for good: Celery's own command can change the current folder.
        return None if path is None else path.absolute()

"""The operator's files that a worker reads at its start and takes over while it runs, and the gates made of them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pidispatch.config.log import log
from pidispatch.config.operator_file import refuse
from pidispatch.config.settings import Settings
from pidispatch.config.watched import FileName, WatchedFile
from pidispatch.gates.chain import Gate
from pidispatch.gates.pause import PauseWindows
from pidispatch.gates.pause_windows import parse_pause_windows
from pidispatch.triggers.file import parse_triggers
from pidispatch.values.limits import Limits
from pidispatch.worker.scheduler import Placed


class OperatorFiles:
    """Those that are configured. One that is not costs nothing: no thread, no gate, no event."""

    def __init__(self, settings: Settings, limits: Limits) -> None:
        self._limits = limits
        self._files: list[WatchedFile[Any]] = []
        #: The schedules in force, with their places in the file; `None` where no file is named.
        self.schedules: Callable[[], Sequence[Placed]] | None = None
        #: What a job passes before all other gates, in this order.
        self.first_gates: tuple[Gate, ...] = ()
        if (path := settings.pause_windows_file) is not None:
            windows = WatchedFile(
                path,
                FileName.PAUSE_WINDOWS,
                lambda text: parse_pause_windows(text, path),
                debounce_ms=limits.edit_debounce_ms,
                look_s=limits.file_look_s,
            )
            self._files.append(windows)
            self.first_gates = (PauseWindows(lambda: windows.value, limits),)
        if settings.triggers_file is not None:
            self.schedules = self._triggers(settings, settings.triggers_file)

    def _triggers(self, settings: Settings, path: Path) -> Callable[[], Sequence[Placed]]:
        # One who names his worker has several machines, whose folders differ.
        alone = "worker_name" not in settings.model_fields_set
        triggers = WatchedFile(
            path,
            FileName.TRIGGERS,
            lambda text: _served(text, path, alone=alone),
            debounce_ms=self._limits.edit_debounce_ms,
            look_s=self._limits.file_look_s,
        )
        self._files.append(triggers)
        return lambda: triggers.value

    def load(self) -> None:
        """Read them. Raises `ConfigError` for the first that is missing, unreadable or invalid."""
        for file in self._files:
            file.load()

    def start(self, edited: Callable[[], None]) -> None:
        """Watch them; `edited` is called after every edit, good or bad, by another thread."""
        for file in self._files:
            file.on_edit.append(edited)
            file.start()

    def stop(self) -> None:
        """Watch them no more."""
        for file in self._files:
            file.stop()

    def faulty(self) -> list[str]:
        """Names of the files whose newest content is not in force."""
        return [file.name.value for file in self._files if file.fault is not None]


def _served(text: str, path: Path, *, alone: bool) -> tuple[Placed, ...]:
    """The entries that this worker serves. Raises `ConfigError`, where it is `alone` also for a folder that is missing.

    With several machines such a folder is another one's.
    """
    entries = parse_triggers(text, path).schedules
    missing = [(index, one) for index, one in entries if not Path(one.run.folder).is_dir()]
    if missing and alone:
        refuse(
            path,
            [
                f'cron trigger "{one.on.id}", field "run.folder": there is no such folder. Make it, or name the one to '
                "work in"
                for _, one in missing
            ],
        )
    for _, one in missing:
        log().warning("schedule_unserved", scheduleId=one.on.id)
    return tuple(placed for placed in entries if placed not in missing)

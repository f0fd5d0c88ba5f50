"""The operator's files that a worker reads at its start and takes over while it runs, and the gates made of them."""

from collections.abc import Callable

from pidispatch.config.settings import Settings
from pidispatch.config.watched import FileName, WatchedFile
from pidispatch.gates.chain import Gate
from pidispatch.gates.pause import PauseWindows
from pidispatch.gates.pause_windows import PauseWindow, parse_pause_windows
from pidispatch.values.limits import Limits


class OperatorFiles:
    """Those that are configured. One that is not costs nothing: no thread, no gate, no event."""

    def __init__(self, settings: Settings, limits: Limits) -> None:
        self._limits = limits
        self._files: list[WatchedFile[tuple[PauseWindow, ...]]] = []
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

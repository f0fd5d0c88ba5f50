"""The quiet hours of the file that this environment names, as the verbs that look show them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from pidispatch.cli.view import error_console, note
from pidispatch.config.operator_file import read_text
from pidispatch.config.settings import load_only
from pidispatch.config.text import printable
from pidispatch.gates.pause_windows import PauseWindow, parse_pause_windows
from pidispatch.values.errors import ConfigError
from pidispatch.values.job import Job

VARIABLE: Final = "PI_PAUSE_WINDOWS_FILE"


@dataclass(frozen=True)
class Quiet:
    """One window of the file."""

    file: Path
    #: Its place there, from 0.
    index: int
    window: PauseWindow

    @property
    def hours(self) -> str:
        """As a person reads it."""
        return f"{self.window.from_:%H:%M}-{self.window.to:%H:%M} {self.window.tz.key}"


def quiet_hours() -> tuple[Quiet, ...]:
    """The windows of the file as it stands now; none where none is named. One that cannot be used is told, no more.

    A worker reads the file where it runs, and keeps what was good last.
    """
    path = load_only((VARIABLE,)).pause_windows_file
    if path is None:
        return ()
    try:
        windows = parse_pause_windows(read_text(path), path)
    except ConfigError as error:
        note(error_console(), f"the quiet hours are not known: {printable(error.message)}")
        return ()
    return tuple(Quiet(path, index, window) for index, window in enumerate(windows))


def holding(hours: Iterable[Quiet], job: Job, at: datetime) -> list[tuple[Quiet, datetime]]:
    """Those that keep `job` from starting at the aware instant `at`, each with its end in UTC."""
    kind, scope = job.kind.value, job.scope
    ends = ((one, one.window.end_at(at)) for one in hours if one.window.covers(kind, scope))
    return [(one, end) for one, end in ends if end is not None]

"""The index of the run records: a copy in SQLite of what the files say, so that a list need not read them all.

The files are the truth. The index knows of each file by which stamp it was read, so whoever looks knows which files it
does not describe and reads those themselves; where it cannot be used at all, the files are read. This module loads no
database: what does is imported where it is needed first (docs/reference/record.md).
"""

import contextlib
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pidispatch.config.log import log
from pidispatch.runs.recordfile import Unreadable, stamp_of
from pidispatch.runs.records import RecordStore
from pidispatch.values.errors import InfraError
from pidispatch.workspace.atomic import write_atomically

if TYPE_CHECKING:
    from pidispatch.runs.index_write import Writer

#: Files that a worker reads into the index when it clears up; more are left to `pi-dispatch runs --reindex`.
CLEAR_UP_FILES: Final = 2000
#: Lies in the records' folder where a record was written or removed and the index could not be told.
MARK: Final = ".index-behind"

#: What is wrong with an index, in words that continue `the index of the runs`.
MEANINGS: Final = {
    "absent": "is not there",
    "corrupt": "is damaged",
    "older": "was made by an older version",
    "newer": "was made by a newer version of pi-dispatch",
    "other-folder": "is of another PI_LOGS_DIR",
    "locked": "is locked by another program",
    "disk-full": "has no room on its disk",
    "read-only": "cannot be written",
    "unopenable": "cannot be opened",
    "unreadable": "cannot be read from its disk",
}


class IndexFault(Exception):
    """The index cannot be used."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        #: One word.
        self.cause = cause

    @property
    def meaning(self) -> str:
        """The cause in words that continue `the index of the runs`."""
        return MEANINGS.get(self.cause, f"cannot be used ({self.cause})")


@dataclass(frozen=True)
class Rebuilt:
    """What a rebuilding found."""

    records: int
    unreadable: tuple[Unreadable, ...]


def index_path(state_dir: Path) -> Path:
    """Where the index lies."""
    return state_dir / "index.sqlite"


def mark(folder: Path) -> None:
    """Leave word that some record of `folder` may not be as the index says. Raises `OSError`."""
    write_atomically(folder / MARK, b"", 0o600)


def marked(folder: Path) -> str | None:
    """The stamp of that word, which each time is another; `None` where there is none."""
    return stamp_of(folder / MARK)


def unmark(folder: Path, healed: str | None) -> None:
    """Take back the word that was found before everything was set right; a later one stays."""
    if healed is not None and marked(folder) == healed:
        (folder / MARK).unlink(missing_ok=True)


class RecordIndex:
    """The index as those keep it who write records. For many threads; one connection, opened by the first use.

    A fault is told to the log once, marks the records' folder, and stops nobody.
    """

    def __init__(self, state_dir: Path, folder: Path) -> None:
        self._state_dir = state_dir
        self._folder = folder
        self._lock = threading.Lock()
        self._writer: Writer | None = None
        self._fault: str | None = None

    def refresh(self, names: Collection[str]) -> None:
        """Read the files of these names anew: they were written or removed. Never raises."""
        self._keep(lambda writer: writer.refresh(names))

    def clear_up(self) -> None:
        """Set right what faults, killed programs and hands have left. Never raises."""
        if self._folder.is_dir():
            self._keep(lambda writer: writer.clear_up(CLEAR_UP_FILES))

    def rebuild(self, progress: Callable[[int, int], None]) -> Rebuilt:
        """Read every file anew, while others may write. `progress`: hears how many of how many are read.

        Raises `IndexFault`, and `InfraError` where the records cannot be listed.
        """
        with self._lock:
            return self._opened().rebuild(progress)

    def close(self) -> None:
        """Let go of the file; a later use opens it again."""
        with self._lock:
            self._close()

    def _keep(self, act: Callable[["Writer"], None]) -> None:
        with self._lock:
            try:
                act(self._opened())
            except Exception as error:
                # Nothing of an index is worth a job, or the record that has just been written.
                self._failed(error.cause if isinstance(error, IndexFault | InfraError) else type(error).__name__)
            else:
                if self._fault is not None:
                    log().info("index_usable")
                self._fault = None

    def _opened(self) -> "Writer":
        if self._writer is None:
            from pidispatch.runs.index_write import Writer

            self._writer = Writer(self._state_dir, RecordStore(self._folder))
        return self._writer

    def _failed(self, cause: str | None) -> None:
        self._close()
        try:
            mark(self._folder)
        except OSError:
            # Without that word an index that may say what is not so must not stay.
            with contextlib.suppress(OSError):
                index_path(self._state_dir).unlink()
        if cause != self._fault:
            log().warning("index_unusable", cause=cause)
        self._fault = cause

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._writer = None

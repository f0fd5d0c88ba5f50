"""The run records as files, one a job: written for good, read with doubt, and removed when they are old.

Where they lie, their mode and their keys are told on docs/reference/record.md.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from pidispatch.config.log import log
from pidispatch.config.private import private_folder
from pidispatch.config.text import printable
from pidispatch.runs.recordfile import Unreadable, open_regular, read_record, stamp_of
from pidispatch.values.epoch import to_us
from pidispatch.values.errors import DispatchError, InfraError
from pidispatch.values.reason import Reason
from pidispatch.values.record import RunRecord
from pidispatch.workspace.atomic import TEMPORARY, Place, write_atomically
from pidispatch.workspace.jobdir import sanitise

_VARIABLE = "PI_LOGS_DIR"
_DAY_S = 86_400
#: Room that is kept for the record of a run from before its first check: few are larger.
_ROOM_BYTES: Final = 4096
#: A record and the name of its file.
Found = tuple[str, RunRecord]


@dataclass(frozen=True)
class History:
    """What the folder holds."""

    #: Newest end first; those without an end last.
    records: tuple[RunRecord, ...]
    unreadable: tuple[Unreadable, ...]


#: What a run that counts as lost may still tell of itself.
_TELEMETRY: Final = ("exit_code", "turns", "tokens", "usage", "context")


def merged(standing: RunRecord | None, record: RunRecord) -> RunRecord:
    """The record of a job of which `standing` is kept and `record` is known beside it.

    A later attempt's takes the place of an earlier one's, and lists it. Of one attempt the first word stands, with one
    exception: what it lacks of its telemetry is filled in where it says `worker-lost`.
    """
    if standing is None:
        return record
    if record.attempt > standing.attempt:
        return record if record.attempts else record.model_copy(update={"attempts": standing.as_earlier})
    if record.attempt < standing.attempt or standing.reason != Reason.WORKER_LOST:
        return standing
    more = {name: getattr(record, name) for name in _TELEMETRY if getattr(standing, name) is None}
    return standing.model_copy(update=more)


def following(standing: RunRecord | None, record: RunRecord) -> RunRecord:
    """The record of an attempt that has ended here, of whose job `standing` is kept.

    It always counts. Where the server has forgotten earlier attempts, so that this one has the number of one of them,
    it is numbered on from what is kept.
    """
    if standing is None or record.attempt > standing.attempt or standing.started_at == record.started_at:
        return merged(standing, record)
    if any(one.started_at == record.started_at for one in standing.attempts):
        return standing
    return record.model_copy(update={"attempt": standing.attempt + 1, "attempts": standing.as_earlier})


class Index(Protocol):
    """What is told of files of records that were written or removed."""

    def refresh(self, names: Collection[str]) -> None:
        """Read the files of these names anew. Never raises."""
        ...


class RecordStore:
    """The records of `folder` and the kept output beside them. Nothing is touched before a method is called.

    `index`: hears of every file that this store puts or removes, right after it.
    """

    def __init__(self, folder: Path, index: Index | None = None) -> None:
        self.folder = folder
        self._index = index
        self._places: dict[str, Place] = {}

    def record_path(self, job_id: str) -> Path:
        """Where the record of a job lies; the id stands unchanged in the record alone."""
        return self.folder / f"{_stem(job_id)}.json"

    def log_path(self, job_id: str) -> Path:
        """Where the output of a job lies, if it was kept."""
        return self.folder / f"{_stem(job_id)}.log"

    def prepare(self) -> None:
        """Make the folder and prove that it can be written. Raises `InfraError`."""
        self._place().close()

    def reserve(self, job_id: str) -> None:
        """Make the folder and the file that this job's record will be, so that no run goes unrecorded.

        Its room is nobody else's until the record is written here, or `forgo` gives it up. Raises `InfraError`.
        """
        self.forgo(job_id)
        self._places[job_id] = self._place()

    def forgo(self, job_id: str) -> None:
        """Give up what was reserved and not written; does nothing where nothing is."""
        if (place := self._places.pop(job_id, None)) is not None:
            place.close()

    def _place(self) -> Place:
        self.make()
        try:
            return Place(self.folder, _ROOM_BYTES)
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise InfraError(
                f"{_VARIABLE}={self.folder} cannot be written: {why}. {self._consequence()}", "logs-dir"
            ) from None

    def make(self) -> None:
        """Make the folder, for one whose next step proves that it can be written. Raises `InfraError`."""
        try:
            private_folder(self.folder, _VARIABLE)
        except DispatchError as error:
            raise InfraError(f"{error.message}. {self._consequence()}", "logs-dir") from None

    def _consequence(self) -> str:
        return (
            "The record of the run could not be kept, so nothing is run. Name a folder of this account's own with "
            f"{_VARIABLE}, or mend this one"
        )

    def write(self, record: RunRecord, *, reserved: bool = True) -> Path:
        """Keep `record`, where its place is `reserved` in that; an earlier one of the same job is replaced.

        Raises `InfraError`.
        """
        path = self.record_path(record.job_id)
        try:
            self._put_at(path, record, reserved=reserved)
        except (OSError, ValueError) as error:
            reason = errno.errorcode.get(error.errno or 0, "OSError") if isinstance(error, OSError) else "not-json"
            with contextlib.suppress(OSError, ValueError):
                log().error("run_record_failed", jobId=_stem(record.job_id), reason=reason)
            raise InfraError(
                f"the run's record cannot be written to {path} ({reason}): make room there, or name another folder "
                f"with {_VARIABLE}",
                "record-unwritable",
            ) from None
        self._tell((path.name,))
        return path

    def _put_at(self, path: Path, record: RunRecord, *, reserved: bool) -> None:
        data = record.model_dump_json().encode() + b"\n"
        place = self._places.pop(record.job_id, None) if reserved else None
        if place is not None:
            # Whoever clears the folder up by hand may have removed it meanwhile.
            with contextlib.suppress(FileNotFoundError):
                return place.put(path, data, 0o600)
        return write_atomically(path, data, 0o600)

    def add(self, record: RunRecord) -> RunRecord:
        """Keep the record of an attempt that has ended here (`following`); what stands then. Raises `InfraError`."""
        return self._put(record, following)

    def keep(self, record: RunRecord) -> RunRecord:
        """Keep `record` as far as it says more than the one that stands (`merged`); the one that stands then.

        For one that is made later or elsewhere than where the job ran. Raises `InfraError`.
        """
        return self._put(record, merged)

    def _put(self, record: RunRecord, rule: Callable[[RunRecord | None, RunRecord], RunRecord]) -> RunRecord:
        standing = self.find(record.job_id)
        better = rule(standing, record)
        if better != standing:
            # One that is made later finds the place of the attempt that runs meanwhile, which is not its own.
            self.write(better, reserved=rule is following)
        else:
            # Whoever wrote it may have been killed before the index heard of it.
            self._tell((self.record_path(record.job_id).name,))
        return better

    def _tell(self, names: Collection[str]) -> None:
        if self._index is not None and names:
            self._index.refresh(names)

    def find(self, job_id: str) -> RunRecord | None:
        """The record of exactly this job; `None` where there is none that can be read."""
        record = read_record(self.record_path(job_id))
        # Two ids can share a file name.
        return record if isinstance(record, RunRecord) and record.job_id == job_id else None

    def all(self) -> History:
        """Every record. A file that holds none is told and stops no other. Raises `InfraError`."""
        found, unreadable = self.read_each(self.names())
        return History(newest_first(found), tuple(unreadable))

    def read_each(self, names: Iterable[str]) -> tuple[list[Found], list[Unreadable]]:
        """What the files of these names hold; one that is gone is left out."""
        found: list[Found] = []
        unreadable: list[Unreadable] = []
        for name in sorted(names):
            held = self.read(name)
            if isinstance(held, RunRecord):
                found.append((name, held))
            elif held is not None:
                unreadable.append(held)
        return found, unreadable

    def read(self, name: str) -> RunRecord | Unreadable | None:
        """What the file of this name holds; `None` where it is gone."""
        return read_record(self.folder / name)

    def stamp(self, name: str) -> str | None:
        """What changes with whatever is put in the place of the file of this name; `None` where it is gone."""
        return stamp_of(self.folder / name)

    def names(self) -> list[str]:
        """The names of all files that are named like a record, in no order. Raises `InfraError`."""
        try:
            return [name for name in os.listdir(self.folder) if name.endswith(".json")]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InfraError(
                f"{_VARIABLE}={self.folder} cannot be read: {error.strerror}. Name the folder of the run records with "
                f"{_VARIABLE}",
                "logs-dir",
            ) from None

    def open_log(self, job_id: str) -> BinaryIO | None:
        """The kept output of a job, to be read; `None` where none was kept. Raises `InfraError`."""
        path = self.log_path(job_id)
        try:
            return open_regular(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InfraError(f"{path} cannot be read: {error.strerror or error}", "log-unreadable") from None

    def sweep(self, now: datetime, days: int) -> None:
        """Remove records and kept output older than `days` days (0: none), and what a killed writer left. Never raises.

        Age is that of the file. Only regular files are removed, and nothing that is named otherwise.
        """
        try:
            with os.scandir(self.folder) as entries:
                found = list(entries)
        except FileNotFoundError:
            return
        except OSError as error:
            _skipped(error)
            return
        gone = []
        for entry in found:
            stays = _days(entry.name, days)
            if stays and _reap(entry, now.timestamp() - stays * _DAY_S) and entry.name.endswith(".json"):
                gone.append(entry.name)
        self._tell(gone)


def _days(name: str, days: int) -> int:
    """How many days a file of this name stays; 0: for ever."""
    if TEMPORARY.fullmatch(name):
        return 1
    return days if name.endswith((".json", ".log")) else 0


def _reap(entry: os.DirEntry[str], before: float) -> bool:
    """Remove what is older; whether it is removed."""
    try:
        facts = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(facts.st_mode) or facts.st_mtime >= before:
            return False
        os.unlink(entry.path)
    except FileNotFoundError:
        # Another sweep was here first.
        return False
    except OSError as error:
        _skipped(error)
        return False
    with contextlib.suppress(OSError, ValueError):
        log().info("reaped_log", file=printable(entry.name))
    return True


def _skipped(error: OSError) -> None:
    with contextlib.suppress(OSError, ValueError):
        log().warning("log_reaper_skipped", reason=errno.errorcode.get(error.errno or 0, type(error).__name__))


def _stem(job_id: str) -> str:
    return sanitise(job_id) or "unknown-job"


def microseconds(instant: datetime | None) -> int | None:
    """Microseconds since 1970 began in UTC."""
    return None if instant is None else to_us(instant)


def newest_first(found: Iterable[Found]) -> tuple[RunRecord, ...]:
    """By the end, else the start; those without either last, and those of one instant by the names of their files."""
    ordered = sorted(sorted(found, key=lambda one: one[0]), key=lambda one: _instant(one[1]), reverse=True)
    return tuple(record for _, record in ordered)


def _instant(record: RunRecord) -> tuple[bool, int]:
    instant = microseconds(record.ended_at or record.started_at)
    return (instant is not None, instant or 0)

"""The run records as files, one a job: written for good, read with doubt, and removed when they are old.

Where they lie, their mode and their keys are told on docs/reference/record.md.
"""

import contextlib
import errno
import json
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO, Final

from pidispatch.config.log import log
from pidispatch.config.private import private_folder
from pidispatch.config.text import printable
from pidispatch.values.errors import DispatchError, InfraError
from pidispatch.values.reason import Reason
from pidispatch.values.record import RunRecord
from pidispatch.workspace.atomic import TEMPORARY, write_atomically
from pidispatch.workspace.jobdir import sanitise

#: Bytes of a record file that are read; one of ours is a hundredth of it.
MAX_RECORD_BYTES: Final = 1024 * 1024
_VARIABLE = "PI_LOGS_DIR"
_DAY_S = 86_400
_PROBE = b"\n" * 4096
_MAX_FLOAT = Decimal(sys.float_info.max)
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
#: What a key that another version does not write stands for.
_ABSENT: Final = {
    **{str(field.alias): None for field in RunRecord.model_fields.values() if field.is_required()},
    "attempt": 1,
}


@dataclass(frozen=True)
class Unreadable:
    """A file that is named like a record and holds none."""

    file: str
    #: In words that continue a sentence beginning with its name.
    why: str


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


class _NoRecord(Exception):
    """Carries why a file holds no record."""


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


class RecordStore:
    """The records of `folder` and the kept output beside them. Nothing is touched before a method is called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def record_path(self, job_id: str) -> Path:
        """Where the record of a job lies; the id stands unchanged in the record alone."""
        return self.folder / f"{_stem(job_id)}.json"

    def log_path(self, job_id: str) -> Path:
        """Where the output of a job lies, if it was kept."""
        return self.folder / f"{_stem(job_id)}.log"

    def prepare(self) -> None:
        """Make the folder and prove that it can be written, so that no run goes unrecorded. Raises `InfraError`."""
        try:
            private_folder(self.folder, _VARIABLE)
            with tempfile.TemporaryFile(dir=self.folder, buffering=0) as probe:
                probe.write(_PROBE)
        except DispatchError as error:
            raise InfraError(f"{error.message}. {self._consequence()}", "logs-dir") from None
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise InfraError(
                f"{_VARIABLE}={self.folder} cannot be written: {why}. {self._consequence()}", "logs-dir"
            ) from None

    def _consequence(self) -> str:
        return (
            "The record of the run could not be kept, so nothing is run. Name a folder of this account's own with "
            f"{_VARIABLE}, or mend this one"
        )

    def write(self, record: RunRecord) -> Path:
        """Keep `record`; an earlier one of the same job is replaced. Raises `InfraError`."""
        path = self.record_path(record.job_id)
        try:
            write_atomically(path, record.model_dump_json().encode() + b"\n", 0o600)
        except (OSError, ValueError) as error:
            reason = errno.errorcode.get(error.errno or 0, "OSError") if isinstance(error, OSError) else "not-json"
            with contextlib.suppress(OSError, ValueError):
                log().error("run_record_failed", jobId=_stem(record.job_id), reason=reason)
            raise InfraError(
                f"the run's record cannot be written to {path} ({reason}): make room there, or name another folder "
                f"with {_VARIABLE}",
                "record-unwritable",
            ) from None
        return path

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
            self.write(better)
        return better

    def find(self, job_id: str) -> RunRecord | None:
        """The record of exactly this job; `None` where there is none that can be read."""
        try:
            record = _read(self.record_path(job_id))
        except _NoRecord:
            return None
        # Two ids can share a file name.
        return record if record.job_id == job_id else None

    def all(self) -> History:
        """Every record. A file that holds none is told and stops no other. Raises `InfraError`."""
        records: list[RunRecord] = []
        unreadable: list[Unreadable] = []
        for name in sorted(self._names()):
            try:
                records.append(_read(self.folder / name))
            except _NoRecord as error:
                unreadable.append(Unreadable(name, str(error)))
        records.sort(key=_end, reverse=True)
        return History(tuple(records), tuple(unreadable))

    def _names(self) -> list[str]:
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
            return _opened(path)
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
        for entry in found:
            if stays := _days(entry.name, days):
                _reap(entry, now.timestamp() - stays * _DAY_S)


def _days(name: str, days: int) -> int:
    """How many days a file of this name stays; 0: for ever."""
    if TEMPORARY.fullmatch(name):
        return 1
    return days if name.endswith((".json", ".log")) else 0


def _reap(entry: os.DirEntry[str], before: float) -> None:
    try:
        facts = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(facts.st_mode) or facts.st_mtime >= before:
            return
        os.unlink(entry.path)
    except FileNotFoundError:
        # Another sweep was here first.
        return
    except OSError as error:
        _skipped(error)
        return
    with contextlib.suppress(OSError, ValueError):
        log().info("reaped_log", file=printable(entry.name))


def _skipped(error: OSError) -> None:
    with contextlib.suppress(OSError, ValueError):
        log().warning("log_reaper_skipped", reason=errno.errorcode.get(error.errno or 0, type(error).__name__))


def _stem(job_id: str) -> str:
    return sanitise(job_id) or "unknown-job"


def _end(record: RunRecord) -> float:
    instant = record.ended_at or record.started_at
    return instant.timestamp() if instant else float("-inf")


def _opened(path: Path) -> BinaryIO:
    """A regular file, open; a link is not followed and a pipe not waited for. Raises `OSError`."""
    handle = os.open(path, _OPEN)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("not a regular file")
    return open(handle, "rb")


def _read(path: Path) -> RunRecord:
    """The record in a file. Raises `_NoRecord`, whatever the file holds."""
    try:
        with _opened(path) as file:
            # A read of the whole bound would cost its memory for each small file.
            data = file.read(min(os.fstat(file.fileno()).st_size, MAX_RECORD_BYTES) + 1)
    except (OSError, ValueError) as error:
        raise _NoRecord(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_RECORD_BYTES:
        raise _NoRecord(f"is larger than the {MAX_RECORD_BYTES} bytes of a run record")
    try:
        return _parsed(data)
    except (ValueError, ArithmeticError, RecursionError):
        raise _NoRecord("does not hold a run record, or not a whole one") from None


def _parsed(data: bytes) -> RunRecord:
    document = json.loads(data, parse_float=_number, parse_constant=_refuse)
    if not isinstance(document, dict):
        raise ValueError("not an object")
    # Keys of other versions are left out at every depth, and keys of this one that they lack are filled in.
    record = RunRecord.model_validate({**_ABSENT, **document}, extra="ignore")
    instants = {name: _utc(getattr(record, name)) for name in ("started_at", "ended_at")}
    return record.model_copy(update=instants)


def _utc(instant: datetime | None) -> datetime | None:
    if instant is None:
        return None
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)


def _number(text: str) -> Decimal:
    number = Decimal(text)
    # Past this a number is no measure of anything, and its digits written out could fill the memory.
    if not number.is_finite() or number.copy_abs() > _MAX_FLOAT:
        raise ValueError("out of range")
    return number


def _refuse(name: str) -> Decimal:
    raise ValueError(f"{name} is no JSON number")

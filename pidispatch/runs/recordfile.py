"""One run record's file, read with doubt: whatever it holds, what comes of it is a record or the reason why not."""

import json
import os
import stat
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO, Final

from pidispatch.values.record import RunRecord

#: Bytes of a record file that are read; one of ours is a hundredth of it.
MAX_RECORD_BYTES: Final = 1024 * 1024
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


class _NoRecord(Exception):
    """Carries why a file holds no record."""


def read_record(path: Path) -> RunRecord | Unreadable | None:
    """What a file holds; `None` where there is none."""
    try:
        return _read(path)
    except FileNotFoundError:
        return None
    except _NoRecord as error:
        return Unreadable(path.name, str(error))


def stamp_of(path: Path) -> str | None:
    """What changes with whatever is put in the place of a file; `None` where there is none, or none can be seen."""
    try:
        facts = path.lstat()
    except (OSError, ValueError):
        return None
    return f"{facts.st_ino}-{facts.st_mtime_ns}-{facts.st_size}"


def open_regular(path: Path) -> BinaryIO:
    """A regular file, open; a link is not followed and a pipe not waited for. Raises `OSError`."""
    handle = os.open(path, _OPEN)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("not a regular file")
    return open(handle, "rb")


def _read(path: Path) -> RunRecord:
    """The record in a file. Raises `_NoRecord`, whatever the file holds, and `FileNotFoundError`."""
    try:
        with open_regular(path) as file:
            # A read of the whole bound would cost its memory for each small file.
            data = file.read(min(os.fstat(file.fileno()).st_size, MAX_RECORD_BYTES) + 1)
    except FileNotFoundError:
        raise
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

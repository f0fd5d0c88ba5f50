"""The one writer of the triggers file: under its lock, whole or not at all, nothing that its reader would refuse, and
nothing in the place of what somebody saved meanwhile, with or without the lock.
"""

import contextlib
import errno
import itertools
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

from pidispatch.config.operator_file import parse_json, read_text
from pidispatch.config.text import printable
from pidispatch.triggers.file import parse_triggers
from pidispatch.triggers.lock import AT_ONCE, STALE_S, Lock, Patience, let_go, take
from pidispatch.values.errors import InfraError

__all__ = ["AT_ONCE", "Change", "Patience", "edit"]

#: Changes a parsed file in place; whether there is anything to write. What it raises leaves the file as it is. It is
#: called again, with the file as it then is, where that was changed meanwhile.
Change = Callable[[Any], bool]
#: How often a change is made anew because the file was changed meanwhile by somebody who asks for no lock.
_TRIES: Final = 3
_WRITABLE: Final = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
#: What a place says in which this file is not to be written, by whatever its owner arranged.
_READ_ONLY: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.EBUSY})
#: What tells one state of a file from the next. Mode and owner too, as what is written gets those that were found.
_SAME: Final = ("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns", "st_mode", "st_uid", "st_gid")
_numbers: Final = itertools.count()


def edit(path: Path, change: Change, patience: Patience = AT_ONCE) -> bool:
    """Let `change` change the file; whether it was written. Where `path` is a link, the file that it leads to.

    Everything that `change` leaves alone stays as it was read, fields that no version knows too; what is saved while
    it works is read again. Raises `ConfigError` (`operator-file`) for a file that is missing, cannot be read, or would
    not be valid afterwards; and `InfraError`: `triggers-locked` where somebody else writes it, `triggers-read-only`
    where this account may not, or not without giving it another owner, `triggers-unwritable`.
    """
    real = Path(os.path.realpath(path))
    with _locked(real, patience) as lock:
        for _ in range(_TRIES):
            with contextlib.suppress(_Changed):
                return _edit(real, change, lock)
    raise InfraError(
        f"{printable(str(real))} is not written: it was changed {_TRIES} times while this program worked on it. Try "
        "again once nobody edits it",
        "triggers-locked",
    )


class _Changed(Exception):
    """The file is not what was read any more."""


def _edit(path: Path, change: Change, lock: Lock) -> bool:
    """One try of `edit`. Raises `_Changed`, and what `edit` does."""
    try:
        # Before it is read: what is saved from here on is seen as a change, also where it was read already.
        before = _writable(path)
    except FileNotFoundError:
        # Says so, but where it has come just now.
        read_text(path)
        raise _Changed from None
    except OSError as error:
        _unwritable(path, error)
    document = parse_json(read_text(path), path, unique_keys=True)
    if not change(document):
        return False
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    parse_triggers(text, path)
    try:
        _replace(path, text.encode(), before, lock)
    except OSError as error:
        _unwritable(path, error)
    return True


def _writable(path: Path) -> os.stat_result:
    """The file as it is now. Raises `OSError`, also where its mode says that nobody may write it."""
    found = path.stat()
    if not found.st_mode & _WRITABLE:
        # A rename would go past the mode. Whoever took the right to write away from everybody meant it.
        raise PermissionError(errno.EACCES, "nobody has the right to write it")
    return found


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    """Whether it is one file with one content, mode and owner."""
    return all(getattr(one, name) == getattr(other, name) for name in _SAME)


@contextmanager
def _locked(path: Path, patience: Patience) -> Iterator[Lock]:
    """Hold the lock of the file `path`. Raises `InfraError`."""
    name = path.with_name(f"{path.name}.lock")
    try:
        with contextlib.suppress(FileNotFoundError):
            _writable(path)
        lock = take(name, patience)
    except OSError as error:
        _unwritable(path, error)
    if lock is None:
        raise InfraError(
            f"{printable(str(path))} is not written: another program writes it, whose lock is "
            f"{printable(name.name)} beside it. Try again; a lock that stays for longer than {STALE_S:.0f} seconds is "
            "taken away by the next try",
            "triggers-locked",
        )
    try:
        yield lock
    finally:
        let_go(lock)


def _replace(path: Path, data: bytes, before: os.stat_result, lock: Lock) -> None:
    """Put `data` in the place of the file that is as `before`, with its mode and owner.

    Raises `_Changed` where it is not any more, `OSError`, and `InfraError`.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{next(_numbers)}.tmp")
    # In a container every start has the same process id: what a killed one left is in the way.
    temporary.unlink(missing_ok=True)
    try:
        if not _write(temporary, data, before):
            raise InfraError(
                f"{printable(str(path))} cannot be written: this account cannot leave it with its owner and group "
                f"({before.st_uid}:{before.st_gid}), and who reads it by them could not any more. Run as its owner and "
                "in its group, or as root; or write it by hand",
                "triggers-read-only",
            )
        if not lock.holds():
            raise InfraError(
                f"{printable(str(path))} is not written: this program was stopped for so long that another one took "
                "its lock. Try again",
                "triggers-locked",
            )
        _rename(temporary, path, before)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    with contextlib.suppress(OSError):
        # The new name outlives a loss of power.
        _sync(path.parent)


def _write(temporary: Path, data: bytes, like: os.stat_result) -> bool:
    """Write a file with the mode and owner of `like`; `False` where it cannot be made that owner's and group's."""
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as file:
        if not _given(handle, like):
            return False
        os.fchmod(handle, stat.S_IMODE(like.st_mode) & 0o777)
        file.write(data)
        file.flush()
        os.fsync(handle)
    return True


def _given(handle: int, like: os.stat_result) -> bool:
    """Give an open file the owner and group of `like`; whether it has both."""

    def has() -> bool:
        made = os.fstat(handle)
        return (made.st_uid, made.st_gid) == (like.st_uid, like.st_gid)

    if not has():
        with contextlib.suppress(OSError):
            # An ordinary account gives nothing away, and a group only that it is in.
            os.fchown(handle, like.st_uid, like.st_gid)
    return has()


def _rename(temporary: Path, path: Path, before: os.stat_result) -> None:
    """Raises `_Changed`, and `OSError`."""
    _unchanged(path, before)
    try:
        os.replace(temporary, path)
    except PermissionError:
        # A scanner that looks into the file may hold it for a moment.
        _unchanged(path, before)
        os.replace(temporary, path)


def _unchanged(path: Path, before: os.stat_result) -> None:
    """Raise `_Changed` where the file is not as `before`, or gone."""
    with contextlib.suppress(FileNotFoundError):
        if _same(path.stat(), before):
            return
    raise _Changed


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unwritable(path: Path, error: OSError) -> NoReturn:
    name, why = printable(str(path)), error.strerror or type(error).__name__
    if error.errno in _READ_ONLY:
        raise InfraError(
            f"{name} cannot be written: {why}. Make file and folder writable for this account, or write it by hand",
            "triggers-read-only",
        ) from None
    raise InfraError(
        f"{name} cannot be written: {why}. Check free space, owner and mode of its folder", "triggers-unwritable"
    ) from None

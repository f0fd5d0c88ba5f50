"""The one writer of the triggers file: under a lock, whole or not at all, and nothing that its reader would refuse.

The lock is a file beside it. People and other programs can make one too, so what decides is that it exists; a writer
that was killed leaves it, and after a while the next one takes it away.
"""

import contextlib
import errno
import itertools
import json
import os
import random
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from pidispatch.config.flock import try_exclusive
from pidispatch.config.log import log
from pidispatch.config.operator_file import parse_json, read_text
from pidispatch.config.text import printable
from pidispatch.triggers.file import parse_triggers
from pidispatch.values.errors import InfraError

#: Changes a parsed file in place; whether there is anything to write. What it raises leaves the file as it is.
Change = Callable[[Any], bool]
#: Seconds after which a lock is taken for one of a writer that was killed.
STALE_S: Final = 10.0
_WRITABLE: Final = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
#: What a place says in which this file is not to be written, by whatever its owner arranged.
_READ_ONLY: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.EBUSY})
_numbers: Final = itertools.count()


@dataclass(frozen=True)
class Patience:
    """How often a lock that somebody holds is tried, and for how many seconds a writer sleeps in between."""

    tries: int = 1
    shortest_s: float = 0.1
    longest_s: float = 0.3
    sleep: Callable[[float], None] = time.sleep
    between: Callable[[float, float], float] = random.uniform

    def pause(self) -> None:
        """Sleep before the next try."""
        self.sleep(self.between(self.shortest_s, self.longest_s))


#: For a person who waits for the answer.
AT_ONCE: Final = Patience()


def edit(path: Path, change: Change, patience: Patience = AT_ONCE) -> bool:
    """Let `change` change the file; whether it was written. Where `path` is a link, the file that it leads to.

    Everything that `change` leaves alone stays as it was read, fields that no version knows too. Raises `ConfigError`
    (`operator-file`) for a file that is missing, cannot be read, or would not be valid afterwards; and `InfraError`:
    `triggers-locked` where somebody else writes it, `triggers-read-only` where nobody may, `triggers-unwritable`.
    """
    real = Path(os.path.realpath(path))
    with _locked(real, patience) as lock:
        document = parse_json(read_text(real), real, unique_keys=True)
        if not change(document):
            return False
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        parse_triggers(text, real)
        try:
            _replace(real, text.encode(), lock)
        except OSError as error:
            _unwritable(real, error)
    return True


@dataclass(frozen=True)
class _Lock:
    """A lock file that this writer made; open, so that no other file can be taken for it."""

    path: Path
    handle: int

    def holds(self) -> bool:
        """Whether nobody has taken it away."""
        try:
            return os.path.samestat(os.lstat(self.path), os.fstat(self.handle))
        except FileNotFoundError:
            return False


@contextmanager
def _locked(path: Path, patience: Patience) -> Iterator[_Lock]:
    """Hold the lock of the file `path`. Raises `InfraError`."""
    name = path.with_name(f"{path.name}.lock")
    try:
        if path.exists() and not path.stat().st_mode & _WRITABLE:
            # A rename would go past the mode. Whoever took the right to write away from everybody meant it.
            raise PermissionError(errno.EACCES, "nobody has the right to write it")
        lock = _take(name, patience)
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
        _let_go(lock)


def _take(name: Path, patience: Patience) -> _Lock | None:
    """The lock; `None` where somebody holds it for as long as is waited. Raises `OSError`."""
    for left in reversed(range(patience.tries)):
        lock = _make(name) or (_make(name) if _clear_stale(name) else None)
        if lock is not None:
            return lock
        if left:
            patience.pause()
    return None


def _make(name: Path) -> _Lock | None:
    try:
        return _Lock(name, os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
    except FileExistsError:
        return None


def _clear_stale(name: Path) -> bool:
    """Take a lock away that is too old to be anybody's; whether there is none now. Raises `OSError`."""
    # One at a time: a second one would take away the lock that the first one has made meanwhile.
    with _alone(name.parent) as alone:
        if not alone:
            return False
        try:
            age = time.time() - os.lstat(name).st_mtime
            if age <= STALE_S:
                return False
            os.unlink(name)
        except FileNotFoundError:
            return True
    log().warning("triggers_lock_stale_taken", ageMs=round(age * 1000))
    return True


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Whether nobody else is in this block. A file system without such locks lets everybody in."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        alone = True
        with contextlib.suppress(InfraError):
            alone = try_exclusive(handle)
        yield alone
    finally:
        os.close(handle)


def _let_go(lock: _Lock) -> None:
    try:
        if lock.holds():
            os.unlink(lock.path)
    except OSError as error:
        log().error("triggers_lock_stuck", reason=errno.errorcode.get(error.errno or 0, type(error).__name__))
    finally:
        os.close(lock.handle)


def _replace(path: Path, data: bytes, lock: _Lock) -> None:
    """Put `data` in the place of the file, with its mode and owner. Raises `OSError`, and `InfraError`."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{next(_numbers)}.tmp")
    # In a container every start has the same process id: what a killed one left is in the way.
    temporary.unlink(missing_ok=True)
    try:
        _write(temporary, data, path.stat())
        if not lock.holds():
            raise InfraError(
                f"{printable(str(path))} is not written: this program was stopped for so long that another one took "
                "its lock. Try again",
                "triggers-locked",
            )
        _rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    with contextlib.suppress(OSError):
        # The new name outlives a loss of power.
        _sync(path.parent)


def _write(temporary: Path, data: bytes, like: os.stat_result) -> None:
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as file:
        with contextlib.suppress(OSError):
            # Not an ordinary account's to give away.
            os.fchown(handle, like.st_uid, like.st_gid)
        os.fchmod(handle, stat.S_IMODE(like.st_mode) & 0o777)
        file.write(data)
        file.flush()
        os.fsync(handle)


def _rename(temporary: Path, path: Path) -> None:
    try:
        os.replace(temporary, path)
    except PermissionError:
        # A scanner that looks into the file may hold it for a moment.
        os.replace(temporary, path)


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

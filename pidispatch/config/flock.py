"""Locks of files that the kernel gives up with the last process that holds them, however that ends.

Unlike a library's they can be shared, and handed on to a started program.
https://man7.org/linux/man-pages/man2/flock.2.html
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pidispatch.values.errors import InfraError

#: Seconds between two looks at what is waited for.
_PACE_S: Final = 0.02


def until(holds: Callable[[], bool], seconds: float) -> bool:
    """Whether `holds` came true within so many seconds; it is asked at least once."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PACE_S)
    return True


def open_lock(path: Path) -> int:
    """A descriptor of the lock file, made when absent; each one is a holder of its own. Raises `InfraError`."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise InfraError(f"the lock {path} cannot be opened: {error.strerror}", "lock-unusable") from None


def try_exclusive(lock: int) -> bool:
    """Whether `lock` is held by this descriptor alone now. A shared hold of it is lost where not."""
    return _try(lock, fcntl.LOCK_EX)


def try_shared(lock: int) -> bool:
    """Whether this descriptor is among the holders of `lock` now."""
    return _try(lock, fcntl.LOCK_SH)


def _try(lock: int, how: int) -> bool:
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        # A network's file system may have none.
        raise InfraError(
            f"the file system of the lock's folder has no locks: {error.strerror}", "lock-unusable"
        ) from None
    return True


def is_held(path: Path) -> bool:
    """Whether any process holds the lock of the file `path`, which need not exist."""
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        return not try_exclusive(lock)
    finally:
        os.close(lock)


@contextmanager
def gate(path: Path, seconds: float) -> Iterator[None]:
    """One at a time, of threads too, gets through. Raises `InfraError` (cause `lock-held`) after so many seconds."""
    lock = open_lock(path)
    try:
        if not until(lambda: try_exclusive(lock), seconds):
            raise InfraError(f"{path} stays locked by another process", "lock-held")
        yield
    finally:
        os.close(lock)

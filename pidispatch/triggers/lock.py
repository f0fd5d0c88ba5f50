"""The lock of the triggers file: a file beside it. People and other programs can make one too, so what decides is that
it exists; a writer that was killed leaves it, and after a while the next one takes it away.
"""

import contextlib
import errno
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pidispatch.config.flock import try_exclusive
from pidispatch.config.log import log
from pidispatch.values.errors import InfraError

#: Seconds after which a lock is taken for one of a writer that was killed.
STALE_S: Final = 10.0


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


@dataclass(frozen=True)
class Lock:
    """A lock file that this writer made; open, so that no other file can be taken for it."""

    path: Path
    handle: int

    def holds(self) -> bool:
        """Whether nobody has taken it away."""
        try:
            return os.path.samestat(os.lstat(self.path), os.fstat(self.handle))
        except FileNotFoundError:
            return False


def take(name: Path, patience: Patience) -> Lock | None:
    """The lock; `None` where somebody holds it for as long as is waited. Raises `OSError`."""
    for left in reversed(range(patience.tries)):
        lock = _make(name) or (_make(name) if _clear_stale(name) else None)
        if lock is not None:
            return lock
        if left:
            patience.pause()
    return None


def _make(name: Path) -> Lock | None:
    try:
        return Lock(name, os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
    except FileExistsError:
        return None


def _clear_stale(name: Path) -> bool:
    """Take a lock away that is too old to be anybody's; whether there is none now. Raises `OSError`.

    One from the future is too: a clock that was set back would keep it for as long as that.
    """
    # One at a time: a second one would take away the lock that the first one has made meanwhile.
    with _alone(name.parent) as alone:
        if not alone:
            return False
        try:
            age = time.time() - os.lstat(name).st_mtime
            if abs(age) <= STALE_S:
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


def let_go(lock: Lock) -> None:
    """Remove the lock. One that cannot be is told, and in nobody's way for longer than a stale one."""
    try:
        if lock.holds():
            os.unlink(lock.path)
    except OSError as error:
        log().error("triggers_lock_stuck", reason=errno.errorcode.get(error.errno or 0, type(error).__name__))
    finally:
        os.close(lock.handle)

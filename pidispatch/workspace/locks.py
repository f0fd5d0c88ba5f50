"""Who works where: a lock that the kernel gives up with its process, however that ends.

https://py-filelock.readthedocs.io/
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from pidispatch.values.errors import InfraError
from pidispatch.workspace.private import private_folder

_GATE = ".gate"
#: Seconds to wait at the gate, which is never held for longer than a look around.
_GATE_S = 30.0


def try_lock(path: Path) -> FileLock | None:
    """The lock of the file `path`, made when absent; `None` while another process holds it. Raises `OSError`."""
    lock = FileLock(path, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        return None
    return lock


@contextmanager
def gate(folder: Path) -> Iterator[None]:
    """One at a time may make, take or look for locks in `folder`. Raises `InfraError` (cause `lock-held`)."""
    lock = FileLock(folder / _GATE, timeout=_GATE_S, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise InfraError(f"{folder / _GATE} stays locked by another process", "lock-held") from None
    try:
        yield
    finally:
        lock.release()


def overlap(one: Path, other: Path) -> bool:
    """Whether one of two folders lies in the other, or both are the same."""
    return one.is_relative_to(other) or other.is_relative_to(one)


def hold_folder(state_dir: Path, folder: Path) -> FileLock:
    """The lock of an operator's folder, which one run at a time may hold; `folder` has its links resolved.

    A folder that lies in another one, or around it, is held with it: an agent in the outer one could rewrite the inner
    one's repository. Raises `InfraError` (cause `folder-busy`) while another run works there.
    """
    locks = private_folder(private_folder(state_dir, "PI_STATE_DIR") / "locks", "PI_STATE_DIR")
    try:
        with gate(locks):
            return _hold(locks, folder)
    except OSError as error:
        raise InfraError(f"the lock of the folder cannot be taken: {error.strerror}", "folder-lock") from None


def _hold(locks: Path, folder: Path) -> FileLock:
    facts = folder.stat()
    # By what it is: a folder can be mounted at a second place.
    name = hashlib.sha256(f"{facts.st_dev}:{facts.st_ino}".encode()).hexdigest()[:16]
    own = locks / f"folder-{name}.lock"
    for path in locks.glob("folder-*.lock"):
        if path == own or not overlap(_place(path), folder):
            continue
        if (lock := try_lock(path)) is None:
            raise _busy(_place(path))
        lock.release()
    held = try_lock(own)
    if held is None:
        raise _busy(folder)
    own.with_suffix(".path").write_bytes(os.fsencode(folder))
    return held


def _place(lock: Path) -> Path:
    """The folder that a lock is of, as its holder wrote it down."""
    try:
        return Path(os.fsdecode(lock.with_suffix(".path").read_bytes()) or "/nonexistent")
    except FileNotFoundError:
        return Path("/nonexistent")


def _busy(folder: Path) -> InfraError:
    return InfraError(
        f"another run works in {folder.name!r}; two at a time would spoil each other's work. Wait for its end",
        "folder-busy",
    )

"""Who works where: a lock that the kernel gives up with its process, however that ends.

https://py-filelock.readthedocs.io/
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from pidispatch.config.private import private_folder
from pidispatch.values.errors import ConfigError, InfraError

_GATE = ".gate"
_RUN_LOCKS = Path("/run/lock")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
#: Seconds to wait at the gate, which is never held for longer than a look around.
_GATE_S = 30.0


def try_lock(path: Path) -> FileLock | None:
    """The lock of the file `path`, made when absent; `None` while another process holds it. Raises `OSError`."""
    return _taken(FileLock(path, timeout=0, thread_local=False))


def _taken(lock: FileLock) -> FileLock | None:
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


def engine_lock(engine_id: str, folders: Sequence[Path] = ()) -> FileLock:
    """The lock of a container engine, which one worker at a time may serve: its reaper ends what no other one runs.

    Looked for in `/run/lock`, else in the temporary folder, so that workers of all accounts and deployments meet.
    Raises `ConfigError` where another worker has it (cause `engine-taken`), or where what lies in its place can be
    locked by nobody (`engine-lock`), and `InfraError` where no folder can hold it.
    """
    name = f"pi-dispatch-{_UNSAFE.sub('_', engine_id) or 'unnamed'}.lock"
    # A folder that is not there is passed over: the lock would make it, for this account alone.
    for path in (folder / name for folder in folders or _engine_folders() if folder.is_dir()):
        try:
            # A worker of another account must be able to lock the file that this one makes.
            lock = _taken(FileLock(path, timeout=0, mode=0o666, thread_local=False))
        except OSError as error:
            if os.path.lexists(path):
                raise _unlockable(path, error) from None
            continue
        if lock is None:
            raise ConfigError(
                f"another worker serves this container engine: it holds {path}. End that one, or name another engine "
                "with DOCKER_HOST",
                "engine-taken",
            )
        return lock
    raise InfraError(
        f"the lock of the container engine can be made neither in {_RUN_LOCKS} nor in the temporary folder. Check "
        "their modes, or name another one with TMPDIR",
        "engine-lock",
    )


def _engine_folders() -> tuple[Path, ...]:
    return (_RUN_LOCKS, Path(tempfile.gettempdir()))


def _unlockable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"{path} cannot be locked ({error.strerror}), so nobody can tell whether another worker serves this engine. "
        "Another account has put it there: end what uses it and remove the file",
        "engine-lock",
    )


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

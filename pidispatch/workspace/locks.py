"""Who works where: a lock that the kernel gives up with its process, however that ends.

https://py-filelock.readthedocs.io/
"""

import fcntl
import hashlib
import os
import re
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from filelock import FileLock, Timeout

from pidispatch.config.flock import until
from pidispatch.config.private import private_folder
from pidispatch.values.errors import ConfigError, InfraError

_GATE = ".gate"
_RUN_LOCKS = Path("/run/lock")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
#: Seconds to wait at the gate, which is never held for longer than a look around.
_GATE_S = 30.0
#: Seconds until a locked engine counts as another worker's: `pi-dispatch check` holds the lock for a moment.
_TAKEN_S: Final = 1.0
_OPEN: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
#: Bytes of a path that is read; the kernel takes none that is longer.
_PATH_BYTES: Final = 4096
#: What the threads of this program wait at, by folder: at the file alone they would look again and again.
_threads: Final[dict[Path, threading.Lock]] = {}


class Lock:
    """A locked file. It stays when the lock is given up."""

    def __init__(self, handle: int) -> None:
        self._handle: int | None = handle

    def release(self) -> None:
        """Give it up; a second time changes nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            # Said, and not only closed: a program that is being started at this moment still has the descriptor too.
            fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def try_lock(path: Path) -> Lock | None:
    """The lock of the file `path`, made when absent; `None` while another holds it. Raises `OSError`."""
    handle = os.open(path, _OPEN, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError:
        os.close(handle)
        raise
    return Lock(handle)


@contextmanager
def gate(folder: Path) -> Iterator[None]:
    """One at a time may make, take or look for locks in `folder`. Raises `InfraError` (cause `lock-held`)."""
    path = folder / _GATE
    threads = _threads.setdefault(folder, threading.Lock())
    if not threads.acquire(timeout=_GATE_S):
        raise InfraError(f"{path} stays locked by another thread", "lock-held")
    try:
        with _locked(path):
            yield
    finally:
        threads.release()


def _locked(path: Path) -> Lock:
    """The lock of a gate, waited for."""
    held: list[Lock] = []

    def taken() -> bool:
        if (lock := try_lock(path)) is not None:
            held.append(lock)
        return lock is not None

    if not until(taken, _GATE_S):
        raise InfraError(f"{path} stays locked by another process", "lock-held")
    return held[0]


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
            lock = FileLock(path, timeout=_TAKEN_S, mode=0o666, thread_local=False)
            lock.acquire()
        except Timeout:
            raise _engine_taken(path) from None
        except OSError as error:
            if os.path.lexists(path):
                raise _unlockable(path, error) from None
            continue
        return lock
    raise InfraError(
        f"the lock of the container engine can be made neither in {_RUN_LOCKS} nor in the temporary folder. Check "
        "their modes, or name another one with TMPDIR",
        "engine-lock",
    )


def _engine_taken(path: Path) -> ConfigError:
    return ConfigError(
        f"another worker serves this container engine: it holds {path}. End that one, or name another engine with "
        "DOCKER_HOST",
        "engine-taken",
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
    """Whether one of two absolute folders lies in the other, or both are the same."""
    # By their letters: every job is compared with every folder there ever was, and pathlib takes ten times as long.
    first, second = (f"{str(path).rstrip('/')}/" for path in (one, other))
    return first.startswith(second) or second.startswith(first)


def hold_folder(state_dir: Path, folder: Path) -> Lock:
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


def _hold(locks: Path, folder: Path) -> Lock:
    facts = folder.stat()
    # By what it is: a folder can be mounted at a second place.
    name = hashlib.sha256(f"{facts.st_dev}:{facts.st_ino}".encode()).hexdigest()[:16]
    own = locks / f"folder-{name}.lock"
    for found in os.listdir(locks):
        if not found.startswith("folder-") or not found.endswith(".lock") or found == own.name:
            continue
        path = locks / found
        if not overlap(_place(path), folder):
            continue
        if (lock := try_lock(path)) is None:
            raise _busy(_place(path))
        lock.release()
    held = try_lock(own)
    if held is None:
        raise _busy(folder)
    if _place(own) != folder:
        own.with_suffix(".path").write_bytes(os.fsencode(folder))
    return held


def _place(lock: Path) -> Path:
    """The folder that a lock is of, as its holder wrote it down."""
    try:
        handle = os.open(lock.with_suffix(".path"), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Path("/nonexistent")
    # Without a file object, which takes three times as many calls: each run reads that of every folder there ever was.
    try:
        return Path(os.fsdecode(os.read(handle, _PATH_BYTES)) or "/nonexistent")
    finally:
        os.close(handle)


def _busy(folder: Path) -> InfraError:
    return InfraError(
        f"another run works in {folder.name!r}; two at a time would spoil each other's work. Wait for its end",
        "folder-busy",
    )

"""Who works where: a lock that the kernel gives up with its process, however that ends.

https://py-filelock.readthedocs.io/
"""

import hashlib
from pathlib import Path

from filelock import FileLock, Timeout

from pidispatch.values.errors import InfraError
from pidispatch.workspace.jobdir import private_folder


def try_lock(path: Path) -> FileLock | None:
    """The lock of the file `path`, made when absent; `None` while another process holds it. Raises `OSError`."""
    lock = FileLock(path, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        return None
    return lock


def hold_folder(state_dir: Path, folder: Path) -> FileLock:
    """The lock of an operator's folder, which one run at a time may hold; `folder` has its links resolved.

    Raises `InfraError` (cause `folder-busy`) while another run works there.
    """
    locks = private_folder(private_folder(state_dir, "PI_STATE_DIR") / "locks", "PI_STATE_DIR")
    name = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    try:
        lock = try_lock(locks / f"folder-{name}.lock")
    except OSError as error:
        raise InfraError(f"the lock of the folder cannot be taken: {error.strerror}", "folder-lock") from None
    if lock is None:
        raise InfraError(
            f"another run works in {folder.name!r}; two at a time would spoil each other's work. Wait for its end",
            "folder-busy",
        )
    return lock

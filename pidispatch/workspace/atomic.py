"""The one way this house replaces a file: a reader sees the old content or the new one whole, never a part."""

import contextlib
import os
import re
import tempfile
from pathlib import Path
from typing import Final

_PREFIX = ".tmp-"
#: Names of files that a writer who was killed can leave behind.
TEMPORARY: Final = re.compile(re.escape(_PREFIX) + r"[a-z0-9_]{8}")


def write_atomically(path: Path, data: bytes, mode: int) -> None:
    """Put `data` at `path` with `mode`, on disk when this returns. A link at `path` is replaced, never followed.

    Raises `OSError`; the old content is then still there.
    """
    # Beside its target: a rename is atomic within one file system only.
    handle, name = tempfile.mkstemp(prefix=_PREFIX, dir=path.parent)
    try:
        try:
            os.fchmod(handle, mode)
            _write_all(handle, data)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    _sync_folder(path.parent)


def prove_room(folder: Path, size: int) -> None:
    """Put a file of `size` bytes into `folder` and take it away again. Raises `OSError` where there is no room for it.

    By its name, and that taken away before it is closed: a file that never has a name takes the kernel five times as
    long. One that a killed program leaves is named as any other temporary one.
    """
    handle, name = tempfile.mkstemp(prefix=_PREFIX, dir=folder)
    try:
        _write_all(handle, b"\n" * size)
    finally:
        os.unlink(name)
        os.close(handle)


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _sync_folder(folder: Path) -> None:
    """Make the new name outlive a loss of power. The file is in place either way, so a refusal ends nothing."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

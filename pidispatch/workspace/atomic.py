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
    Place(path.parent).put(path, data, mode)


class Place:
    """A temporary file in `folder` that becomes another one: `size` bytes of room are its own from the beginning.

    One that a killed program leaves can be told by its name. Raises `OSError` where there is no room for it.
    """

    def __init__(self, folder: Path, size: int = 0) -> None:
        # Beside its target: a rename is atomic within one file system only. And with a name: a file that never has one
        # takes the kernel five times as long.
        self._handle, self._name = tempfile.mkstemp(prefix=_PREFIX, dir=folder)
        self._size = size
        if not size:
            return
        try:
            _write_all(self._handle, b"\n" * size)
            os.lseek(self._handle, 0, os.SEEK_SET)
        except BaseException:
            self.close()
            raise

    def put(self, path: Path, data: bytes, mode: int) -> None:
        """Become the file at `path`, as `write_atomically` says; once. Raises `OSError`, and is gone then."""
        handle, self._handle = self._handle, -1
        try:
            try:
                os.fchmod(handle, mode)
                _write_all(handle, data)
                if self._size > len(data):
                    os.ftruncate(handle, len(data))
                os.fsync(handle)
            finally:
                os.close(handle)
            os.replace(self._name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(self._name)
            raise
        _sync_folder(path.parent)

    def close(self) -> None:
        """Take it away where it has become nothing; a second time changes nothing."""
        handle, self._handle = self._handle, -1
        if handle < 0:
            return
        with contextlib.suppress(OSError):
            os.unlink(self._name)
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

"""Files that the job may read and not write, made by the host: never through a name that is there already."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from pidispatch.values.errors import InfraError


def write_read_only(target: Path, files: Mapping[PurePosixPath, bytes], give: Callable[[Path], None]) -> None:
    """Write `files` below `target`, which is made when there are any.

    Folders get mode 0755 and files 0444; `give` hands each path to the job's user. The names are relative and of
    checked parts. Raises `InfraError`.
    """
    folders = {target / folder for path in files for folder in path.parents}
    try:
        for folder in sorted(folders):
            folder.mkdir()
            # Not left to the umask: the job's user may be another one.
            folder.chmod(0o755)
            give(folder)
        for path, content in files.items():
            _write_file(target / path, content)
            give(target / path)
    except OSError as error:
        raise InfraError(f"the job's inputs cannot be written: {error.strerror}", "job-dir") from None


def _write_file(path: Path, content: bytes) -> None:
    # Exclusive, so that no name already there is followed or overwritten.
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o400)) as file:
        file.write(content)
        os.fchmod(file.fileno(), 0o444)

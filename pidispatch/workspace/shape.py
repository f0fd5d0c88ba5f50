"""The shape of a folder's git directory, looked at before git is: what an agent plants must not lead us elsewhere.

Git opens whatever lies at its own names: a pipe holds it up for ever, a link leads it out of the folder, a file of a
terabyte fills the memory. So each name that host git will open is looked at first, before a run and again after it
(docs/explanation/host-git.md).
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.workspace.dirfd import read_file
from pidispatch.workspace.folder import Folder

_HEAD_BYTES = 4096
_SMALL_BYTES = 1024 * 1024
_PACKED_REFS_BYTES = 256 * 1024 * 1024
#: Bounds of what is read of the references.
_REF_ENTRIES = 50_000
_REF_DEPTH = 32
_REF_BYTES = 64 * 1024


def check_shape(folder: Folder) -> Path:
    """The folder's object directory. Raises `ConfigError` where the git directory is none that host git may open.

    Cause `worktree`: it lies or leads outside the folder. Cause `git-unusable`: something in it is not what it should
    be. `InfraError` where it cannot be examined.
    """
    git_dir = folder.git_dir
    facts = _lstat(git_dir)
    if facts is None or not stat.S_ISDIR(facts.st_mode) or _lstat(git_dir / "commondir") is not None:
        raise _outside(folder, "the git directory lies outside the folder (a linked worktree or a submodule)")
    _require_file(folder, "HEAD", _HEAD_BYTES, needed=True)
    _require_file(folder, "packed-refs", _PACKED_REFS_BYTES)
    for name in ("config", "config.worktree"):
        _require_file(folder, name, _SMALL_BYTES, follow=True)
    for name in ("refs", "reftable"):
        facts = _lstat(git_dir / name)
        if facts is not None and not stat.S_ISDIR(facts.st_mode):
            raise _unusable(folder, name)
    objects = _objects(folder)
    _refuse_borrowed(folder, objects)
    return objects


def _objects(folder: Folder) -> Path:
    path = folder.git_dir / "objects"
    facts = _lstat(path)
    if facts is not None and stat.S_ISDIR(facts.st_mode):
        # Neither the folder's own path nor `.git` has a link in it, so this is where it lies.
        return path
    resolved = Path(os.path.realpath(path))
    if not resolved.is_relative_to(folder.path):
        raise _outside(folder, "the objects of the repository lie outside the folder")
    if not resolved.is_dir():
        raise _unusable(folder, "objects")
    return resolved


def read_small(path: Path, limit: int = _SMALL_BYTES) -> bytes | None:
    """Content of a regular file of at most `limit` bytes; `None` for anything else. Opens no pipe and no link."""
    return read_file(None, str(path), limit)


def references(git_dir: Path) -> Iterator[bytes]:
    """What names of the repository point where: names and contents of its reference files, in a fixed order, bounded.

    They are read as bytes, since asking git would use the folder's configuration. Only real folders are entered.
    """
    for name in ("HEAD", "packed-refs"):
        yield name.encode() + b"\0" + (read_small(git_dir / name, _PACKED_REFS_BYTES) or b"") + b"\0"
    open_folders = [(git_dir / base, 0) for base in ("reftable", "refs")]
    seen = 0
    while open_folders:
        folder, depth = open_folders.pop()
        for entry in _entries(folder):
            seen += 1
            if seen > _REF_ENTRIES:
                return
            yield os.fsencode(entry.path) + b"\0"
            if entry.is_dir(follow_symlinks=False):
                if depth < _REF_DEPTH:
                    open_folders.append((Path(entry.path), depth + 1))
            else:
                yield (read_small(Path(entry.path), _REF_BYTES) or _stamp(entry)) + b"\0"


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    try:
        if folder.is_symlink():
            return []
        with os.scandir(folder) as found:
            first = [entry for _, entry in zip(range(_REF_ENTRIES), found, strict=False)]
    except OSError:
        return []
    return sorted(first, key=lambda entry: entry.name)


def _stamp(entry: "os.DirEntry[str]") -> bytes:
    try:
        facts = entry.stat(follow_symlinks=False)
    except OSError:
        return b"absent"
    return f"{facts.st_mode}:{facts.st_size}:{facts.st_mtime_ns}".encode()


def _refuse_borrowed(folder: Folder, objects: Path) -> None:
    """A clone that borrows another repository's objects cannot be read where only the folder is mounted."""
    info = _lstat(objects / "info")
    if info is not None and stat.S_ISLNK(info.st_mode):
        raise _unusable(folder, "objects/info")
    path = objects / "info" / "alternates"
    if info is None or _lstat(path) is None:
        return
    content = read_small(path)
    if content is None:
        raise _unusable(folder, "objects/info/alternates")
    if any(line.strip() and not line.startswith(b"#") for line in content.splitlines()):
        raise ConfigError(
            f"the repository in {folder.path.name!r} borrows objects of another one (git clone --shared or "
            "--reference), so git would not work inside the box. Make it whole: git repack -a -d && rm "
            ".git/objects/info/alternates",
            "worktree",
        )


def _require_file(folder: Folder, name: str, limit: int, *, needed: bool = False, follow: bool = False) -> None:
    path = folder.git_dir / name
    try:
        facts = path.stat() if follow else path.lstat()
    except FileNotFoundError:
        if needed or (follow and path.is_symlink()):
            raise _unusable(folder, name) from None
        return
    except OSError as error:
        raise _unreadable(name, error) from None
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > limit:
        raise _unusable(folder, name)


def _lstat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path.name, error) from None


def _unreadable(name: str, error: OSError) -> InfraError:
    # The path itself stays out of the message: it may end in a log.
    return InfraError(
        f"{name!r} of the git directory cannot be examined: {error.strerror}. Check its owner and mode",
        "folder-unreadable",
    )


def _unusable(folder: Folder, name: str) -> ConfigError:
    return ConfigError(
        f"{'.git/' + name!r} of {folder.path.name!r} is not what git keeps there. Check the repository with: git fsck",
        "git-unusable",
    )


def _outside(folder: Folder, what: str) -> ConfigError:
    return ConfigError(
        f"{what} of {folder.path.name!r}, so git would not work inside the box. Use the main checkout, or a clone of "
        "its own: git clone --no-local FOLDER NEW",
        "worktree",
    )

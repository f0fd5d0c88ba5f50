"""Names below an open directory, in a folder where an agent could write: no step on the way is ever a link.

Every name is looked up in a directory that is already open, and a directory is entered only where it is one. So
nothing that was planted leads out of the folder, whatever account this runs as (docs/explanation/host-git.md).
"""

import contextlib
import itertools
import os
import secrets
import stat
import time
from collections.abc import Iterator

#: Opens a directory, and nothing else.
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
#: What it takes to look at what is in a directory.
_ENTERING = stat.S_IRUSR | stat.S_IXUSR
#: Names that are taken from a directory at once.
_BATCH = 1000


@contextlib.contextmanager
def directory(top: int, path: str, *, unlock: bool = False, write: bool = False) -> Iterator[int]:
    """The directory `path` below the open directory `top`, open; `unlock` enters what is closed to its owner too.

    `write` lets its owner write to it as well. Raises `OSError` where a step of the path is no directory.
    """
    handle = os.dup(top)
    try:
        parts = path.split("/") if path else []
        for depth, part in enumerate(parts, start=1):
            if unlock or write:
                unlock_directory(handle, part, stat.S_IRWXU if write and depth == len(parts) else _ENTERING)
            inner = os.open(part, DIRECTORY, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def missing_step(top: int, path: str) -> str | None:
    """The first step of `path` that is no directory, as a path itself; `None` where all are. Enters what is closed."""
    reached: list[str] = []
    handle = os.dup(top)
    try:
        for part in path.split("/") if path else ():
            reached.append(part)
            try:
                unlock_directory(handle, part, _ENTERING)
                inner = os.open(part, DIRECTORY, dir_fd=handle)
            except (FileNotFoundError, NotADirectoryError):
                return "/".join(reached)
            os.close(handle)
            handle = inner
    finally:
        os.close(handle)
    return None


def unlock_directory(parent: int, name: str, needed: int = stat.S_IRWXU) -> None:
    """Give the owner of `name` all rights on it, where it is a directory that lacks one of the `needed`."""
    with _held(parent, name) as (held, facts):
        if stat.S_ISDIR(facts.st_mode) and facts.st_mode & needed != needed:
            os.chmod(held, stat.S_IMODE(facts.st_mode) | stat.S_IRWXU)


def settle(parent: int, name: str, mode: int, owner: tuple[int, int]) -> None:
    """Give `name` its owner, which only root can, and its mode, which a link has none of."""
    with _held(parent, name) as (held, facts):
        link = stat.S_ISLNK(facts.st_mode)
        if os.geteuid() == 0:
            os.chown(name if link else held, *owner, dir_fd=parent if link else None, follow_symlinks=not link)
        if not link:
            os.chmod(held, mode)


@contextlib.contextmanager
def _held(parent: int, name: str) -> Iterator[tuple[str, os.stat_result]]:
    """A path that leads to `name` itself, whatever takes its place meanwhile and even where it is closed."""
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        yield f"/proc/self/fd/{handle}", os.fstat(handle)
    finally:
        os.close(handle)


def facts_of(parent: int, name: str) -> os.stat_result | None:
    """What `name` itself is, `None` where it is absent."""
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def names_in(handle: int) -> Iterator[str]:
    """The names in an open directory, as they come: an agent may have made more than fit into memory."""
    with os.scandir(handle) as entries:
        for entry in entries:
            yield entry.name


def read_file(parent: int | None, name: str, limit: int) -> bytes | None:
    """Content of a regular file of at most `limit` bytes; `None` for anything else, and where it may not be read.

    Opens no pipe and no link. Without a `parent`, `name` is a path.
    """
    try:
        handle = os.open(name, _READ, dir_fd=parent)
    except OSError:
        return None
    facts = os.fstat(handle)
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > limit:
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        content = file.read(limit + 1)
    return content if len(content) <= limit else None


def create_file(parent: int, name: str, content: bytes) -> None:
    """A new file with `content`, closed to others. Raises `FileExistsError` rather than write through what is there."""
    with os.fdopen(os.open(name, _CREATE, 0o600, dir_fd=parent), "wb") as file:
        file.write(content)


def fresh_name() -> str:
    """A name that nobody can have taken."""
    return secrets.token_hex(8)


def remove_tree(parent: int, name: str, seconds: float) -> None:
    """Remove the directory `name` and all below it, however deep, wide or closed it is.

    What lies deeper is brought up first, so that no depth needs a path or a stack. Raises `OSError`, also after
    `seconds`.
    """
    until = time.monotonic() + seconds
    with directory(parent, name, write=True) as top:
        while batch := list(itertools.islice(names_in(top), _BATCH)):
            for inner in batch:
                _remove_one(top, inner, until)
    os.rmdir(name, dir_fd=parent)


def _remove_one(top: int, name: str, until: float) -> None:
    facts = facts_of(top, name)
    if facts is None or not stat.S_ISDIR(facts.st_mode):
        os.unlink(name, dir_fd=top)
        return
    with directory(top, name, write=True) as handle:
        while batch := list(itertools.islice(names_in(handle), _BATCH)):
            for inner in batch:
                _bring_up(handle, inner, top)
            if time.monotonic() > until:
                raise TimeoutError("too much to remove")
    os.rmdir(name, dir_fd=top)


def _bring_up(handle: int, name: str, top: int) -> None:
    facts = facts_of(handle, name)
    if facts is None or not stat.S_ISDIR(facts.st_mode):
        os.unlink(name, dir_fd=handle)
        return
    # A directory that moves to another one is written to.
    unlock_directory(handle, name)
    os.rename(name, fresh_name(), src_dir_fd=handle, dst_dir_fd=top)

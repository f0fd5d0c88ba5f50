"""What is guarded in a folder's git directory, and how it stands: the same look before a run and after it.

Guarded is whatever can make the owner's own git run a program later (docs/explanation/host-git.md, "The guard").
"""

import contextlib
import itertools
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from pidispatch.workspace.dirfd import directory, facts_of, names_in, read_file

#: Guarded in each git directory: the folder's own and those nested in its tree, their submodules', their worktrees'.
#: (git's documentation, "gitrepository-layout")
GUARDED = (
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "info/attributes",
    "hooks",
    "remotes",
    "branches",
)
#: Bounds of what is guarded, and of what is looked at after a run.
MAX_ENTRIES = 20_000
MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 32
#: Where further git directories lie in a git directory.
_NESTS = ("modules", "worktrees")
#: Directories that are git's own (or Git LFS's, or git-annex's) in a git directory, and never another git directory.
_OWN = {
    *("annex", "branches", "hooks", "info", "lfs", "logs", "objects", "rebase-apply", "rebase-merge"),
    *("refs", "reftable", "remotes", "rr-cache", "sequencer", "svn"),
}


@dataclass(frozen=True)
class Entry:
    """One name as it stands. A name that is absent has no entry."""

    #: `file`, `dir`, `link` or `other`.
    kind: str
    #: Permission bits.
    mode: int
    uid: int
    gid: int
    #: Content of a file or target of a link; `None` for what has none, and where it was not read.
    content: bytes | None = None
    #: It was too large to be read.
    unread: bool = False

    def same_as(self, other: "Entry | None") -> bool:
        """Whether it stands like `other`, which was read whole."""
        if other is None or self.unread or self.kind != other.kind or self.content != other.content:
            return False
        # Only root can give a file to somebody else, and so only root can mend that.
        owner = os.geteuid() != 0 or (self.uid, self.gid) == (other.uid, other.gid)
        return owner and (self.kind == "link" or self.mode == other.mode)


@dataclass
class Budget:
    """What may still be looked at, besides what was noted before and is bounded by that."""

    entries: int = MAX_ENTRIES
    bytes: int = MAX_BYTES
    #: A larger file is not read.
    file_bytes: int = MAX_BYTES
    #: The name at which it was used up.
    used_up: str | None = None


@dataclass
class GitDirs:
    """Git directories below a folder, by their paths in it."""

    found: list[str] = field(default_factory=list)
    #: Links, and what lies too deep, where only directories belong.
    odd: list[str] = field(default_factory=list)
    #: There was more than could be looked through.
    partial: bool = False


def look(
    top: int, path: str, budget: Budget, noted: Mapping[str, Entry] = {}, *, unlock: bool = False
) -> dict[str, Entry]:
    """What stands at `path` below the open directory `top`, and below it; empty where it is absent.

    Stops where `budget` is used up, after a name that is not in `noted`, so that what was found differs from that.
    Raises `OSError` where something cannot be entered; `unlock` enters it anyway.
    """
    found: dict[str, Entry] = {}
    parent, name = os.path.split(path)
    with directory(top, parent, unlock=unlock) as handle:
        entry = entry_at(handle, name, budget, noted.get(path))
    if entry is None:
        return found
    found[path] = entry
    waiting = [path] if entry.kind == "dir" else []
    while waiting:
        here = waiting.pop()
        if here.count("/") - path.count("/") >= MAX_DEPTH:
            budget.used_up = budget.used_up or here
            return found
        for inner, entry in _entries(top, here, budget, noted, unlock=unlock):
            found[inner] = entry
            if inner not in noted:
                if budget.entries == 0:
                    budget.used_up = budget.used_up or inner
                    return found
                budget.entries -= 1
            if entry.kind == "dir":
                waiting.append(inner)
    return found


def entry_at(handle: int, name: str, budget: Budget, noted: Entry | None = None) -> Entry | None:
    """How `name` in an open directory stands, `None` where it is absent.

    Where it is as large as what was `noted` it is read to be compared; else its size tells that it differs, and it is
    read within `budget`.
    """
    facts = facts_of(handle, name)
    if facts is None:
        return None
    kind, content, unread = "other", None, False
    if stat.S_ISDIR(facts.st_mode):
        kind = "dir"
    elif stat.S_ISLNK(facts.st_mode):
        kind, content = "link", os.fsencode(os.readlink(name, dir_fd=handle))
    elif stat.S_ISREG(facts.st_mode):
        kind, limit = "file", min(budget.bytes, budget.file_bytes)
        if noted is not None and noted.kind == "file" and facts.st_size == len(noted.content or b""):
            content = read_file(handle, name, facts.st_size)
        elif facts.st_size > limit:
            unread = True
            budget.used_up = budget.used_up or name
        else:
            content = read_file(handle, name, limit)
            budget.bytes -= len(content or b"")
    return Entry(kind, stat.S_IMODE(facts.st_mode), facts.st_uid, facts.st_gid, content, unread)


def entry_below(
    top: int, path: str, budget: Budget, noted: Entry | None = None, *, unlock: bool = False
) -> Entry | None:
    """How `path` below the open directory `top` stands, `None` where it, or a step of the way, is absent."""
    parent, name = os.path.split(path)
    try:
        with directory(top, parent, unlock=unlock) as handle:
            return entry_at(handle, name, budget, noted)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _entries(
    top: int, path: str, budget: Budget, noted: Mapping[str, Entry], *, unlock: bool
) -> Iterator[tuple[str, Entry]]:
    with _entered(top, path, unlock=unlock) as handle:
        for name in names_in(handle):
            inner = f"{path}/{name}"
            entry = entry_at(handle, name, budget, noted.get(inner))
            if entry is not None:
                yield inner, entry


@contextlib.contextmanager
def _entered(top: int, path: str, *, unlock: bool) -> Iterator[int]:
    with contextlib.ExitStack() as stack:
        try:
            handle = stack.enter_context(directory(top, path))
        except PermissionError:
            if not unlock:
                raise
            # Only now: what can be entered keeps the mode it has.
            handle = stack.enter_context(directory(top, path, unlock=True))
        yield handle


def git_dirs(top: int, bases: Collection[str] = (), *, unlock: bool = False) -> GitDirs:
    """The git directories of the folder `top`: `.git`, `bases`, and in them those of submodules and linked worktrees.

    A submodule's name may hold slashes, so its directory may lie at any depth. Raises `OSError`.
    """
    dirs = GitDirs()
    left = MAX_ENTRIES
    found: set[str] = set()
    begun = {".git", *bases}
    waiting = [(path, 0) for path in sorted(begun)]
    while waiting:
        path, depth = waiting.pop()
        with contextlib.ExitStack() as stack:
            try:
                handle = stack.enter_context(directory(top, path, unlock=unlock))
            except (FileNotFoundError, NotADirectoryError):
                if path not in bases:
                    raise
                continue
            # A whole one may hold any number of names, and only these matter.
            names = set(_NESTS if path in begun else itertools.islice(names_in(handle), left + 1))
            left -= len(names)
            if left < 0:
                dirs.partial = True
                break
            whole = path in begun or _is_git_dir(names)
            if whole:
                found.add(path)
            for name in sorted(names - _OWN if whole else names):
                facts = facts_of(handle, name)
                mode = facts.st_mode if facts else 0
                inner = f"{path}/{name}"
                if stat.S_ISDIR(mode) and depth < MAX_DEPTH:
                    waiting.append((inner, depth + 1))
                elif stat.S_ISDIR(mode) or (stat.S_ISLNK(mode) and (not whole or name in _NESTS)):
                    dirs.odd.append(inner)
    dirs.found = sorted(found)
    return dirs


def _is_git_dir(names: set[str]) -> bool:
    return "HEAD" in names and ({"objects", "refs"} <= names or "commondir" in names)

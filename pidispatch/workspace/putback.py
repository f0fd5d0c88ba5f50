"""Putting a folder's git directory back: compared with its notes, replaced whole, never written through."""

import contextlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pidispatch.config.log import log
from pidispatch.values.errors import InfraError
from pidispatch.workspace.dirfd import (
    create_file,
    directory,
    facts_of,
    fresh_name,
    names_in,
    remove_tree,
    settle,
    unlock_directory,
)
from pidispatch.workspace.guarded import GUARDED, Budget, Entry, entry_at, git_dirs, look
from pidispatch.workspace.keep import Keeper
from pidispatch.workspace.notes import Notes

#: In the git directory: what was taken away waits here until it is removed, out of git's sight.
ASIDE = "pi-dispatch-aside"
#: Names that are reported one by one.
NAMED = 100
#: Seconds that removing the agent's versions may take.
_REMOVE_S = 60.0


def not_put_back(what: str) -> InfraError:
    """The fault of a git directory that may still run what an agent wrote."""
    return InfraError(
        f"the git directory was not put back: {what}. Look at .git/config and .git/hooks before you use git there",
        "git-not-put-back",
    )


class PutBack:
    """Puts back the folder that is open as `top`. `changed` is a file of the host's own."""

    def __init__(self, top: int, notes: Notes, keeper: Keeper, changed: Path) -> None:
        self._top = top
        self._notes = notes
        self._keeper = keeper
        self._changed = changed
        #: In the order they were found; a first call that crashed has left its own.
        self._names = dict.fromkeys(_read_names(changed))
        self._failed: dict[str, None] = {}

    def run(self) -> tuple[str, ...]:
        """Put back everything that can be; the names that had changed. Raises `InfraError` for the rest."""
        try:
            self._recover()
        except OSError as error:
            raise not_put_back(f"'.git' cannot be replaced ({error.strerror})") from None
        ways = sorted(way for way in self._notes.ways if way.split("/")[0] == ".git")
        for way in ways:
            # Before anything is entered, which opens what is closed.
            self._try(way, self._say_mode)
        for root in self._roots():
            self._try(root, self._put_back)
        self._clean()
        for way in ways:
            self._try(way, self._restore_mode)
        failed = list(self._failed)
        if failed:
            raise not_put_back(f"{', '.join(map(repr, failed[:5]))} cannot be replaced ({len(failed)} in all)")
        names = list(self._names)
        return tuple(names[:NAMED] + ([f"and {len(names) - NAMED} more"] if len(names) > NAMED else []))

    def _try(self, path: str, step: Callable[[str], None]) -> None:
        try:
            step(path)
        except OSError:
            self._failed[path] = None

    def _recover(self) -> None:
        """See to it that `.git` is a directory: the one that it was, where the agent only moved it."""
        facts = facts_of(self._top, ".git")
        if facts is not None and stat.S_ISDIR(facts.st_mode):
            return
        self._say(".git")
        if facts is not None:
            self._keep_instead(self._top, ".git")
            os.unlink(".git", dir_fd=self._top)
        for name in names_in(self._top):
            if self._is_git_dir(name):
                os.rename(name, ".git", src_dir_fd=self._top, dst_dir_fd=self._top)
                return
        raise not_put_back("it is gone from '.git', and does not lie beside it under another name")

    def _is_git_dir(self, name: str) -> bool:
        facts = facts_of(self._top, name)
        # Devices are numbered anew at each start of a machine, so the folder's own is compared with.
        here = (self._notes.inode, os.fstat(self._top).st_dev)
        if facts is None or (facts.st_ino, facts.st_dev) != here or not stat.S_ISDIR(facts.st_mode):
            return False
        with directory(self._top, name, unlock=True) as handle:
            # A number that came free may have been given to any directory.
            return facts_of(handle, "HEAD") is not None

    def _roots(self) -> Iterator[str]:
        """Everything guarded, also in git directories that the agent made."""
        try:
            now = git_dirs(self._top, unlock=True)
        except OSError:
            self._failed[".git/modules"] = None
            yield from self._notes.roots
            return
        if now.partial:
            self._failed[".git/modules"] = None
        # What the agent made of a guarded place is replaced with the place.
        yield from (path for path in now.odd if not self._is_guarded(path))
        bases = {*self._notes.git_dirs, *(path for path in now.found if not self._is_guarded(path))}
        yield from (f"{base}/{name}" for base in sorted(bases) for name in GUARDED)
        yield from self._notes.targets

    def _is_guarded(self, path: str) -> bool:
        parts = path.split("/")
        return any("/".join(parts[:depth]) in self._notes.roots for depth in range(1, len(parts) + 1))

    def _put_back(self, root: str) -> None:
        """Make what stands at `root` what was noted there."""
        noted = self._notes.roots.get(root, {})
        parent, name = os.path.split(root)
        if not self._reach(parent, remake=bool(noted)):
            return
        found = look(self._top, root, Budget(), unlock=True)
        differing = sorted(path for path in {*noted, *found} if not _same(noted.get(path), found.get(path)))
        if not differing:
            return
        self._say(*differing)
        self._keeper.keep({path: found[path] for path in differing if path in found})
        with self._aside() as aside, directory(self._top, parent, unlock=True) as handle:
            fresh = _build(aside, root, noted) if noted else None
            _move_away(handle, name, aside)
            if fresh is not None:
                os.rename(fresh, name, src_dir_fd=aside, dst_dir_fd=handle)
                if noted[root].kind == "dir":
                    # Only now: a directory that may not be written cannot be moved into its place.
                    _settle(handle, name, noted[root])

    def _reach(self, parent: str, *, remake: bool) -> bool:
        """Make `parent` a directory again where it is none; false where there is, and need be, no such directory.

        A whole git directory that is gone is not made anew: nothing of it can be run.
        """
        parts = parent.split("/") if parent else []
        for depth, part in enumerate(parts, start=1):
            way = "/".join(parts[:depth])
            with directory(self._top, os.path.dirname(way), unlock=True) as handle:
                facts = facts_of(handle, part)
                if facts is not None and stat.S_ISDIR(facts.st_mode):
                    continue
                if facts is not None:
                    self._say(way)
                    self._keep_instead(handle, way)
                    with self._aside() as aside:
                        _move_away(handle, part, aside)
                if not remake or any(way == base or base.startswith(way + "/") for base in self._notes.git_dirs):
                    return False
                self._say(way)
                os.mkdir(part, 0o700, dir_fd=handle)
                _settle(handle, part, self._notes.ways[way])
        return True

    def _keep_instead(self, handle: int, way: str) -> None:
        """Keep what stands in place of a directory, beside what will be kept of the directory."""
        entry = entry_at(handle, os.path.basename(way), Budget())
        if entry is not None:
            self._keeper.keep({f"{way}.replaced": entry})

    def _say_mode(self, way: str) -> None:
        if self._differs(way):
            self._say(way)

    def _restore_mode(self, way: str) -> None:
        if self._differs(way):
            parent, name = os.path.split(way)
            with directory(self._top, parent, unlock=True) as handle:
                _settle(handle, name, self._notes.ways[way])

    def _differs(self, way: str) -> bool:
        """Whether the directory `way` has another mode than noted; not for one that is gone or replaced."""
        parent, name = os.path.split(way)
        try:
            with directory(self._top, parent, unlock=True) as handle:
                entry = entry_at(handle, name, Budget(bytes=0))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return entry is not None and entry.kind == "dir" and not entry.same_as(self._notes.ways[way])

    @contextlib.contextmanager
    def _aside(self) -> Iterator[int]:
        with directory(self._top, ".git", unlock=True) as git_dir:
            facts = facts_of(git_dir, ASIDE)
            if facts is not None and not stat.S_ISDIR(facts.st_mode):
                os.unlink(ASIDE, dir_fd=git_dir)
            with contextlib.suppress(FileExistsError):
                os.mkdir(ASIDE, 0o700, dir_fd=git_dir)
            with directory(git_dir, ASIDE, unlock=True) as aside:
                yield aside

    def _clean(self) -> None:
        try:
            with directory(self._top, ".git") as git_dir:
                facts = facts_of(git_dir, ASIDE)
                if facts is not None and stat.S_ISDIR(facts.st_mode):
                    remove_tree(git_dir, ASIDE, _REMOVE_S)
        except OSError:
            # Git runs nothing that lies there.
            log().warning("guard_left", directory=ASIDE)

    def _say(self, *names: str) -> None:
        """Note names before they are put back, so that a second call after a crash can tell them too."""
        new = [name for name in names if name not in self._names]
        self._names.update(dict.fromkeys(new))
        # A full disk costs a later call the names, and must not keep anything from being put back.
        with contextlib.suppress(OSError), self._changed.open("a", encoding="ascii") as file:
            file.write("".join(json.dumps(name) + "\n" for name in new))


def _same(noted: Entry | None, now: Entry | None) -> bool:
    return now is not None and now.same_as(noted)


def _read_names(changed: Path) -> Iterator[str]:
    try:
        lines = changed.read_text(encoding="ascii").splitlines()
    except OSError:
        return
    for line in lines:
        # A crash may have cut one.
        with contextlib.suppress(ValueError):
            yield str(json.loads(line))


def _move_away(handle: int, name: str, aside: int) -> None:
    """Take `name` out of git's sight, whatever it is and however large."""
    facts = facts_of(handle, name)
    if facts is None:
        return
    if stat.S_ISDIR(facts.st_mode):
        # A directory that moves to another one is written to.
        unlock_directory(handle, name)
    os.rename(name, fresh_name(), src_dir_fd=handle, dst_dir_fd=aside)


def _build(aside: int, root: str, noted: Mapping[str, Entry]) -> str:
    """Make what was noted at and below `root` anew in `aside`; its name there. The mode of a directory is for later."""
    fresh = fresh_name()
    paths = sorted(noted, key=lambda path: path.split("/"))
    for path in paths:
        parent, name = os.path.split(fresh + path.removeprefix(root))
        with directory(aside, parent) as handle:
            _make(handle, name, noted[path])
    for path in reversed(paths):
        if path == root and noted[path].kind == "dir":
            continue
        parent, name = os.path.split(fresh + path.removeprefix(root))
        with directory(aside, parent) as handle:
            _settle(handle, name, noted[path])
    return fresh


def _make(handle: int, name: str, entry: Entry) -> None:
    if entry.kind == "dir":
        os.mkdir(name, 0o700, dir_fd=handle)
    elif entry.kind == "link":
        os.symlink(entry.content or b"", name, dir_fd=handle)
    else:
        create_file(handle, name, entry.content or b"")


def _settle(handle: int, name: str, entry: Entry) -> None:
    settle(handle, name, entry.mode, (entry.uid, entry.gid))

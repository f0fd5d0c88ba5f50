"""Putting a folder's git directory back: compared with its notes, replaced whole, never written through."""

import contextlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pidispatch.config.log import log
from pidispatch.values.errors import InfraError
from pidispatch.workspace.alive import HEAD, dead_parts
from pidispatch.workspace.dirfd import create_file, directory, facts_of, missing_step, names_in, remove_tree, settle
from pidispatch.workspace.guarded import GUARDED, Budget, Entry, GitDirs, entry_at, entry_below, git_dirs, look
from pidispatch.workspace.keep import Keeper
from pidispatch.workspace.nested import MAX_NAMES_AFTER, Nested, leads_to, search, straight
from pidispatch.workspace.notes import Notes
from pidispatch.workspace.replace import build, move_away, settle_as

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
    """Puts back `folder`, an absolute path without links that is open as `top`. `changed` is the host's own file."""

    def __init__(self, folder: Path, top: int, notes: Notes, keeper: Keeper, changed: Path) -> None:
        self._folder = folder
        self._top = top
        self._notes = notes
        self._keeper = keeper
        #: For all of it: an agent may have made any number of places.
        self._budget = keeper.budget()
        self._changed = changed
        #: In the order they were found; a first call that crashed has left its own.
        self._names = dict.fromkeys(_read_names(changed))
        self._failed: dict[str, None] = {}
        self._unsearched = False

    def run(self) -> tuple[str, ...]:
        """Put back everything that can be; the names that had changed. Raises `InfraError` for the rest."""
        try:
            self._recover()
        except OSError as error:
            raise not_put_back(f"'.git' cannot be replaced ({error.strerror})") from None
        ways = sorted(way for way in self._notes.ways if ".git" in way.split("/"))
        for way in ways:
            # Before anything is entered, which opens what is closed.
            self._try(way, self._say_mode)
        # Also what an agent hid there, whose index may name it.
        self._clean()
        self._guard(self._search())
        self._try(".git", self._revive)
        self._clean()
        for way in ways:
            self._try(way, self._restore_mode)
        failed = list(self._failed)
        wrong = [f"{', '.join(map(repr, failed[:5]))} cannot be replaced ({len(failed)} in all)"] if failed else []
        if self._unsearched:
            wrong.append("the folder cannot be searched whole for repositories in it (find . -name .git)")
        if wrong:
            raise not_put_back("; ".join(wrong))
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

    def _search(self) -> Nested:
        try:
            found = search(self._top, MAX_NAMES_AFTER, unlock=True)
        except OSError:
            found = Nested(partial=True)
        if found.partial:
            self._unsearched = True
        return found

    def _guard(self, found: Nested) -> None:
        """Put back everything guarded, also in git directories that the agent made."""
        try:
            now = git_dirs(self._top, {*found.dirs, *self._notes.elsewhere}, unlock=True)
        except OSError:
            now = GitDirs(partial=True)
        if now.partial:
            self._failed[".git/modules"] = None
        guarded = frozenset(now.found)
        nested = sorted({*found.others, *self._notes.nested, *self._notes.elsewhere})
        for path in nested:
            self._try(path, lambda path: self._put_back_nested(path, guarded))
        # What the agent made of a guarded place is replaced with the place.
        odd = [path for path in now.odd if not self._is_guarded(path)]
        bases = {*self._notes.git_dirs, *(path for path in now.found if not self._is_guarded(path))}
        places = (f"{base}/{name}" for base in sorted(bases) for name in GUARDED)
        for root in (*odd, *places, *self._notes.targets):
            self._try(root, lambda root: self._put_back(root, self._notes.roots.get(root, {})))

    def _put_back_nested(self, path: str, guarded: frozenset[str]) -> None:
        """See to it that `path` is a git directory, which is guarded, or what was noted there, or leads to the former.

        One that is gone runs nothing, and stays gone: a submodule may have been removed.
        """
        noted = self._notes.nested.get(path)
        again = {path: noted} if noted is not None and noted.content is not None else {}
        now = entry_below(self._top, path, self._budget, noted, unlock=True)
        if now is None:
            if path not in self._names:
                return
            # A crash came between taking away and putting back.
        elif now.same_as(noted) or (now.kind == "dir" and not again):
            return
        elif now.kind == "file" and not again:
            words = leads_to(now)
            if words is not None and straight(self._folder, path, words) in guarded:
                return
        self._put_back(path, again)

    def _revive(self, path: str) -> None:
        """See to it that git takes `.git` for a git directory: without one it would go on to look in the tree."""
        with directory(self._top, path, write=True) as git_dir:
            for name in dead_parts(git_dir):
                self._say(f"{path}/{name}")
                self._keep_instead(git_dir, f"{path}/{name}")
                with self._aside() as aside:
                    move_away(git_dir, name, aside)
                if name == HEAD:
                    create_file(git_dir, name, self._notes.head)
                    settle(git_dir, name, 0o644, (self._notes.ways[path].uid, self._notes.ways[path].gid))
                else:
                    os.mkdir(name, 0o700, dir_fd=git_dir)
                    settle_as(git_dir, name, self._notes.ways[path])

    def _is_guarded(self, path: str) -> bool:
        parts = path.split("/")
        return any("/".join(parts[:depth]) in self._notes.roots for depth in range(1, len(parts) + 1))

    def _put_back(self, root: str, noted: Mapping[str, Entry]) -> None:
        """Make what stands at `root` what was noted there."""
        parent, name = os.path.split(root)
        if not self._reach(parent, remake=bool(noted)):
            return
        found = look(self._top, root, self._budget, noted, unlock=True)
        differing = sorted(path for path in {*noted, *found} if not _same(noted.get(path), found.get(path)))
        if not differing:
            return
        self._say(*differing)
        self._keeper.keep({path: found[path] for path in differing if path in found})
        if self._budget.used_up is not None:
            self._keeper.give_up("bounds")
        with self._aside() as aside, directory(self._top, parent, write=True) as handle:
            fresh = build(aside, root, noted) if noted else None
            move_away(handle, name, aside)
            if fresh is not None:
                os.rename(fresh, name, src_dir_fd=aside, dst_dir_fd=handle)
                if noted[root].kind == "dir":
                    # Only now: a directory that may not be written cannot be moved into its place.
                    settle_as(handle, name, noted[root])

    def _reach(self, parent: str, *, remake: bool) -> bool:
        """Make `parent` a directory again where it is none; false where there is, and need be, no such directory.

        A whole git directory that is gone is not made anew: nothing of it can be run.
        """
        while (way := missing_step(self._top, parent)) is not None:
            bases = self._notes.git_dirs
            # Without a note it leads to a mere second name of a git directory, and went with it.
            remade = remake and way in self._notes.ways
            remade = remade and not any(way == base or base.startswith(way + "/") for base in bases)
            if not self._make_way(way, remade):
                return False
        return True

    def _make_way(self, way: str, remade: bool) -> bool:
        """Take away what is no directory at `way`, and have one there if it is `remade`; whether there is one."""
        outer, name = os.path.split(way)
        with directory(self._top, outer, write=True) as handle:
            if facts_of(handle, name) is not None:
                if not self._is_replaceable(way):
                    return False
                self._say(way)
                self._keep_instead(handle, way)
                with self._aside() as aside:
                    move_away(handle, name, aside)
            if remade:
                self._say(way)
                os.mkdir(name, 0o700, dir_fd=handle)
                settle_as(handle, name, self._notes.ways[way])
        return remade

    def _is_replaceable(self, way: str) -> bool:
        """Whether a directory that is guarded, or leads to something guarded, lies at `way`; else it is the tree's."""
        if way.endswith("/.git") or way in self._notes.nested or way in self._notes.elsewhere:
            # Seen to already.
            return False
        places = (*self._notes.targets, *self._notes.elsewhere)
        return ".git" in way.split("/") or any(
            place.startswith(f"{way}/") or way.startswith(f"{place}/") for place in places
        )

    def _keep_instead(self, handle: int, way: str) -> None:
        """Keep what stands in place of a directory, beside what will be kept of the directory."""
        entry = entry_at(handle, os.path.basename(way), self._budget)
        if entry is not None:
            self._keeper.keep({f"{way}.replaced": entry})

    def _say_mode(self, way: str) -> None:
        if self._differs(way):
            self._say(way)

    def _restore_mode(self, way: str) -> None:
        if self._differs(way):
            parent, name = os.path.split(way)
            with directory(self._top, parent, unlock=True) as handle:
                settle_as(handle, name, self._notes.ways[way])

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
        with directory(self._top, ".git", write=True) as git_dir:
            facts = facts_of(git_dir, ASIDE)
            if facts is not None and not stat.S_ISDIR(facts.st_mode):
                os.unlink(ASIDE, dir_fd=git_dir)
            with contextlib.suppress(FileExistsError):
                os.mkdir(ASIDE, 0o700, dir_fd=git_dir)
            with directory(git_dir, ASIDE, write=True) as aside:
                yield aside

    def _clean(self) -> None:
        try:
            with directory(self._top, ".git", unlock=True) as git_dir:
                facts = facts_of(git_dir, ASIDE)
                if facts is not None and stat.S_ISDIR(facts.st_mode):
                    remove_tree(git_dir, ASIDE, _REMOVE_S)
        except OSError:
            # Git runs nothing that lies there under our names.
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

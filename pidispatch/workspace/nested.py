"""Git directories nested in a folder's tree: every `.git` below the folder's own is searched for, wherever it lies.

The owner's git enters a repository that its index names, with that repository's own configuration, and an index may
name any place in the folder, its git directory included (docs/explanation/host-git.md, "The guard").
"""

import contextlib
import itertools
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from pidispatch.workspace.dirfd import DIRECTORY, directory, unlock_directory
from pidispatch.workspace.guarded import Entry

#: Names that are looked at before a run. After it more, so that a run may add to a folder that was just small enough.
MAX_NAMES = 3_000_000
MAX_NAMES_AFTER = 5_000_000
#: Git opens no longer path, and no repository whose own path is longer: what lies deeper is harmless.
_PATH_MAX = 4096
#: As many names a find costs for each step of the way to it: it will be walked to many times.
_COST = 100
#: Levels that are held open at once.
_HELD = 100
_GITDIR = "gitdir: "


@dataclass
class Nested:
    """Everything named `.git` but the folder's own, by path in the folder, in no order."""

    #: Directories.
    dirs: list[str] = field(default_factory=list)
    #: Files, links and whatever else.
    others: list[str] = field(default_factory=list)
    #: There was more than could be looked at.
    partial: bool = False


def search(top: int, names: int, *, unlock: bool = False) -> Nested:
    """Search the folder `top`, looking at no more than `names` names; `unlock` opens what is closed to its owner.

    What neither can be read nor opened belongs to another account: git does not get in either, nor did the agent.
    Raises `OSError`.
    """
    return _Search(names, unlock).run(top)


class _Search:
    def __init__(self, names: int, unlock: bool) -> None:
        self._left = names
        self._unlock = unlock
        self._found = Nested()
        #: Directories that lie too deep below the last one that was begun with.
        self._waiting = [""]

    def run(self, top: int) -> Nested:
        while self._waiting and self._left >= 0:
            path = self._waiting.pop()
            # A step on the way down takes as long as a name.
            self._left -= path.count("/")
            with (
                contextlib.suppress(PermissionError, FileNotFoundError, NotADirectoryError),
                directory(top, path, unlock=self._unlock) as handle,
            ):
                self._walk(handle, path and f"{path}/", _HELD)
        self._found.partial = self._left < 0
        return self._found

    def _walk(self, handle: int, prefix: str, levels: int) -> None:
        """Search the open directory; `prefix` is its path with a slash, `levels` may be held open below it."""
        inner = []
        with os.scandir(handle) as entries:
            for entry in entries:
                self._left -= 1
                if self._left < 0:
                    return
                name = entry.name
                is_dir = entry.is_dir(follow_symlinks=False)
                if is_dir:
                    inner.append(name)
                if name == ".git" and prefix:
                    self._left -= _COST * prefix.count("/")
                    (self._found.dirs if is_dir else self._found.others).append(prefix + name)
        if len(prefix) > _PATH_MAX:
            return
        for name in inner:
            if self._left < 0:
                return
            if levels == 0:
                self._waiting.append(prefix + name)
                continue
            entered = self._enter(handle, name)
            if entered is not None:
                try:
                    self._walk(entered, f"{prefix}{name}/", levels - 1)
                finally:
                    os.close(entered)

    def _enter(self, handle: int, name: str) -> int | None:
        try:
            return os.open(name, DIRECTORY, dir_fd=handle)
        except (FileNotFoundError, NotADirectoryError):
            # Before a run its owner may still be at work.
            return None
        except PermissionError:
            if not self._unlock:
                return None
        with contextlib.suppress(PermissionError):
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
            if mode & stat.S_IRWXU != stat.S_IRWXU:
                # It can be listed, and nothing in it be reached.
                os.chmod(handle, mode | stat.S_IRWXU)
            unlock_directory(handle, name)
            return os.open(name, DIRECTORY, dir_fd=handle)
        return None


def leads_to(entry: Entry) -> str | None:
    """Where a `.git` that is a file or a link leads, as written there; `None` where it leads nowhere.

    (git's documentation, "gitrepository-layout")
    """
    text = os.fsdecode(entry.content or b"")
    if entry.kind == "file":
        text = text.removeprefix(_GITDIR).rstrip("\r\n") if text.startswith(_GITDIR) else ""
    return text if text and "\0" not in text else None


def straight(folder: Path, path: str, target: str) -> str | None:
    """Where in `folder` the `target` leads that is written at `path`; `None` out of it, and where it takes a detour.

    No step on the way is left again, so it is where git gets to as long as no directory of the answer is a link.
    """
    if returns(target):
        return None
    end = os.path.relpath(os.path.normpath(os.path.join(folder, os.path.dirname(path), target)), folder)
    return None if end == "." or end.split("/")[0] == ".." else end


def returns(target: str) -> bool:
    """Whether a path goes up again after going down: then its end depends on what the steps between are."""
    steps = [step for step in target.split("/") if step not in ("", ".")]
    return ".." in itertools.dropwhile(lambda step: step == "..", steps)

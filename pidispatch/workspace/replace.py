"""Taking a name away and putting what was noted in its place, always as something new that nothing was written through.

Names are looked up in open directories alone (`pidispatch.workspace.dirfd`).
"""

import os
import stat
from collections.abc import Mapping

from pidispatch.workspace.dirfd import create_file, directory, facts_of, fresh_name, settle, unlock_directory
from pidispatch.workspace.guarded import Entry


def move_away(handle: int, name: str, aside: int) -> None:
    """Take `name` out of git's sight, whatever it is and however large."""
    facts = facts_of(handle, name)
    if facts is None:
        return
    if stat.S_ISDIR(facts.st_mode):
        # A directory that moves to another one is written to.
        unlock_directory(handle, name)
    os.rename(name, fresh_name(), src_dir_fd=handle, dst_dir_fd=aside)


def build(aside: int, root: str, noted: Mapping[str, Entry]) -> str:
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
            settle_as(handle, name, noted[path])
    return fresh


def _make(handle: int, name: str, entry: Entry) -> None:
    if entry.kind == "dir":
        os.mkdir(name, 0o700, dir_fd=handle)
    elif entry.kind == "link":
        os.symlink(entry.content or b"", name, dir_fd=handle)
    else:
        create_file(handle, name, entry.content or b"")


def settle_as(handle: int, name: str, entry: Entry) -> None:
    """Give `name` the owner and the mode that were noted."""
    settle(handle, name, entry.mode, (entry.uid, entry.gid))

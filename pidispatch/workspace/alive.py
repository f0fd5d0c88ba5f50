"""Whether git takes `.git` for a git directory.

Where it does not, git goes on to look whether the folder itself is a bare repository, and then whatever an agent wrote
into the tree under the names `HEAD`, `objects`, `refs` and `config` would be the owner's configuration. What git asks
for: https://git-scm.com/docs/gitrepository-layout
"""

import os
import re
import stat

from pidispatch.workspace.dirfd import read_file, unlock_directory

HEAD = "HEAD"
#: What makes a directory a git directory, besides a `HEAD` that is one.
FOLDERS = ("objects", "refs")
HEAD_BYTES = 4096
_HEAD = re.compile(rb"ref:\s*refs/|[0-9a-f]{40}")


def dead_parts(git_dir: int) -> list[str]:
    """Names in the open directory without which git does not take it for a git directory; opens closed folders."""
    dead = [] if _is_head(git_dir) else [HEAD]
    return dead + [name for name in FOLDERS if not _is_folder(git_dir, name)]


def _is_head(git_dir: int) -> bool:
    try:
        # An old form, of which git reads no further than this.
        return os.readlink(HEAD, dir_fd=git_dir).startswith("refs/")
    except OSError:
        return _HEAD.match(read_file(git_dir, HEAD, HEAD_BYTES) or b"") is not None


def _is_folder(git_dir: int, name: str) -> bool:
    try:
        unlock_directory(git_dir, name)
        return stat.S_ISDIR(os.stat(name, dir_fd=git_dir).st_mode) and os.access(name, os.X_OK, dir_fd=git_dir)
    except OSError:
        return False

"""Compiled code of pi that the image brings along, so that no job compiles it again: a fifth of a second each.

Node keeps compiled code in a folder of its own for each version and user, `<version>-<architecture>-<hash>-<uid>`, and
checks every entry against its source. The image holds one such folder; a link in the job's home gives it the name that
node looks for (Node's documentation, "Module compile cache").
"""

import os
from pathlib import Path


def offer(baked: Path, home: Path) -> Path | None:
    """Make the folder for `NODE_COMPILE_CACHE` in `home`; None where the image brings nothing or it cannot be made.

    A missing cache costs time and nothing else, so nothing here may end a job.
    """
    try:
        [made] = list(baked.iterdir())
        folder = home / ".compile-cache"
        folder.mkdir(exist_ok=True)
        kind, _, _builder = made.name.rpartition("-")
        (folder / f"{kind}-{os.getuid()}").symlink_to(made)
    except (OSError, ValueError):
        return None
    return folder

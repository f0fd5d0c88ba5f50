"""The guard of a folder's git directory: what could make the owner's own git run a program is put back after a run.

Notes are taken before the run, into the job directory, so that whoever finds that directory after a crash can put back
too. What the agent had there is kept (docs/explanation/host-git.md, "The guard").
"""

import os
from pathlib import Path

from pidispatch.values.errors import InfraError
from pidispatch.workspace.dirfd import DIRECTORY
from pidispatch.workspace.folder import Folder
from pidispatch.workspace.keep import Keeper
from pidispatch.workspace.notes import noted, read_notes, write_notes
from pidispatch.workspace.putback import PutBack, not_put_back

_NOTES = "notes.json"
_CHANGED = "changed"


def take_notes(folder: Folder, notes: Path) -> None:
    """Note what is guarded in `folder`, in the new directory `notes`, which no job may reach.

    Raises `ConfigError` (cause `git-unusable`) for what could not be put back, `InfraError` for what cannot be read.
    """
    try:
        top = os.open(folder.path, DIRECTORY)
        try:
            taken = noted(folder, top)
        finally:
            os.close(top)
    except OSError as error:
        raise InfraError(
            f"the git directory of {folder.path.name!r} cannot be examined: {error.strerror}. Check its owner and mode",
            "folder-unreadable",
        ) from None
    try:
        notes.mkdir(mode=0o700)
        write_notes(notes / _NOTES, taken)
    except OSError as error:
        raise InfraError(f"the git directory cannot be noted: {error.strerror}. Check the disk", "job-dir") from None


def put_back(folder: Path, notes: Path, kept: Path) -> tuple[str, ...]:
    """Put back what `take_notes` noted; the names that had changed, such as `.git/config`, relative to `folder`.

    The agent's versions are written below `kept`, as far as they are not too large. May be called again after a crash,
    by another process: the end is the same, and no name is lost. Nothing may be running in the folder any more.
    Raises `InfraError` (cause `git-not-put-back`) where something could not be put back, after everything else was.
    """
    before = read_notes(notes / _NOTES)
    if before is None:
        return ()
    try:
        top = os.open(folder, DIRECTORY)
    except OSError as error:
        raise not_put_back(f"the folder cannot be opened ({error.strerror})") from None
    try:
        return PutBack(folder, top, before, Keeper(kept), notes / _CHANGED).run()
    finally:
        os.close(top)

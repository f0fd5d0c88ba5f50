"""What must be known of an attempt to settle it when the program that ran it is gone: a file in its job directory.

It is written before the attempt is counted. Where it is missing no container was ever made, nor where the mark beside
it is that a container is being made.
"""

import contextlib
import os
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import ConfigDict, ValidationError

from pidispatch.box.run import ContainerEnd
from pidispatch.config.log import log
from pidispatch.values.base import Value
from pidispatch.values.errors import InfraError
from pidispatch.values.job import AnyJob
from pidispatch.workspace.atomic import write_atomically
from pidispatch.workspace.jobdir import NOTE, all_job_dirs
from pidispatch.workspace.locks import overlap

#: More than the end of an output takes, each of its characters escaped.
_END_BYTES: Final = 128 * 1024


class AttemptNote(Value):
    """One attempt whose container is about to be made."""

    #: A program may find the note of a later version.
    model_config = ConfigDict(extra="ignore")

    job: AnyJob
    #: Which attempt at the job it is, from 1.
    attempt: int = 1
    #: The workspace, its links resolved, and its inode: another folder may stand there later.
    folder: Path
    inode: int
    provider: str
    model: str
    image_digest: str
    #: When the attempt began.
    begun_at: datetime
    #: Id of the engine that runs it.
    engine: str
    #: Name of the container; its network is called `<container>-net`.
    container: str
    #: Id of the container that is its neighbour.
    neighbour: str | None
    #: Id of the deployment, which the container carries.
    deployment: str
    #: Whether the attempt marks that its container is being made; one of an older version does not.
    marks: bool = False


class EndNote(Value):
    """How the container of an attempt ended, kept until the record of it is."""

    model_config = ConfigDict(extra="ignore")

    end: ContainerEnd
    #: It was ended by whoever settled it, so that how it would have ended is lost.
    cut_off: bool = False
    #: Whether it was ever started, and so may have spent.
    started: bool = True


def write_note(path: Path, note: AttemptNote) -> None:
    """Write it for good. Raises `InfraError`."""
    try:
        write_atomically(path, note.model_dump_json().encode() + b"\n", 0o600)
    except OSError as error:
        raise InfraError(f"the job's directory cannot be written: {error.strerror}", "job-dir") from None


def read_note(path: Path) -> AttemptNote | None:
    """The note of an attempt, `None` where none was written. Raises `InfraError` for one that cannot be read."""
    try:
        return AttemptNote.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise InfraError(
            f"{path} cannot be read ({type(error).__name__}). Make sure that no container of it runs (docker ps), look "
            f"at .git of its folder, and remove {path.parent}",
            "note-unreadable",
        ) from None


def mark_making(path: Path) -> None:
    """Leave word that a container is made from now on. Raises `InfraError`."""
    try:
        write_atomically(path, b"", 0o600)
    except OSError as error:
        raise InfraError(f"the job's directory cannot be written: {error.strerror}", "job-dir") from None


def reserve_end(path: Path) -> None:
    """Make room for the end of the attempt now: an agent can fill the disk by then. Raises `InfraError`."""
    try:
        with path.open("xb") as file:
            os.posix_fallocate(file.fileno(), 0, _END_BYTES)
    except OSError as error:
        raise InfraError(f"the job's directory cannot be written: {error.strerror}", "job-dir") from None


def write_end(path: Path, note: EndNote) -> None:
    """Write it into the room that was made for it. Never raises: the run is over, and goes on to be told."""
    try:
        with path.open("r+b") as file:
            file.write(note.model_dump_json().encode() + b"\n")
            file.truncate()
    except OSError as error:
        log().error("end_unkept", cause=type(error).__name__)


def read_end(path: Path) -> EndNote | None:
    """The end of an attempt; `None` where it was not written, or not whole."""
    try:
        return EndNote.model_validate_json(path.read_bytes().strip(b"\0"))
    except (OSError, ValidationError):
        return None


def noted_containers(jobs_dir: Path) -> frozenset[str]:
    """Names of the containers of all attempts that have a directory; an unreadable note explains none."""
    found = set()
    for path in all_job_dirs(jobs_dir):
        with contextlib.suppress(InfraError):
            if (note := read_note(path / NOTE)) is not None:
                found.add(note.container)
    return frozenset(found)


def unsettled_run(jobs_dir: Path, folder: Path) -> AttemptNote | None:
    """An attempt in `folder`, above or below it, that nobody has settled.

    Whoever asks must hold the folder, so that none can be under way there. Raises `InfraError` for a note that cannot
    be read, since it may be of this folder.
    """
    notes = (read_note(path / NOTE) for path in all_job_dirs(jobs_dir))
    return next((note for note in notes if note is not None and overlap(note.folder, folder)), None)

"""What must be known of an attempt to settle it when the program that ran it is gone: a file in its job directory.

It is written right before the container is made. Where it is missing, no container was ever made.
"""

from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from pidispatch.values.base import Value
from pidispatch.values.errors import InfraError
from pidispatch.values.job import Job
from pidispatch.workspace.atomic import write_atomically
from pidispatch.workspace.jobdir import NOTE, all_job_dirs


class AttemptNote(Value):
    """One attempt whose container is about to be made."""

    job: Job
    #: The workspace, its links resolved.
    folder: Path
    provider: str
    model: str
    image_digest: str
    prepared_at: datetime
    #: Id of the engine that runs it.
    engine: str
    #: Names of the container and of the proxy on its network; the network is called `<container>-net`.
    container: str
    #: Id of the container that is its neighbour.
    neighbour: str | None


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
        raise InfraError(f"{path} cannot be read ({type(error).__name__})", "note-unreadable") from None


def unsettled_run(jobs_dir: Path, folder: Path) -> AttemptNote | None:
    """An attempt in `folder` that nobody has settled; whoever asks must hold the folder, so that none can be under way.

    Raises `InfraError` for a note that cannot be read: it may be of this folder.
    """
    notes = (read_note(path / NOTE) for path in all_job_dirs(jobs_dir))
    return next((note for note in notes if note is not None and note.folder == folder), None)

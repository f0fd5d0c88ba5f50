"""A site of one attempt whose every part is a test's own."""

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from pidispatch.box.abort import Abort
from pidispatch.box.engine import Engine
from pidispatch.config.clock import SystemClock
from pidispatch.config.settings import Settings
from pidispatch.runs.note import AttemptNote
from pidispatch.runs.records import RecordStore
from pidispatch.runs.site import Effective, Site
from pidispatch.values.errors import InfraError
from pidispatch.values.job import LocalJob
from pidispatch.values.limits import Limits
from pidispatch.values.progress import Progress


def no_engine() -> Engine:
    raise InfraError("nobody answers", "container-never-started")


class Place:
    """A site whose every part is a test's own, and what it told."""

    def __init__(self, folder: Path, environ: dict[str, str] | None = None, **settings: str) -> None:
        self.told: list[Progress] = []
        job = LocalJob(id="local-1", folder=folder, task="x")
        read = Settings.model_validate(settings)
        self.site = Site(
            job=job,
            begun_at=datetime(2026, 1, 1, tzinfo=UTC),
            effective=Effective.of(job, read),
            settings=read,
            records=RecordStore(read.logs_dir),
            connect=no_engine,
            environ=environ or {},
            limits=Limits(),
            clock=SystemClock(),
            progress=self.told.append,
            abort=Abort(),
            cleanup=ExitStack(),
        )


def note_of(folder: Path) -> AttemptNote:
    """The note of an attempt in `folder`."""
    return AttemptNote(
        job=LocalJob(id="local-9", folder=folder, task="x"),
        folder=folder,
        inode=folder.stat().st_ino,
        provider="anthropic",
        model="m",
        image_digest="sha256:1",
        begun_at=datetime(2026, 1, 31, tzinfo=UTC),
        engine="e",
        container="pi-job-local-9",
        neighbour=None,
        deployment="0" * 16,
    )

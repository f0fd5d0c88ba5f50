"""Settles attempts whose program was killed: the container ended, git's traps taken away, a record written.

In this order, because a container that still runs could set its traps anew, and a directory that is removed has taken
the notes along. What cannot be settled now stays as it is, and its folder takes no new run
(docs/explanation/ladder.md).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from pidispatch.box.engine import Engine
from pidispatch.box.exitline import last_exit
from pidispatch.box.leftover import Leftover, remove_leftover
from pidispatch.config.host import host_name
from pidispatch.config.log import log
from pidispatch.config.settings import Settings
from pidispatch.runs.classify import classify
from pidispatch.runs.note import AttemptNote, read_note
from pidispatch.runs.records import RecordStore
from pidispatch.values.clock import Clock
from pidispatch.values.errors import DispatchError, InfraError
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import InfraFailed
from pidispatch.values.reason import Reason
from pidispatch.values.record import Result, RunRecord
from pidispatch.workspace.guard import put_back
from pidispatch.workspace.jobdir import (
    JobDir,
    abandoned_job_dirs,
    release_job_dir,
    remove_job_dir,
    remove_old_kept,
)
from pidispatch.workspace.locks import hold_folder


@dataclass(frozen=True)
class Settled:
    """One broken-off attempt that is in order now."""

    job_id: str
    target: str
    #: Entries of the git directory that were put back.
    restored: tuple[str, ...]


@dataclass
class Swept:
    """What a sweep found."""

    settled: list[Settled] = field(default_factory=list)
    #: Why an attempt could not be settled, by its job id. Its folder takes no new run until it is.
    unsettled: dict[str, str] = field(default_factory=dict)


def sweep(settings: Settings, connect: Callable[[], Engine], limits: Limits, clock: Clock) -> Swept:
    """Settle every broken-off attempt of this account and remove what is older than its retention. Never raises
    `DispatchError`; the engine is asked for only where there is something to settle."""
    swept = Swept()
    RecordStore(settings.logs_dir).sweep(clock.now(), settings.log_retention_days)
    remove_old_kept(settings.jobs_dir, clock.now(), settings.log_retention_days)
    for job_dir in abandoned_job_dirs(settings.jobs_dir):
        _sweep_one(job_dir, settings, connect, limits, clock, swept)
    return swept


def _sweep_one(
    job_dir: JobDir,
    settings: Settings,
    connect: Callable[[], Engine],
    limits: Limits,
    clock: Clock,
    swept: Swept,
) -> None:
    note = None
    try:
        note = read_note(job_dir.note)
        if note is not None:
            # Whoever works in the folder now must not take what was planted there for its owner's.
            with hold_folder(settings.state_dir, note.folder):
                swept.settled.append(_settle(job_dir, note, settings, connect(), limits, clock))
    except DispatchError as error:
        log().warning("sweep_failed", directory=job_dir.path.name, cause=error.cause)
        swept.unsettled[note.job.id if note else job_dir.path.name] = error.message
        release_job_dir(job_dir)
        return
    remove_job_dir(job_dir)


def _settle(
    job_dir: JobDir, note: AttemptNote, settings: Settings, engine: Engine, limits: Limits, clock: Clock
) -> Settled:
    job = note.job
    if engine.facts().id != note.engine:
        raise InfraError(
            "its container ran on another engine. Run pi-dispatch once with the DOCKER_HOST of then, or make sure that "
            f"{note.container} is gone there and remove {job_dir.path}",
            "other-engine",
        )
    left = remove_leftover(engine, note.container, note.neighbour, limits)
    # A folder that its owner removed meanwhile has nothing to put back.
    restored = put_back(note.folder, job_dir.guard, job_dir.kept(job.id)) if note.folder.is_dir() else ()
    records = RecordStore(settings.logs_dir)
    if records.find(job.id) is None:
        result = _result(note, left).model_copy(update={"ended_at": clock.now(), "restored": restored})
        records.prepare()
        records.write(RunRecord.of(job, result, host_name()))
    log().warning("swept_job", jobId=job.id, entries=len(restored))
    return Settled(job.id, job.target, restored)


def _result(note: AttemptNote, left: Leftover | None) -> Result:
    """What is known of the attempt: its true end where the container had ended by itself and said so."""
    begun = Result.begin(note.prepared_at, note.provider, note.model)
    if left is not None and not left.started:
        return begun.ending(InfraFailed(reason=Reason.CONTAINER_NEVER_STARTED))
    # Without a container it may have run and been removed: it counts as spent.
    lost = begun.ending(InfraFailed(reason=Reason.WORKER_LOST)).model_copy(update={"spent": True})
    if left is None:
        return lost
    outcome, telemetry = classify(left.end)
    known = left.by_itself and last_exit(left.end.tail) is not None
    return lost.ending(outcome if known else lost.outcome).model_copy(
        update={"exit_code": left.end.code, "telemetry": telemetry, "image_digest": note.image_digest}
    )

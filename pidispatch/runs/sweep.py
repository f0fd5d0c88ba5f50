"""Settles attempts whose program was killed: the container ended, git's traps taken away, a record written.

In this order, because a container that still runs could set its traps anew, and a directory that is removed has taken
the notes along. What cannot be settled now stays as it is, and its folder takes no new run
(docs/explanation/ladder.md).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pidispatch.box.engine import Engine
from pidispatch.box.exitline import last_exit
from pidispatch.box.leftover import Leftover, remove_leftover
from pidispatch.config.host import host_name
from pidispatch.config.log import log
from pidispatch.config.settings import Settings
from pidispatch.runs.classify import classify
from pidispatch.runs.note import AttemptNote, EndNote, read_end, read_note, write_end
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
    #: Where the run's versions of them are kept.
    kept: Path
    #: Another folder stands where it worked, so nothing was put back anywhere.
    replaced: bool = False


@dataclass
class Swept:
    """What a sweep found."""

    settled: list[Settled] = field(default_factory=list)
    #: Why an attempt could not be settled, by its job id. Its folder takes no new run until it is.
    unsettled: dict[str, str] = field(default_factory=dict)


def sweep(settings: Settings, connect: Callable[[], Engine], limits: Limits, clock: Clock) -> Swept:
    """Settle every broken-off attempt of this account and remove what is older than its retention.

    Never raises; the engine is asked for only where there is something to settle.
    """
    swept = Swept()
    RecordStore(settings.logs_dir).sweep(clock.now(), settings.log_retention_days)
    remove_old_kept(settings.jobs_dir, clock.now(), settings.log_retention_days)
    for job_dir in abandoned_job_dirs(settings.jobs_dir):
        name = job_dir.path.name
        try:
            note = read_note(job_dir.note)
            if note is not None:
                name = note.job.id
                swept.settled.append(_Settlement(job_dir, note, settings, limits, clock).run(connect))
        except Exception as error:
            cause = error.cause if isinstance(error, DispatchError) else type(error).__name__
            log().warning("sweep_failed", directory=job_dir.path.name, cause=cause)
            swept.unsettled[name] = error.message if isinstance(error, DispatchError) else str(cause)
            release_job_dir(job_dir)
            continue
        remove_job_dir(job_dir)
    return swept


class _Settlement:
    """The steps that put one broken-off attempt in order; each can be done again after a crash."""

    def __init__(self, job_dir: JobDir, note: AttemptNote, settings: Settings, limits: Limits, clock: Clock) -> None:
        self._job_dir = job_dir
        self._note = note
        self._settings = settings
        self._limits = limits
        self._clock = clock

    def run(self, connect: Callable[[], Engine]) -> Settled:
        """Settle it. Raises `DispatchError` and `OSError` for what cannot be done now."""
        folder = self._note.folder
        # Whoever works in the folder now must not take what was planted there for its owner's.
        lock = hold_folder(self._settings.state_dir, folder) if folder.exists() else None
        try:
            end = self._end_container(connect())
            restored: tuple[str, ...] | None = ()
            try:
                restored = self._put_back()
            finally:
                # However that went, what is known of a run that was paid for is kept.
                self._record(end, restored or ())
        finally:
            if lock is not None:
                lock.release()
        job = self._note.job
        log().warning("swept_job", jobId=job.id, entries=len(restored or ()), replaced=restored is None)
        return Settled(job.id, job.target, restored or (), self._job_dir.kept(job.id), restored is None)

    def _put_back(self) -> tuple[str, ...] | None:
        """What was put back; `None` where another folder stands in the place of the one that was worked in."""
        note = self._note
        if not note.folder.exists():
            raise InfraError(
                f"its folder {note.folder} is not there, so nothing can be put back in it. Bring it back, or remove "
                f"{self._job_dir.path} if it is gone for good",
                "folder-gone",
            )
        if note.folder.stat().st_ino != note.inode:
            return None
        return put_back(note.folder, self._job_dir.guard, self._job_dir.kept(note.job.id))

    def _end_container(self, engine: Engine) -> Leftover | None:
        note = self._note
        if engine.facts().id != note.engine:
            raise InfraError(
                "its container ran on another engine. Run pi-dispatch once with the DOCKER_HOST of then, or make sure "
                f"that {note.container} is gone there and remove {self._job_dir.path}",
                "other-engine",
            )

        def keep(found: Leftover) -> None:
            if read_end(self._job_dir.end) is None and found.started:
                write_end(self._job_dir.end, EndNote(end=found.end, cut_off=not found.by_itself))

        return remove_leftover(engine, note.container, note.neighbour, note.deployment, self._limits, keep)

    def _record(self, left: Leftover | None, restored: tuple[str, ...]) -> None:
        records, job = RecordStore(self._settings.logs_dir), self._note.job
        if records.find(job.id) is not None:
            return
        result = _result(self._note, left, read_end(self._job_dir.end))
        result = result.model_copy(update={"ended_at": self._clock.now(), "restored": restored})
        records.prepare()
        records.write(RunRecord.of(job, result, host_name()))


def _result(note: AttemptNote, left: Leftover | None, ended: EndNote | None) -> Result:
    """What is known of the attempt: its true end where one was kept or the container had one."""
    begun = Result.begin(note.begun_at, note.provider, note.model)
    if ended is None:
        if left is not None and not left.started:
            return begun.ending(InfraFailed(reason=Reason.CONTAINER_NEVER_STARTED))
        # Without a container it may have run and been removed: it counts as spent.
        return begun.ending(InfraFailed(reason=Reason.WORKER_LOST)).model_copy(update={"spent": True})
    outcome, telemetry = classify(ended.end)
    # Who was killed by us, or says nothing, may have been in the middle of anything.
    lost = ended.cut_off or (ended.end.aborted is None and last_exit(ended.end.tail) is None)
    return begun.ending(InfraFailed(reason=Reason.WORKER_LOST) if lost else outcome).model_copy(
        update={
            "spent": True,
            "exit_code": ended.end.code,
            "telemetry": telemetry,
            "image_digest": note.image_digest,
        }
    )

"""Settles attempts whose program was killed: the container ended, git's traps taken away, what is known of it kept.

In this order, because a container that still runs could set its traps anew, and a directory that is removed has taken
the notes along. What cannot be settled now stays as it is, and its folder takes no new run
(docs/explanation/ladder.md).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pidispatch.box.engine import Engine
from pidispatch.box.leftover import Leftover, remove_leftover
from pidispatch.config.host import host_name
from pidispatch.config.log import log
from pidispatch.config.settings import Settings
from pidispatch.runs.classify import classify_left
from pidispatch.runs.index import RecordIndex
from pidispatch.runs.note import AttemptNote, EndNote, read_end, read_note, write_end
from pidispatch.runs.records import RecordStore
from pidispatch.values.clock import Clock
from pidispatch.values.errors import DispatchError, InfraError
from pidispatch.values.job import ForgeJob
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import InfraFailed
from pidispatch.values.reason import Reason
from pidispatch.values.record import EarlierAttempt, Result, RunRecord
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
class Found:
    """What is known of one broken-off attempt when it is settled."""

    note: AttemptNote
    #: How it ended; `worker-lost` where that cannot be told.
    result: Result
    #: Whether its container was started, and so may have spent. `None` where neither a container nor an end of one is
    #: left: the program was killed before it made one, or after it removed it. Whoever was told of the spending knows.
    started: bool | None

    def record(self, host: str, earlier: tuple[EarlierAttempt, ...] = ()) -> RunRecord:
        """The record of the attempt, which counts as spent unless it certainly did not start."""
        return RunRecord.of(self.note.job, self.result, host, self.note.attempt, earlier)


#: Keeps what is known of an attempt. It is asked again by the next start where it raises.
Keep = Callable[[Found], None]


class RecordKeeper:
    """Keeps the records of settled attempts as files and tells nobody else."""

    def __init__(self, settings: Settings) -> None:
        self._records = RecordStore(settings.logs_dir)

    def __call__(self, found: Found) -> None:
        """Keep the record, unless a better one stands. Raises `InfraError`."""
        self._records.prepare()
        self._records.keep(found.record(host_name()))


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


def remove_old(settings: Settings, clock: Clock, index: RecordIndex | None = None) -> None:
    """Remove records, kept output and kept versions of git files that are older than their retention. Never raises.

    `index` loses the rows of what is removed, and whatever else in it is not as the files say is set right.
    """
    RecordStore(settings.logs_dir, index).sweep(clock.now(), settings.log_retention_days)
    if index is not None:
        index.clear_up()
    remove_old_kept(settings.jobs_dir, clock.now(), settings.log_retention_days)


def sweep(
    settings: Settings, connect: Callable[[], Engine], limits: Limits, clock: Clock, keep: Keep | None = None
) -> Swept:
    """Settle every broken-off attempt of this account.

    `keep` is handed what is known of each, by default a `RecordKeeper`. Never raises; the engine is asked for only
    where there is something to settle.
    """
    swept = Swept()
    keep = keep or RecordKeeper(settings)
    for job_dir in abandoned_job_dirs(settings.jobs_dir):
        name = job_dir.path.name
        try:
            note = read_note(job_dir.note)
            if note is not None:
                name = note.job.id
                swept.settled.append(_Settlement(job_dir, note, settings, limits, clock).run(connect, keep))
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

    def run(self, connect: Callable[[], Engine], keep: Keep) -> Settled:
        """Settle it. Raises `DispatchError` and `OSError` for what cannot be done now, and whatever `keep` raises."""
        folder = self._note.folder
        # Whoever works in the folder now must not take what was planted there for its owner's.
        held = folder.exists() and not self._cloned
        lock = hold_folder(self._settings.state_dir, folder) if held else None
        try:
            end = self._end_container(connect())
            restored: tuple[str, ...] | None = ()
            try:
                restored = self._put_back()
            finally:
                # However that went, what is known of a run that was paid for is kept.
                keep(self._found(end, restored or ()))
        finally:
            if lock is not None:
                lock.release()
        job = self._note.job
        log().warning("swept_job", jobId=job.id, entries=len(restored or ()), replaced=restored is None)
        return Settled(job.id, job.target_name, restored or (), self._job_dir.kept(job.id), restored is None)

    @property
    def _cloned(self) -> bool:
        """It worked in a clone, which lies in the job directory and goes with it."""
        return isinstance(self._note.job, ForgeJob)

    def _put_back(self) -> tuple[str, ...] | None:
        """What was put back; `None` where another folder stands in the place of the one that was worked in."""
        note = self._note
        if self._cloned:
            return ()
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
                "its container ran on another engine. Start the worker once with the DOCKER_HOST of then, or make sure "
                f"that {note.container} is gone there and remove {self._job_dir.path}",
                "other-engine",
            )

        def keep(found: Leftover) -> None:
            if read_end(self._job_dir.end) is None:
                note = EndNote(end=found.end, cut_off=not found.by_itself, started=found.started)
                write_end(self._job_dir.end, note)

        return remove_leftover(engine, note.container, note.neighbour, note.deployment, self._limits, keep)

    def _found(self, left: Leftover | None, restored: tuple[str, ...]) -> Found:
        ended = read_end(self._job_dir.end)
        started = self._started(left, ended)
        result = _result(self._note, ended, started)
        result = result.model_copy(update={"ended_at": self._clock.now(), "restored": restored})
        return Found(self._note, result, started)

    def _started(self, left: Leftover | None, ended: EndNote | None) -> bool | None:
        """Whether its container was started; `None` where nobody can tell."""
        # An end that says so was kept by one who was killed in the middle of settling it.
        if ended is not None:
            return ended.started
        if left is not None:
            return left.started
        # Without a container it may have run and been removed, unless none was ever about to be made.
        return False if self._note.marks and not self._job_dir.making.exists() else None


def _result(note: AttemptNote, ended: EndNote | None, started: bool | None) -> Result:
    """What is known of the attempt: its true end where one was kept or the container had one."""
    begun = Result.begin(note.begun_at, note.provider, note.model)
    if started is False:
        return begun.ending(InfraFailed(reason=Reason.CONTAINER_NEVER_STARTED))
    if ended is None:
        # It may have run: it counts as spent.
        return begun.ending(InfraFailed(reason=Reason.WORKER_LOST)).model_copy(update={"spent": True})
    outcome, telemetry = classify_left(ended.end, cut_off=ended.cut_off)
    return begun.ending(outcome).model_copy(
        update={
            "spent": True,
            "exit_code": ended.end.code,
            "telemetry": telemetry,
            "image_digest": note.image_digest,
        }
    )

"""How the end of an attempt is told to the store: once, for good, and for as long as it takes.

The store is told before the record is written and before anything that could settle the attempt is removed. While the
server does not answer the end is tried again; a worker that must stop writes the record itself, and leaves the rest to
its next start (docs/explanation/queue.md).
"""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pidispatch.config.log import log
from pidispatch.jobs.endings import Telling
from pidispatch.jobs.rows import Answer, Deferred, JobState, Lease
from pidispatch.jobs.store import JobStore
from pidispatch.runs.events import tell_end
from pidispatch.runs.records import RecordStore
from pidispatch.values.clock import Clock
from pidispatch.values.errors import InfraError
from pidispatch.values.job import Job
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Aborted, InfraFailed, Outcome
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.record import EarlierAttempt, Result, RunRecord
from pidispatch.worker.told import telling

Told = Answer | Deferred


@dataclass(frozen=True)
class Ended:
    """What the store said of an end, and the record that goes with it."""

    record: RunRecord
    told: Told
    #: In more words than the record has; `None` of an end that is told again.
    outcome: Outcome | None = None

    @property
    def counts(self) -> bool:
        """Whether the one who told it writes the record. Without a row to ask it is written too: a job ran here."""
        return self.told is not Answer.STALE


class Ending:
    """Tells the store how attempts ended."""

    def __init__(
        self, store: JobStore, records: RecordStore, host: str, limits: Limits, clock: Clock, stopping: threading.Event
    ) -> None:
        self._store = store
        self._records = records
        self._host = host
        self._limits = limits
        self._clock = clock
        self._stopping = stopping

    def tell(
        self, lease: Lease, job: Job, result: Result, earlier: tuple[EarlierAttempt, ...], *, cancelled: bool
    ) -> Ended:
        """Store the end of the attempt of `lease`. Raises `InfraError` where this worker stops and no server answers.

        `cancelled`: an operator was told that the job is cancelled, so that is how it ended.
        """
        if cancelled:
            result = as_cancelled(result)
        record = self._record(lease, job, result, earlier)
        shown = telling(self._records, job, result)
        told = self._persist(lease, record, lambda: self._once(lease, record, result, shown))
        if told is Answer.CANCEL:
            result = as_cancelled(result)
            record = self._record(lease, job, result, earlier)
            shown = telling(self._records, job, result)
            told = self._persist(lease, record, lambda: self._store.finish(lease, record, shown))
        if told is not Answer.STALE:
            tell_end(record)
        else:
            log().warning("end_ignored", jobId=job.id, attempt=lease.attempt)
            if result.spent is not False:
                self._keep_forgotten(record)
        return Ended(record, told, result.outcome)

    def _keep_forgotten(self, record: RunRecord) -> None:
        """Keep the record of a paid run whose row waits to be run: the server lost its data, and was told anew.

        What may have cost something is never queued again, so that row knows of no run; the file keeps it from one.
        """
        row = None
        with contextlib.suppress(InfraError):
            row = self._store.row(record.job_id)
        if row is not None and not row.state.terminal:
            log().warning("end_forgotten", jobId=record.job_id)
            self._records.add(record)

    def repeat(self, lease: Lease, record: RunRecord) -> Told:
        """Store an end that is on record already."""
        told = self._persist(lease, record, lambda: self._store.finish(lease, record))
        if told is not Answer.STALE:
            tell_end(record)
        return told

    def _record(self, lease: Lease, job: Job, result: Result, earlier: tuple[EarlierAttempt, ...]) -> RunRecord:
        return RunRecord.of(job, result, self._host, lease.attempt, earlier)

    def _once(self, lease: Lease, record: RunRecord, result: Result, shown: Telling) -> Told:
        if _may_come_again(result):
            never_started = record.reason == Reason.CONTAINER_NEVER_STARTED
            return self._store.fail(lease, record, shown, never_started=never_started)
        return self._store.finish(lease, record, shown)

    def _persist(self, lease: Lease, record: RunRecord, ask: Callable[[], Told]) -> Told:
        gave_up: float | None = None
        unsure = False
        while True:
            try:
                told = ask()
                return self._ours(lease, record) if unsure and told is Answer.STALE else told
            except InfraError as error:
                # It may have been carried out, and only its answer been lost.
                unsure = True
                log().warning("end_untold", jobId=record.job_id, cause=error.cause)
                if self._stopping.wait(self._limits.store_retry_s):
                    now = self._clock.monotonic()
                    gave_up = gave_up or now + self._limits.stop_patience_s
                    if now >= gave_up:
                        # It is what keeps a paid job from being paid again, should the server have lost it.
                        self._records.add(record)
                        raise
                    threading.Event().wait(min(self._limits.store_retry_s, self._limits.stop_patience_s))

    def _ours(self, lease: Lease, record: RunRecord) -> Told:
        """What was answered when the row took this very record; `STALE` where it has another, or none."""
        row = self._store.row(lease.job_id)
        if row is None or row.record_attempt != lease.attempt or row.record != record.model_dump_json():
            return Answer.STALE
        if row.state is JobState.DEFERRED and row.due_ms is not None:
            return Deferred(gen=row.gen, due_ms=row.due_ms, delay_ms=self._limits.retry_base_ms)
        return Answer.WON if row.state.terminal else Answer.STALE


def as_cancelled(result: Result) -> Result:
    """`result` as that of an attempt that the operator ended."""
    ended = Aborted(reason=Reason.OPERATOR_CANCEL, cause=AbortReason.OPERATOR_CANCEL)
    return result if result.outcome == ended else result.ending(ended)


def _may_come_again(result: Result) -> bool:
    outcome = result.outcome
    if not isinstance(outcome, InfraFailed) or outcome.reason is Reason.WORKER_LOST:
        return False
    # A mistake of ours in the middle of a run that may be paid for: nobody can say what another one would cost.
    return not (outcome.cause == "internal-error" and result.spent is not False)


def unreadable_record(job_id: str, attempt: int, now: datetime) -> RunRecord:
    """The record of a job whose row holds no job that this version can read."""
    return RunRecord.of_no_run(
        job_id=job_id,
        started_at=now,
        ended_at=now,
        outcome="policy",
        reason=Reason.CONFIG_REFUSED.value,
        cause="row-unreadable",
        budget_reserved=False,
        attempt=attempt,
    )

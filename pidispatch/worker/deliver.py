"""One delivered ticket, from the store's word that it counts to the end of its attempt. It knows nothing of Celery.

A ticket may come once, twice or late. What decides is the store: one `acquire` per generation is won, and only its
winner goes on (docs/explanation/queue.md).
"""

import threading
from collections.abc import Callable
from typing import Protocol

from pidispatch.box.abort import Abort
from pidispatch.config.log import log
from pidispatch.config.settings import Settings
from pidispatch.gates.chain import Gates
from pidispatch.jobs.rows import Acquired, Answer, Deferred, Ignored, Paused
from pidispatch.jobs.store import JobStore, RowUnreadable
from pidispatch.runs.classify import aborted
from pidispatch.runs.records import RecordStore
from pidispatch.values.cause import remedy_of
from pidispatch.values.clock import Clock
from pidispatch.values.errors import InfraError
from pidispatch.values.job import Job
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import InfraFailed, Outcome, Refused
from pidispatch.values.progress import Progress, ProgressSink
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.record import Result, RunRecord
from pidispatch.values.verdict import Defer, Why
from pidispatch.worker.cases import Case, Cases, once_more
from pidispatch.worker.delivery import Delivery, End
from pidispatch.worker.ending import Ended, unreadable_record
from pidispatch.worker.leases import Leases


class RunAttempt(Protocol):
    """What runs one attempt (`pidispatch.runs.attempt.Attempt`)."""

    def __call__(self, job: Job, progress: ProgressSink, abort: Abort, number: int = 1) -> Result | Defer: ...


def unseen(_job_id: str, _progress: Progress) -> None:
    """Nobody looks."""


class Deliverer:
    """Takes tickets. `failed` is told of an attempt that failed."""

    #: Set once, right after the attempt that calls back was made.
    attempt: RunAttempt

    def __init__(
        self,
        store: JobStore,
        gates: Gates,
        leases: Leases,
        cases: Cases,
        records: RecordStore,
        settings: Settings,
        limits: Limits,
        clock: Clock,
        owner: Callable[[], str],
        stopping: threading.Event,
        failed: Callable[[], None],
        show: Callable[[str, Progress], None] = unseen,
    ) -> None:
        self._failed = failed
        self._show = show
        self._store = store
        self._gates = gates
        self._leases = leases
        self._cases = cases
        self._records = records
        self._settings = settings
        self._limits = limits
        self._clock = clock
        self._owner = owner
        self._stopping = stopping

    def __call__(self, job_id: str, gen: int) -> Delivery:
        """Take the ticket of `job_id` and see its job to the end of this attempt, or to its next ticket."""
        if self._stopping.is_set():
            return Delivery(job_id, End.GIVEN_BACK)
        try:
            acquired = self._acquire(job_id, gen, self._owner())
        except RowUnreadable as error:
            return self._unreadable(job_id, error)
        except InfraError as error:
            log().warning("acquire_failed", jobId=job_id, cause=error.cause)
            return Delivery(job_id, End.UNDECIDED, gen=gen, delay_ms=self._limits.undecided_recheck_ms)
        if isinstance(acquired, Ignored):
            log().info("delivery_ignored", jobId=job_id, gen=gen, state=acquired.state)
            return Delivery(job_id, End.IGNORED)
        if isinstance(acquired, Paused):
            return self._paused(acquired)
        if self._leases.get(job_id) is not None:
            # It runs here, and the server that knew has lost its data.
            return self._deferred(acquired, Defer(why=Why.SCOPE_BUSY, delay_ms=self._limits.scope_busy_recheck_ms))
        with self._leases.hold(acquired.lease) as held:
            case = Case(acquired, held)
            if self._stopping.is_set():
                # Told to stop while the store was asked: nothing has begun, and the stop may have missed this one.
                again = Defer(why=Why.STOPPED, delay_ms=0)
                return self._deferred(acquired, again, case)
            return self._taken(case)

    def _acquire(self, job_id: str, gen: int, owner: str) -> Acquired | Paused | Ignored:
        """Ask for the job; once more where the answer was lost, as the same delivery. Raises `InfraError`."""
        return once_more(lambda: self._store.acquire(job_id, gen, owner))

    def _taken(self, case: Case) -> Delivery:
        job = case.acquired.job
        # Whoever has this file has been paid for already, whatever the server still knows.
        if (before := self._ended_before(case)) is not None:
            return self._as_before(case, before)
        try:
            entered = self._gates.enter(job, self._clock.now())
        except Exception as error:
            # Nothing has begun: a mistake in a gate is a failed attempt, not one that waits for its lease to run out.
            log().error("gate_broke", jobId=job.id, cause=type(error).__name__)
            return self._delivery(case, self._cases.end(case, self._without_attempt(job, _BROKE)))
        if isinstance(entered, Defer):
            return self._deferred(case.acquired, entered, case)
        if isinstance(entered, Refused):
            return self._delivery(case, self._cases.end(case, self._without_attempt(job, entered)))

        def leave() -> None:
            self._records.forgo(job.id)
            entered.leave()

        try:
            # A run of this id may have ended here while this one waited at the gates.
            if (before := self._ended_before(case)) is not None:
                delivery = self._as_before(case, before)
            else:
                delivery = self._attempted(case)
        except BaseException:
            leave()
            raise
        if delivery.end is End.AGAIN and delivery.record is None:
            leave()
        else:
            delivery.release = leave
        return delivery

    def _attempted(self, case: Case) -> Delivery:
        acquired, held = case.acquired, case.held

        def tell(progress: Progress) -> None:
            held.tell(progress)
            self._show(acquired.job.id, progress)

        try:
            with self._cases.attempted(case):
                result = self.attempt(acquired.job, tell, held.abort, acquired.lease.attempt)
        except BaseException as error:
            # Raised past every net of the attempt: without this the message would run it again elsewhere.
            log().error("attempt_broke", jobId=acquired.job.id, cause=type(error).__name__)
            # Nobody can say how far it came, so what it was counted for stays.
            unknown = {"spent": None, "charged": case.charged}
            result = self._without_attempt(acquired.job, _BROKE).model_copy(update=unknown)
            return self._delivery(case, case.ended or self._cases.end(case, result))
        if isinstance(result, Defer):
            return self._deferred(acquired, result, case)
        if isinstance(result.outcome, InfraFailed):
            self._failed()
        if case.ended is None:
            # The lease is lost, or this worker stops while no server answers.
            log().warning("end_unstored", jobId=acquired.job.id, lost=held.lost)
            return Delivery(acquired.job.id, End.IGNORED)
        return self._delivery(case, case.ended)

    def _delivery(self, case: Case, ended: Ended) -> Delivery:
        job_id = case.acquired.job.id
        record = ended.record if ended.counts else None
        if isinstance(ended.told, Deferred):
            return self._again(case.acquired, ended.told, record)
        if record is None:
            return Delivery(job_id, End.IGNORED)
        end = End.FAILED if record.outcome == "failed" else End.RETURNED
        return Delivery(job_id, end, record, case.acquired.job, ended.outcome)

    def _deferred(self, acquired: Acquired, defer: Defer, case: Case | None = None) -> Delivery:
        try:
            never_started = case is not None and case.counted
            told = once_more(
                lambda: self._store.defer(acquired.lease, defer.delay_ms, defer.why, never_started=never_started)
            )
        except InfraError as error:
            # The row stays active until its lease runs out. Then the sweep queues it again, or ends it as lost where it
            # was counted already.
            log().warning("defer_failed", jobId=acquired.job.id, cause=error.cause)
            return Delivery(acquired.job.id, End.IGNORED)
        if isinstance(told, Deferred):
            return self._again(acquired, told, None)
        if told is Answer.CANCEL and case is not None:
            case.held.cancel()
            result = self._without_attempt(acquired.job, aborted(AbortReason.OPERATOR_CANCEL))
            return self._delivery(case, self._cases.end(case, result))
        log().warning("defer_ignored", jobId=acquired.job.id, answer=str(told))
        return Delivery(acquired.job.id, End.IGNORED)

    def _paused(self, paused: Paused) -> Delivery:
        ticket = paused.ticket
        log().info("paused_deferred", jobId=ticket.job_id, queue=ticket.queue, delayMs=paused.delay_ms)
        return Delivery(
            ticket.job_id,
            End.AGAIN,
            gen=ticket.gen,
            delay_ms=paused.delay_ms,
            queue=ticket.queue,
            label=ticket.label,
        )

    def _again(self, acquired: Acquired, told: Deferred, record: RunRecord | None) -> Delivery:
        return Delivery(
            acquired.job.id,
            End.AGAIN,
            record,
            acquired.job,
            gen=told.gen,
            delay_ms=told.delay_ms,
            queue=acquired.queue,
            label=acquired.label,
        )

    def _ended_before(self, case: Case) -> RunRecord | None:
        lease = case.acquired.lease
        record = self._records.find(lease.job_id)
        if record is not None and not record.final and record.attempt >= lease.attempt:
            # The server has forgotten that attempt; it may be made again.
            log().info(
                "job_lost_lock_record_rejected", jobId=lease.job_id, reason=record.reason, attempt=record.attempt
            )
        return record if record is not None and record.final else None

    def _as_before(self, case: Case, record: RunRecord) -> Delivery:
        log().warning(
            "job_lost_lock_after_completion", jobId=record.job_id, outcome=record.outcome, reason=record.reason
        )
        case.held.decide()
        told = self._cases.repeat(case.held.lease, record)
        return self._delivery(case, Ended(record, told))

    def _without_attempt(self, job: Job, outcome: Outcome) -> Result:
        provider, model = job.provider or self._settings.provider, job.model or self._settings.model
        return Result.begin(self._clock.now(), provider, model).ending(outcome)

    def _unreadable(self, job_id: str, error: RowUnreadable) -> Delivery:
        log().error("row_unreadable", jobId=job_id)
        record = unreadable_record(job_id, error.lease.attempt, self._clock.now())
        told = self._cases.repeat(error.lease, record)
        return Delivery(job_id, End.RETURNED, record if told is not Answer.STALE else None)


_BROKE = InfraFailed(reason=Reason.INFRA, cause="internal-error", remedy=remedy_of("internal-error"))

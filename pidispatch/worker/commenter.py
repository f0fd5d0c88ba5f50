"""The comments on issues and pull requests: noted in the store as a record is written, posted by a thread of its own.

The forge may hang or refuse; the job's own thread never asks it. Any worker posts what any of them noted
(docs/reference/comments.md).
"""

import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

from pidispatch.config.log import log
from pidispatch.forges.protocol import Account
from pidispatch.jobs.comments import DueRemark, Remark
from pidispatch.jobs.rows import Row
from pidispatch.jobs.store import JobStore
from pidispatch.runs import comments
from pidispatch.values.clock import Clock
from pidispatch.values.errors import ConfigError, DispatchError, InfraError, RateLimited
from pidispatch.values.forge import JobKind
from pidispatch.values.job import ForgeJob, Job, Target
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Outcome
from pidispatch.values.record import RunRecord

#: By how much the clocks of a worker and of a forge may differ.
_SKEW: Final = timedelta(hours=1)
#: More doublings than the longest pause allows.
_DOUBLINGS: Final = 16


def _unheard() -> None:
    """No thread is there yet; it looks by itself when it comes."""


class Commenter:
    """Told of every record, and called by the thread that posts. `worker` is the name of this one.

    `accounts` gives this deployment's account at a forge and raises `ConfigError` where there is none.
    """

    def __init__(
        self, store: JobStore, accounts: Callable[[JobKind], Account], limits: Limits, clock: Clock, worker: str
    ) -> None:
        self._store = store
        self._accounts = accounts
        self._limits = limits
        self._clock = clock
        self._worker = worker
        #: Has the thread post at once. Set when it is made.
        self.nudge: Callable[[], None] = _unheard

    def __call__(self, record: RunRecord, job: Job | None = None, outcome: Outcome | None = None) -> None:
        """Note what is to be said of an end: `job` and `outcome` where they are known. Never raises."""
        try:
            self._note(record, job, outcome)
        except Exception as error:
            # The job has ended and is recorded: a comment is all that is lost.
            log().error("comment_unstored", jobId=record.job_id, cause=_cause(error))

    def _note(self, record: RunRecord, job: Job | None, outcome: Outcome | None) -> None:
        text = comments.text(record, outcome)
        if text is None:
            return
        local = record.kind == JobKind.LOCAL
        row = self._store.row(record.job_id) if _open_end(record) or (job is None and not local) else None
        if _open_end(record) and row is not None and not _last(row, record):
            return
        if local:
            # There is no item, so the log has it.
            log().info("comment", jobId=record.job_id, reason=record.reason)
            return
        job = job or (row.job if row is not None else None)
        if not isinstance(job, ForgeJob):
            log().warning("comment_unaddressed", jobId=record.job_id, reason=record.reason)
            return
        self._store.remark(job.id, self._remark(job, record, text))
        self.nudge()

    def _remark(self, job: ForgeJob, record: RunRecord, text: str) -> Remark:
        return Remark(
            kind=job.kind,
            repo=job.repo,
            target=job.target.type,
            number=job.target.number,
            text=text,
            marker=comments.marker(job.id),
            # Also where the store lost what it knew of it: the comment on this end came after the end.
            since=(record.ended_at or self._clock.now()) - _SKEW,
        )

    def post(self) -> None:
        """Post what is due. Raises `InfraError` where the server does not answer."""
        limited: dict[JobKind, RateLimited] = {}
        for job_id in self._store.remarks_due():
            if (due := self._store.take_remark(job_id, self._worker)) is not None:
                self._deal(due, limited)

    def _deal(self, due: DueRemark, limited: dict[JobKind, RateLimited]) -> None:
        fault = limited.get(due.remark.kind) or self._fault(due.remark)
        if isinstance(fault, RateLimited):
            # It would not answer for the next one either.
            limited[due.remark.kind] = fault
        if fault is None:
            self._store.close_remark(due)
            log().info("comment_posted", jobId=due.job_id)
        elif isinstance(fault, ConfigError):
            self._store.close_remark(due)
            log().error("comment_refused", jobId=due.job_id, cause=fault.cause)
        else:
            self._later(due, fault)

    def _fault(self, remark: Remark) -> Exception | None:
        """Post it, unless it stands there already; why that could not be."""
        target = Target(type=remark.target, number=remark.number)
        try:
            account = self._accounts(remark.kind)
        except ConfigError as error:
            # Another worker may have one, and this one may be mended in time.
            return InfraError(error.message, error.cause)
        try:
            account.comment(remark.repo, target, remark.text, remark.marker, remark.since)
        except Exception as error:
            if not isinstance(error, DispatchError):
                raised = traceback.extract_tb(error.__traceback__)[-1]
                place = f"{Path(raised.filename).name}:{raised.lineno}"
                log().error("comment_broke", cause=type(error).__name__, at=place)
            return error
        return None

    def _later(self, due: DueRemark, fault: Exception) -> None:
        delay_ms = round(1000 * min(self._pause_s(due, fault), self._limits.comment_longest_s))
        if due.age_ms + delay_ms > self._limits.comment_patience_s * 1000:
            self._store.close_remark(due)
            log().error("comment_given_up", jobId=due.job_id, cause=_cause(fault), tries=due.tries + 1)
            return
        self._store.postpone_remark(due, delay_ms)
        log().warning("comment_delayed", jobId=due.job_id, cause=_cause(fault), delayMs=delay_ms)

    def _pause_s(self, due: DueRemark, fault: Exception) -> float:
        if isinstance(fault, RateLimited):
            return max((fault.resets - self._clock.now()).total_seconds(), self._limits.comment_retry_s)
        return self._limits.comment_retry_s * 2.0 ** min(due.tries, _DOUBLINGS)


def _open_end(record: RunRecord) -> bool:
    """Whether the record alone does not say that no attempt follows."""
    return record.outcome == "failed" and not record.final


def _last(row: Row, record: RunRecord) -> bool:
    return row.state.terminal and row.record_attempt == record.attempt


def _cause(error: Exception) -> str | None:
    return error.cause if isinstance(error, DispatchError) else type(error).__name__

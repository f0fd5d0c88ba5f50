"""Ends that are told beside the record: that of a job which was cancelled while it waited, and what the waiting see."""

from datetime import datetime

from pydantic import ConfigDict

from pidispatch.jobs.lost import parsed
from pidispatch.jobs.rows import Row
from pidispatch.values.base import Value
from pidispatch.values.job import ForgeJob, Job
from pidispatch.values.reason import Reason
from pidispatch.values.record import EarlierAttempt, Result, RunRecord


def cancelled_record(job: Job, row: Row, now: datetime, host: str) -> RunRecord:
    """The record of a job that an operator cancelled while it waited: the attempt that comes next spends nothing.

    Attempts that did run keep what they cost. `host` is the machine of the one who cancelled.
    """
    return RunRecord.of_no_run(
        job_id=job.id,
        kind=job.kind.value,
        target=job.target_name,
        flow=job.flow,
        ended_at=now,
        outcome="policy",
        reason=Reason.OPERATOR_CANCEL.value,
        provider=job.provider,
        model=job.model,
        budget_reserved=False,
        attempt=row.attempt,
        attempts=_earlier(row),
        host=host,
        command=job.command_name,
        replica=job.replica if isinstance(job, ForgeJob) else None,
        replicas=job.replicas if isinstance(job, ForgeJob) else None,
        trigger_index=job.matched.index if job.matched else None,
        trigger_type=job.matched.type if job.matched else None,
        retry_of=job.retry_of,
    )


def _earlier(row: Row) -> tuple[EarlierAttempt, ...]:
    """The attempts before the one that comes next, as far as this version reads their record."""
    of_them = row.record_attempt is not None and row.record_attempt < row.attempt
    before = row.record if of_them else row.previous
    found = parsed(before)
    return found.as_earlier if found else ()


class Telling(Value):
    """What a worker tells, at the end of an attempt, to the one who waits for it: more than a record may hold.

    It stands in the store for an hour (`JobStore.told`), and nothing is decided on it.
    """

    #: A reader of another version takes what it knows.
    model_config = ConfigDict(extra="ignore")

    result: Result
    #: Where the record lies on the worker's machine.
    record: str | None = None
    #: Why it could not be written.
    record_error: str | None = None

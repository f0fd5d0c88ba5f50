"""Records as a row holds them, and those of jobs that ended without a worker to write one."""

from datetime import datetime

from pydantic import ValidationError

from pidispatch.jobs.rows import JobState, Row
from pidispatch.values.epoch import from_ms
from pidispatch.values.errors import InfraError
from pidispatch.values.job import ForgeJob, Job
from pidispatch.values.outcome import InfraFailed, Refused, recorded_outcome
from pidispatch.values.reason import Reason
from pidispatch.values.record import EarlierAttempt, RunRecord

#: What a record of such a job takes from the container's own report, once that is found.
_TELEMETRY = ("exit_code", "turns", "tokens", "usage", "context", "provider", "model", "image_digest")


def record_of(row: Row) -> RunRecord | None:
    """The record of the job's last attempt that ended; `None` where there is none, or none that can be read."""
    if row.record is not None:
        found = parsed(row.record)
    elif row.state.terminal:
        found = _without_worker(row)
    else:
        return None
    report = parsed(row.telemetry)
    if found is None or report is None:
        return found
    return found.model_copy(update={name: getattr(report, name) for name in _TELEMETRY})


def parsed(text: str | None) -> RunRecord | None:
    """A record from its JSON; `None` where that holds none."""
    if not text:
        return None
    try:
        return RunRecord.model_validate_json(text)
    except ValidationError:
        return None


def _without_worker(row: Row) -> RunRecord:
    """What the row alone can tell: which attempt it was, where, from when, and whether it may have cost something."""
    job, outcome = _job(row), _outcome(row)
    return RunRecord.of_no_run(
        job_id=row.id,
        kind=row.kind,
        target=job.target_name if job else None,
        flow=job.flow if job else None,
        started_at=_instant(row.acquired_ms),
        ended_at=_instant(row.finished_ms),
        outcome=recorded_outcome(outcome),
        reason=outcome.reason.value,
        cause=outcome.cause,
        provider=job.provider if job else None,
        model=job.model if job else None,
        budget_reserved=row.spend_ms is not None,
        charged=row.charged,
        attempt=row.attempt,
        attempts=_earlier(row),
        host=row.lost_owner.partition("#")[0] if row.lost_owner else None,
        command=job.command_name if job else None,
        replica=job.replica if isinstance(job, ForgeJob) else None,
        replicas=job.replicas if isinstance(job, ForgeJob) else None,
        trigger_index=job.matched.index if job and job.matched else None,
        trigger_type=job.matched.type if job and job.matched else None,
        retry_of=job.retry_of if job else None,
    )


def _outcome(row: Row) -> InfraFailed | Refused:
    if row.state is not JobState.FAILED:
        # Its worker had heard a request to cancel, and was lost before it spent anything.
        return Refused(reason=Reason.OPERATOR_CANCEL)
    if row.spend_ms is None:
        return InfraFailed(reason=Reason.WORKER_LOST, cause="before-spending")
    return InfraFailed(reason=Reason.WORKER_LOST)


def _earlier(row: Row) -> tuple[EarlierAttempt, ...]:
    before = parsed(row.previous)
    return before.as_earlier if before else ()


def _job(row: Row) -> Job | None:
    try:
        return row.job
    except InfraError:
        return None


def _instant(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else from_ms(milliseconds)

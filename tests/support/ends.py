"""Ends of attempts as a test wants them: results and records of a job that does nothing."""

from datetime import UTC, datetime
from pathlib import Path

from pidispatch.values.job import LocalJob
from pidispatch.values.outcome import Outcome
from pidispatch.values.record import Result, RunRecord

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def job_of(job_id: str, folder: Path = Path("/srv/site")) -> LocalJob:
    """A job on a folder that need not be there."""
    return LocalJob(id=job_id, folder=folder, task="a marked task", flow="tidy")


def result_of(outcome: Outcome, *, spent: bool | None = True) -> Result:
    """What an attempt came to."""
    return Result.begin(NOW, "anthropic", "m").model_copy(update={"spent": spent}).ending(outcome)


def record_of(job_id: str, outcome: Outcome, attempt: int = 1) -> RunRecord:
    """The record of that attempt."""
    return RunRecord.of(job_of(job_id), result_of(outcome), "host", attempt)

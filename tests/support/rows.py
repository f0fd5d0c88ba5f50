"""Rows of the job store as a test wants them, without a store."""

from pidispatch.jobs.rows import JobState, Row
from pidispatch.values.job import LocalJob


def local_of(row: Row) -> LocalJob:
    """The job of a row, which is one on a folder."""
    assert isinstance(row.job, LocalJob)
    return row.job


def row_of(job: LocalJob, state: JobState = JobState.QUEUED, **update: object) -> Row:
    """The row of `job`, in its first attempt of two, with the fields of `update`."""
    row = Row.model_validate(
        {
            "id": job.id,
            "state": state,
            "queue": "pi-jobs",
            "label": job.label,
            "kind": job.kind.value,
            "data": job.model_dump_json(),
            "gen": 1,
            "attempt": 1,
            "maxAttempts": 2,
            "createdAt": 0,
            "publishedAt": 0,
        }
    )
    return row.model_copy(update=update)

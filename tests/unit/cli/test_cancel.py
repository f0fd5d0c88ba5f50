"""The words of `cancel`: what was done with a job that waited, derived from the attempts it had."""

from pathlib import Path

import pytest

from pidispatch.cli.cancel import taken_back, unanswered
from pidispatch.cli.main import _run
from pidispatch.jobs.rows import JobState
from pidispatch.values.job import LocalJob
from tests.support.rows import row_of

JOB = LocalJob(id="local-1", folder=Path("/srv/site"), task="x")


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (1, "It waited and never ran: nothing was spent"),
        (2, "Attempt 2 will not come; attempt 1 did run, and may have been paid for"),
        (3, "Attempt 3 will not come; attempts 1 to 2 did run, and may have been paid for"),
    ],
)
def test_what_was_done_is_told_by_the_attempts_there_were(attempt: int, words: str) -> None:
    assert (
        taken_back(row_of(JOB, attempt=attempt))
        == f"job local-1 is cancelled. {words}. A worker writes its record within minutes"
    )


def test_a_job_that_went_back_to_the_queue_can_be_cancelled_again() -> None:
    told = unanswered(JOB.id, row_of(JOB, JobState.DEFERRED))
    assert (told.done, told.state) == (False, "deferred")
    assert told.text.endswith("job local-1 went back to the queue meanwhile (deferred); cancel it again")


def test_an_empty_id_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["cancel", ""]) == 1
    assert "JOBID is empty" in capsys.readouterr().err

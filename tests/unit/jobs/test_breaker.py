"""What the end of a job says of its trigger."""

import pytest

from pidispatch.jobs.breaker import Said, said_of_trigger
from pidispatch.values.change import Change
from pidispatch.values.outcome import Aborted, Completed, InfraFailed, Outcome, Refused
from pidispatch.values.reason import FAILURES, AbortReason, Reason
from pidispatch.values.record import RunRecord
from tests.support.ends import job_of, result_of

CHANGE = Change(changed=True, commits=0, head=None, files=(), dirty_before=False)
NEUTRAL = {
    Reason.OPERATOR_CANCEL,
    Reason.ONCE_ALREADY_SPENT,
    Reason.DAILY_TOKEN_CAP,
    Reason.OVER_BUDGET,
    Reason.SOFT_HOLD,
}


def said(outcome: Outcome, change: Change | None = None) -> Said:
    result = result_of(outcome).model_copy(update={"change": change})
    return said_of_trigger(RunRecord.of(job_of("local-1"), result, "host"))


@pytest.mark.parametrize(("changed", "word"), [(True, "good"), (False, "bad"), (None, "")])
def test_a_run_that_completed_is_known_by_what_it_changed(changed: bool | None, word: Said) -> None:
    change = None if changed is None else CHANGE.model_copy(update={"changed": changed})
    assert said(Completed(), change) == word


@pytest.mark.parametrize("reason", [one for one in Reason if one not in FAILURES and one is not Reason.WORKER_ABORT])
def test_a_refusal_speaks_against_the_trigger_unless_a_cap_or_an_operator_stands_behind_it(reason: Reason) -> None:
    assert said(Refused(reason=reason)) == ("" if reason in NEUTRAL else "bad")


@pytest.mark.parametrize("reason", FAILURES)
def test_a_failure_speaks_against_it(reason: Reason) -> None:
    assert said(InfraFailed(reason=reason)) == "bad"


@pytest.mark.parametrize("cause", AbortReason)
def test_of_all_stops_the_time_that_was_up_alone_does(cause: AbortReason) -> None:
    aborted = Aborted(reason=Reason.WORKER_ABORT, cause=cause)
    assert said(aborted) == ("bad" if cause is AbortReason.JOB_TIMEOUT else "")


def test_a_job_in_the_words_of_another_version_says_nothing_of_its_trigger() -> None:
    assert said(Refused(reason=Reason.CONFIG_REFUSED, cause="row-unreadable")) == ""

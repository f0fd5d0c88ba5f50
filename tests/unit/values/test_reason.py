"""Every reason is a fixed token with a meaning and a remedy."""

import re

import pytest
from pydantic import TypeAdapter, ValidationError

from pidispatch.values.reason import KEPT_RUNNER_REASONS, AbortReason, Reason, RunnerReason

#: The runner's words that end no run badly, or whose run says why in its own reason.
WITHOUT_REMEDY = {"stop", "toolUse", "length", "terminated", "flow-not-loaded", "provider-auth-refused"}


@pytest.mark.parametrize("reason", [*Reason, *RunnerReason])
def test_a_reason_has_a_token_and_a_meaning(reason: Reason | RunnerReason) -> None:
    assert re.fullmatch(r"[A-Za-z][A-Za-z_-]+", reason.value)
    assert reason == reason.value
    assert str(reason) == reason.value
    assert reason.meaning.endswith(".")
    assert reason.meaning.isprintable()


@pytest.mark.parametrize("reason", Reason)
def test_a_reason_of_a_run_has_a_remedy(reason: Reason) -> None:
    assert reason.remedy
    assert reason.remedy.isprintable()


@pytest.mark.parametrize("reason", RunnerReason)
def test_a_reason_of_the_runner_has_a_remedy_where_it_is_shown(reason: RunnerReason) -> None:
    assert bool(reason.remedy) is (reason.value not in WITHOUT_REMEDY)


@pytest.mark.parametrize(("said", "kept"), KEPT_RUNNER_REASONS.items())
def test_a_reason_kept_from_the_runner_has_the_same_token(said: RunnerReason, kept: Reason) -> None:
    assert said.value == kept.value


def test_a_token_is_read_back() -> None:
    assert TypeAdapter(Reason).validate_python("config-refused") is Reason.CONFIG_REFUSED
    assert TypeAdapter(RunnerReason).validate_json('"turn_budget"') is RunnerReason.TURN_BUDGET
    with pytest.raises(ValidationError):
        TypeAdapter(Reason).validate_python("unheard-of")


def test_the_ways_to_end_a_job() -> None:
    assert {reason.value for reason in AbortReason} == {
        "job-timeout-30m",
        "shutdown",
        "operator-cancel",
        "lease-lost",
    }

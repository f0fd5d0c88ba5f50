"""From how a container ended to what that means."""

import json

import pytest

from pidispatch.box.run import ContainerEnd
from pidispatch.runs.classify import classify, classify_error, classify_left, exit_code
from pidispatch.values.cause import remedy_of
from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.values.outcome import Aborted, Completed, InfraFailed, Outcome, Refused
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.usage import Telemetry


def outcome(code: int, tail: str = "", **fields: object) -> Outcome:
    return classify(ContainerEnd.model_validate({"code": code, "tail": tail, "seconds": 1.0} | fields))[0]


def line(reason: str, **fields: object) -> str:
    return json.dumps({"event": "exit", "jobId": "x", "code": 0, "reason": reason} | fields, separators=(",", ":"))


@pytest.mark.example("ch3 E12", "the exit status and the abort decide; 125 as a status means that the container ran")
def test_the_table() -> None:
    assert outcome(0) == Completed()
    assert outcome(2) == Refused(reason=Reason.RUNNER_POLICY)
    assert outcome(1) == InfraFailed(reason=Reason.INFRA, cause="exit-1")
    assert outcome(137, aborted="shutdown") == Aborted(reason=Reason.WORKER_ABORT, cause=AbortReason.SHUTDOWN)
    assert outcome(137) == InfraFailed(reason=Reason.INFRA, cause="exit-137")
    assert outcome(125) == InfraFailed(reason=Reason.INFRA, cause="exit-125")
    assert outcome(42) == InfraFailed(reason=Reason.INFRA, cause="exit-42")


def test_an_abort_decides_whatever_the_status() -> None:
    for code in (0, 1, 2, 143):
        assert outcome(code, aborted="operator-cancel") == Aborted(
            reason=Reason.OPERATOR_CANCEL, cause=AbortReason.OPERATOR_CANCEL
        )
    timed_out = outcome(143, aborted="job-timeout-30m")
    assert timed_out == Aborted(reason=Reason.WORKER_ABORT, cause=AbortReason.JOB_TIMEOUT)


@pytest.mark.parametrize("code", [126, 127])
def test_an_entry_point_that_never_ran_is_told_from_an_agents_own_status(code: int) -> None:
    never = outcome(code, "exec: no such file")
    assert isinstance(never, InfraFailed)
    assert never.reason is Reason.CONTAINER_NEVER_STARTED
    ran = outcome(code, '\n{"event":"turn","jobId":"x","turns":1,"tokens":1}\n')
    assert ran == InfraFailed(reason=Reason.INFRA, cause=f"exit-{code}")


@pytest.mark.parametrize(
    ("said", "reason", "cause"),
    [
        ("turn_budget", Reason.RUNNER_POLICY, "turn_budget"),
        ("workspace-not-writable", Reason.WORKSPACE_NOT_WRITABLE, None),
        ("flow-not-loaded", Reason.FLOW_NOT_LOADED, None),
        ("provider-auth-refused", Reason.PROVIDER_AUTH_REFUSED, None),
        ("made-up", Reason.RUNNER_POLICY, None),
    ],
)
def test_what_the_runner_says_narrows_a_policy_end_down(said: str, reason: Reason, cause: str | None) -> None:
    found = outcome(2, line(said, code=2))
    assert isinstance(found, Refused)
    assert (found.reason, found.cause) == (reason, cause)


def test_a_line_that_does_not_agree_with_itself_gives_no_reason_of_its_own() -> None:
    assert outcome(2, line("provider-auth-refused", code=0)) == Refused(reason=Reason.RUNNER_POLICY)


def test_what_the_runner_says_never_decides() -> None:
    assert outcome(0, line("turn_budget", code=2)) == Completed()
    found = outcome(1, line("provider-auth-refused", code=2))
    assert isinstance(found, InfraFailed)


def test_other_ends() -> None:
    assert outcome(0, line("length", truncated=True)) == Completed(truncated=True)
    assert outcome(1, detached=True) == InfraFailed(reason=Reason.CONTAINER_DETACHED)
    starved = outcome(137, oom_killed=True)
    assert isinstance(starved, InfraFailed)
    assert starved.cause == "oom-killed"
    survived = outcome(1, line("error", code=1), oom_killed=True)
    assert isinstance(survived, InfraFailed)
    assert survived.cause == "error"


def test_errors_before_the_container() -> None:
    refused = classify_error(ConfigError("no", "worktree"))
    assert refused == Refused(reason=Reason.CONFIG_REFUSED, cause="worktree", detail="no", remedy=remedy_of("worktree"))
    unborn = classify_error(ConfigError("no", "no-commit"))
    assert isinstance(unborn, Refused)
    assert unborn.reason is Reason.LOCAL_FOLDER_NO_COMMIT
    silent = classify_error(InfraError("down", "container-never-started"))
    assert silent == InfraFailed(reason=Reason.CONTAINER_NEVER_STARTED, detail="down")
    broken = classify_error(InfraError("slow", "timeout"))
    assert broken == InfraFailed(reason=Reason.INFRA, cause="timeout", detail="slow", remedy=remedy_of("timeout"))


def test_exit_codes() -> None:
    assert exit_code(Completed()) == 0
    assert exit_code(Refused(reason=Reason.RUNNER_POLICY)) == 2
    assert exit_code(Aborted(reason=Reason.WORKER_ABORT, cause=AbortReason.SHUTDOWN)) == 2
    assert exit_code(InfraFailed(reason=Reason.INFRA)) == 1


def test_output_that_breaks_our_own_reader_costs_the_numbers_and_not_the_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_tail: str) -> Telemetry:
        raise ZeroDivisionError

    monkeypatch.setattr("pidispatch.runs.classify.read_telemetry", broken)
    assert classify(ContainerEnd(code=0, tail="x", seconds=1.0)) == (Completed(), Telemetry())


LOST = InfraFailed(reason=Reason.WORKER_LOST)


@pytest.mark.parametrize(
    ("fields", "cut_off", "expected"),
    [
        ({"code": 0, "tail": line("stop")}, False, Completed()),
        ({"code": 1, "tail": line("error", code=1)}, False, InfraFailed),
        ({"code": 0, "tail": line("stop")}, True, LOST),
        ({"code": 0, "tail": "no last line"}, False, LOST),
        ({"code": 137, "tail": "", "aborted": "shutdown"}, False, Aborted),
        ({"code": 137, "tail": line("stop"), "aborted": "lease-lost"}, False, LOST),
    ],
)
def test_what_nobody_watched_to_its_end_is_lost_unless_it_says_how_it_ended(
    fields: dict[str, object], cut_off: bool, expected: Outcome | type
) -> None:
    found, telemetry = classify_left(ContainerEnd.model_validate(fields), cut_off=cut_off)
    if isinstance(expected, type):
        assert isinstance(found, expected)
        assert found != LOST
    else:
        assert found == expected
    # Whatever its outcome counts as, what it used is known.
    assert telemetry == classify(ContainerEnd.model_validate(fields))[1]

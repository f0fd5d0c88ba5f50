"""Values are frozen, closed and spelled in camelCase outside of Python."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pidispatch.values import names
from pidispatch.values.base import Number, Value
from pidispatch.values.change import Change, FileChange
from pidispatch.values.errors import ConfigError, DispatchError, InfraError
from pidispatch.values.forge import JobKind
from pidispatch.values.job import LocalJob
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Aborted, Completed, InfraFailed, Refused
from pidispatch.values.progress import CheckPassed, ContainerStarted, ProviderRetry, Stopping, TurnEnded
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.record import Result
from pidispatch.values.usage import Context, Telemetry

JOB = LocalJob(id="local-1", folder=Path("/srv/folder"), task="task")
ONE_OF_EACH: list[Value] = [
    JOB,
    Limits(),
    Completed(),
    Refused(reason=Reason.CONFIG_REFUSED),
    Aborted(reason=Reason.OPERATOR_CANCEL, cause=AbortReason.OPERATOR_CANCEL),
    InfraFailed(reason=Reason.INFRA),
    FileChange(path="a", kind="added"),
    Change(changed=False, commits=0, head=None, files=(), dirty_before=False),
    CheckPassed(name="folder"),
    ContainerStarted(name="pi-job-1"),
    TurnEnded(turns=1, tokens=1),
    ProviderRetry(attempt=1, max_attempts=2),
    Stopping(reason="shutdown"),
    Telemetry(),
    Context(tokens=1, window=2),
    Result.begin(datetime(2026, 1, 1, tzinfo=UTC), "p", "m"),
]


@pytest.mark.parametrize("value", ONE_OF_EACH, ids=lambda value: type(value).__name__)
def test_a_value_is_frozen_and_closed(value: Value) -> None:
    name = next(iter(type(value).model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(value, name, getattr(value, name))
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        type(value).model_validate({**value.model_dump(), "somethingElse": 1})
    assert type(value).model_validate(value.model_dump()) == value


class _Measure(Value):
    some_number: Number


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**15), max_value=10**15))
def test_a_number_is_exact_inside_and_plain_json_outside(number: Decimal) -> None:
    measure = _Measure(some_number=number)
    assert measure.some_number == number
    outside = measure.model_dump(mode="json")["someNumber"]
    assert type(outside) is (int if number == number.to_integral_value() else float)
    assert outside == pytest.approx(float(number))


def test_a_job_is_checked() -> None:
    assert JOB.kind is JobKind.LOCAL
    assert JOB.model_dump(by_alias=True)["maxTurns"] is None
    for wrong in ({"id": ""}, {"id": "x" * 201}, {"task": ""}, {"max_turns": 0}, {"max_tokens": 0}):
        with pytest.raises(ValidationError):
            LocalJob.model_validate({**JOB.model_dump(by_alias=False), **wrong})


@pytest.mark.parametrize(
    ("folder", "target"),
    [("/home/someone/project", "local:project"), ("/", "local:"), ("/srv/caf\udce9", "local:caf?")],
)
def test_a_target_is_the_folders_last_part_and_always_utf8(folder: str, target: str) -> None:
    job = LocalJob(id="local-1", folder=Path(folder), task="task")
    assert job.target_name == target
    assert job.target_name.encode("utf-8")


def test_an_error_carries_its_cause_and_exit_code() -> None:
    assert (ConfigError("text", "token").exit_code, InfraError("text").exit_code) == (2, 1)
    error = ConfigError("text", "token")
    assert (str(error), error.message, error.cause) == ("text", "text", "token")
    assert InfraError("text").cause is None
    assert issubclass(ConfigError, DispatchError)
    assert not issubclass(ConfigError, InfraError)


def test_no_name_of_the_box_is_declared_twice() -> None:
    declared = [
        *names.ALWAYS_WRITTEN,
        *names.SOMETIMES_WRITTEN,
        *names.PROXY_WRITTEN,
        *names.RUNNER_INTERNAL,
        *names.RESERVED,
        *names.NEVER_FORWARDED,
    ]
    assert len(declared) == len(set(declared))


@pytest.mark.parametrize(("name", "value"), [("job_timeout_s", 0), ("pids", 15), ("stop_grace_s", -1)])
def test_a_limit_that_cannot_be_is_refused(name: str, value: int) -> None:
    with pytest.raises(ValidationError):
        Limits.model_validate({name: value})

"""The end of a job that was cancelled while it waited, and what a worker tells the one who waits."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pidispatch.jobs.endings import Telling, cancelled_record
from pidispatch.values.change import Change, FileChange
from pidispatch.values.job import LocalJob
from pidispatch.values.outcome import Aborted, Completed, InfraFailed, Outcome, Refused
from pidispatch.values.reason import AbortReason, Reason, RunnerReason
from pidispatch.values.record import Result, RunRecord
from pidispatch.values.usage import Context, Telemetry, Usage, UsageRow
from tests.support.rows import row_of

NOW = datetime(2026, 1, 1, 12, 30, 0, 123456, tzinfo=UTC)
JOB = LocalJob(id="local-1", folder=Path("/srv/site"), task="a private task", flow="tidy", provider="openai")
NUMBER = Decimal("0.00012345")


def test_a_job_that_waited_has_cost_nothing() -> None:
    record = cancelled_record(JOB, row_of(JOB), NOW, "here")
    assert (record.outcome, record.reason, record.exit_code) == ("policy", "operator-cancel", None)
    assert (record.job_id, record.target, record.flow, record.kind) == (JOB.id, "local:site", "tidy", "local")
    assert (record.provider, record.model, record.host) == ("openai", None, "here")
    assert (record.started_at, record.ended_at) == (None, NOW)
    assert record.budget_reserved is False
    assert (record.attempt, record.attempts) == (1, ())
    assert record.final
    assert "private" not in record.model_dump_json()


def _failed() -> RunRecord:
    result = Result.begin(NOW, "p", "m").ending(InfraFailed(reason=Reason.INFRA, cause="oom-killed"))
    return RunRecord.of(JOB, result.model_copy(update={"spent": True, "exit_code": 137}), "there")


@pytest.mark.parametrize("where", ["record", "previous"])
def test_an_attempt_that_did_run_is_kept(where: str) -> None:
    told: dict[str, Any] = {where: _failed().model_dump_json(), "record_attempt": 1 if where == "record" else None}
    row = row_of(JOB, attempt=2, **told)
    record = cancelled_record(JOB, row, NOW, "here")
    assert record.attempt == 2
    [earlier] = record.attempts
    assert (earlier.attempt, earlier.cause, earlier.exit_code, earlier.budget_reserved) == (1, "oom-killed", 137, True)


def test_an_attempt_whose_record_cannot_be_read_keeps_no_job_from_being_cancelled() -> None:
    assert cancelled_record(JOB, row_of(JOB, attempt=2, record="{}", record_attempt=1), NOW, "here").attempts == ()


def _usage_row() -> UsageRow:
    names = ("calls", "input", "output", "cacheRead", "cacheWrite", "cacheWrite1h", "reasoning", "total", "unpriced")
    return UsageRow.model_validate({"provider": "p", "model": "m", "cost": NUMBER, **dict.fromkeys(names, 7)})


def _full(outcome: Outcome) -> Result:
    """A result with something in every field."""
    return Result(
        outcome=outcome,
        started_at=NOW,
        ended_at=NOW,
        provider="p",
        model="m",
        spent=True,
        exit_code=2,
        telemetry=Telemetry(
            turns=3,
            tokens={"total": Decimal(1234567), "cost": NUMBER, "metered": True, "partial": False},
            usage=Usage(v=1, pi_ai="0.1", truncated=0, models=(_usage_row(),)),
            context=Context(tokens=10, window=100),
            reason=RunnerReason.TURN_BUDGET,
            message="line\n\x1b[31m\u202e",
            truncated=True,
        ),
        image_digest="sha256:" + "0" * 64,
        change=Change(
            changed=True,
            commits=1,
            head="a" * 40,
            files=(FileChange(path="a b\u2028", kind="added", added=1), FileChange(path="b", kind="deleted")),
            dirty_before=True,
            truncated=True,
        ),
        diff="+x\n-y\r\n\x00",
        change_error="e",
        outbox_files=2,
        restored=("config",),
        kept="/kept",
        guard_error="g",
        container_s=12.345678,
    )


@pytest.mark.parametrize(
    "outcome",
    [
        Completed(truncated=True),
        Refused(reason=Reason.RUNNER_POLICY, cause="turn_budget", detail="d", remedy="r"),
        Aborted(reason=Reason.WORKER_ABORT, cause=AbortReason.JOB_TIMEOUT),
        InfraFailed(reason=Reason.INFRA, cause="exit-1"),
    ],
)
def test_a_result_is_the_same_after_its_way_through_the_store(outcome: Outcome) -> None:
    result = _full(outcome)
    assert all(getattr(result, name) not in (None, ()) for name in Result.model_fields)
    again = Result.model_validate_json(result.model_dump_json())
    assert again == result
    tokens = again.telemetry.tokens
    assert tokens is not None
    assert {name: type(value) for name, value in tokens.items()} == {
        "total": Decimal, "cost": Decimal, "metered": bool, "partial": bool
    }  # fmt: skip


@pytest.mark.parametrize("spent", [True, False, None])
def test_what_is_not_known_stays_unknown(spent: bool | None) -> None:
    result = Result.begin(NOW, "p", "m").model_copy(update={"spent": spent})
    assert Result.model_validate_json(result.model_dump_json()) == result


def test_what_is_told_is_a_plain_document() -> None:
    told = Telling(result=_full(Completed()), record="/logs/x.json", record_error="full")
    document = told.model_dump(mode="json")
    assert set(document) == {"result", "record", "recordError"}
    assert Telling.model_validate_json(told.model_dump_json()) == told

"""Values of the store, and the records that are made from a row."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pidispatch.jobs.lost import parsed, record_of
from pidispatch.jobs.rows import RETENTION, JobState, Lease, Row, RowUnreadable, Ticket, ending_state
from pidispatch.values.errors import InfraError
from pidispatch.values.forge import JobKind
from pidispatch.values.job import LocalJob
from pidispatch.values.outcome import Aborted, Completed, InfraFailed, Outcome
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.record import Result, RunRecord
from pidispatch.values.usage import Context, Telemetry

JOB = LocalJob(id="local-1", folder=Path("/srv/site"), task="a private task", flow="tidy", model="m")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NOW_MS = round(NOW.timestamp() * 1000)


def record(outcome: Outcome, attempt: int = 1) -> RunRecord:
    """The record of an attempt that was paid for."""
    telemetry = Telemetry(turns=3, tokens={"total": Decimal(12)}, context=Context(tokens=12, window=1000))
    spent = {"spent": True, "exit_code": 1, "telemetry": telemetry, "image_digest": "sha256:00"}
    result = Result.begin(NOW, "anthropic", "m").model_copy(update=spent)
    return RunRecord.of(JOB, result.ending(outcome), "host", attempt)


def row(**fields: Any) -> Row:
    """A row as the server gives it: texts."""
    written = {
        "id": JOB.id,
        "state": "failed",
        "queue": "pi-jobs",
        "label": JOB.label,
        "kind": "local",
        "data": JOB.model_dump_json(),
        "gen": "3",
        "attempt": "2",
        "maxAttempts": "2",
        "createdAt": str(NOW_MS),
        "publishedAt": str(NOW_MS),
        "acquiredAt": str(NOW_MS),
        "finishedAt": str(NOW_MS + 60_000),
        "reason": "worker-lost",
        "lostOwner": "build-1#engine#nonce",
    }
    return Row.model_validate({**written, **fields})


def test_a_row_is_read_from_texts_and_knows_its_job_and_ticket() -> None:
    found = row(recorded="0", spendFrom=str(NOW_MS), later="a key of a later version")
    assert (found.gen, found.attempt, found.recorded, found.spend_ms) == (3, 2, False, NOW_MS)
    assert found.job == JOB
    assert found.ticket == Ticket(job_id="local-1", gen=3, queue="pi-jobs", label="local site tidy")
    assert "private" not in repr(found)


def test_a_row_that_holds_no_job_is_a_fault() -> None:
    with pytest.raises(InfraError) as caught:
        _ = row(data="{}").job
    assert caught.value.cause == "row-unreadable"
    lease = Lease(job_id="local-1", owner="w#e#n", gen=0, attempt=1)
    assert RowUnreadable(lease, "pi-jobs", "label", 2).message == caught.value.message


@pytest.mark.parametrize("state", JobState)
def test_three_states_are_ends(state: JobState) -> None:
    assert state.terminal is (state.value in ("completed", "failed", "cancelled"))


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Completed(), JobState.COMPLETED),
        (Aborted(reason=Reason.OPERATOR_CANCEL, cause=AbortReason.OPERATOR_CANCEL), JobState.COMPLETED),
        (InfraFailed(reason=Reason.INFRA), JobState.FAILED),
    ],
)
def test_only_what_the_surroundings_broke_has_failed(outcome: Outcome, state: JobState) -> None:
    assert ending_state(record(outcome)) is state


def test_every_kind_of_job_has_its_retention() -> None:
    assert set(RETENTION) == set(JobKind)


def test_the_record_of_a_job_whose_worker_was_lost_is_made_from_its_row() -> None:
    found = record_of(row(spendFrom=str(NOW_MS)))
    assert found is not None
    assert (found.outcome, found.reason, found.cause) == ("failed", "worker-lost", None)
    assert (found.budget_reserved, found.host, found.attempt) == (True, "build-1", 2)
    assert (found.started_at, found.target, found.flow, found.model) == (NOW, "local:site", "tidy", "m")
    assert "private" not in found.model_dump_json()


def test_what_was_lost_before_it_spent_says_so() -> None:
    found = record_of(row())
    assert found is not None
    assert (found.cause, found.budget_reserved) == ("before-spending", False)


def test_it_takes_the_attempt_before_along() -> None:
    first = record(InfraFailed(reason=Reason.INFRA))
    found = record_of(row(previous=first.model_dump_json()))
    assert found is not None
    assert found.attempts == first.as_earlier
    damaged = record_of(row(previous="{"))
    assert damaged is not None
    assert damaged.attempts == ()


def test_it_can_be_made_without_the_job_and_without_an_owner() -> None:
    found = record_of(row(data="{}", lostOwner="", acquiredAt=None))
    assert found is not None
    assert (found.target, found.host, found.started_at) == (None, None, None)


def test_telemetry_changes_no_end() -> None:
    report = record(Completed(), attempt=2)
    found = record_of(row(spendFrom=str(NOW_MS), telemetry=report.model_dump_json()))
    assert found is not None
    assert (found.outcome, found.reason) == ("failed", "worker-lost")
    assert (found.exit_code, found.turns, found.tokens) == (1, 3, report.tokens)
    assert (found.context, found.image_digest) == (report.context, "sha256:00")


def test_an_answered_cancel_is_the_end_of_a_job_that_lost_its_worker() -> None:
    found = record_of(row(state="cancelled", reason="operator-cancel"))
    assert found is not None
    assert (found.outcome, found.reason, found.cause, found.budget_reserved) == (
        "policy",
        "operator-cancel",
        None,
        False,
    )


def test_a_record_in_the_row_is_the_record() -> None:
    told = record(Completed(), attempt=2)
    assert record_of(row(state="completed", record=told.model_dump_json())) == told
    assert record_of(row(state="queued")) is None
    assert parsed(None) is parsed("") is parsed("{}") is None

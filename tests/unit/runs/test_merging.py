"""Which of two records of a job stands: nothing that is known is lost, and nothing that was told is untold."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.runs.records import RecordStore, merged
from pidispatch.values.reason import Reason
from pidispatch.values.record import RunRecord
from pidispatch.values.usage import Context
from tests.unit.runs.history import record, records

TELEMETRY = {"exit_code", "turns", "tokens", "usage", "context"}
LOST: dict[str, Any] = {"outcome": "failed", "reason": Reason.WORKER_LOST.value, "budget_reserved": True}
KNOWN: dict[str, Any] = {"exit_code": 0, "turns": 3, "tokens": {"total": Decimal(7)}}


@pytest.fixture
def store(tmp_path: Path) -> RecordStore:
    store = RecordStore(tmp_path / "logs")
    store.prepare()
    return store


def test_the_first_one_stands() -> None:
    assert merged(None, record()) == record()


@pytest.mark.parametrize("later", [{}, LOST])
def test_a_later_attempt_takes_the_place_of_an_earlier_one_and_lists_it(later: dict[str, Any]) -> None:
    first = record(outcome="failed", reason="infra", exit_code=1)
    found = merged(first, record(attempt=2, **later))
    assert found.attempt == 2
    assert found.attempts == first.as_earlier
    assert [(one.attempt, one.reason, one.exit_code) for one in found.attempts] == [(1, "infra", 1)]


def test_a_later_attempt_that_lists_the_earlier_ones_itself_is_taken_as_it_is() -> None:
    first = record(outcome="failed", reason="infra")
    second = record(attempt=2, attempts=record(outcome="failed", reason="infra", exit_code=7).as_earlier)
    assert merged(first, second) is second


@given(records, records)
def test_an_earlier_attempt_never_replaces_a_later_one(standing: RunRecord, other: RunRecord) -> None:
    later = other.model_copy(update={"attempt": standing.attempt + 1})
    assert merged(later, standing) == later


@given(records, records)
def test_of_one_attempt_the_first_word_stands(standing: RunRecord, other: RunRecord) -> None:
    same = other.model_copy(update={"attempt": standing.attempt})
    found = merged(standing, same)
    if standing.reason != Reason.WORKER_LOST:
        assert found == standing
    untouched = set(RunRecord.model_fields) - TELEMETRY
    assert all(getattr(found, name) == getattr(standing, name) for name in untouched)
    kept = {name for name in TELEMETRY if getattr(standing, name) is not None}
    assert all(getattr(found, name) == getattr(standing, name) for name in kept)


def test_a_lost_run_that_told_its_end_after_all_is_completed_and_stays_lost() -> None:
    found = merged(record(**LOST), record(**KNOWN, context=Context(tokens=1, window=2), changed=True))
    assert (found.outcome, found.reason, found.budget_reserved) == ("failed", "worker-lost", True)
    assert (found.exit_code, found.turns, found.tokens) == (0, 3, {"total": Decimal(7)})
    assert found.context == Context(tokens=1, window=2)
    assert found.changed is None
    assert merged(found, record(exit_code=9, turns=9)) == found


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_lost_run_never_replaces_what_is_known(store: RecordStore, attempt: int) -> None:
    standing = record(attempt=attempt)
    store.write(standing)
    path = store.record_path(standing.job_id)
    before = path.stat()
    assert store.keep(record(**LOST)) == standing
    # Not written again either: its age tells when it goes.
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_what_is_kept_is_what_stands(store: RecordStore) -> None:
    lost = record(**LOST)
    assert store.keep(lost) == store.find(lost.job_id) == lost
    completed = store.keep(record(**KNOWN))
    assert completed.turns == 3
    assert store.find(lost.job_id) == completed


@given(st.lists(records.map(lambda one: one.model_copy(update={"attempt": 1 + one.attempt % 3})), max_size=5))
def test_whatever_comes_in_whatever_order_the_last_attempt_stands(found: list[RunRecord]) -> None:
    standing: RunRecord | None = None
    for one in found:
        standing = merged(standing, one)
        assert merged(standing, one) == standing
    if standing is not None:
        assert standing.attempt == max(one.attempt for one in found)

"""What the index says of one record: a row an attempt and a row a model, and nothing that a table cannot hold."""

import os
import zlib
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.runs.index_rows import Row, crc, is_text, micros, rows_of, sums, whole
from pidispatch.runs.index_schema import attempts, usage
from pidispatch.values.record import RunRecord
from pidispatch.values.usage import Context
from tests.unit.runs.history import NOW, record
from tests.unit.values.test_record import TELEMETRY

_IN_NAMES = st.characters(exclude_characters="/", exclude_categories=["Cs"])
NOW_US = 1_893_553_445_000_000


def two_attempts() -> RunRecord:
    """A job whose first attempt failed after it had spent."""
    first = record(
        outcome="failed",
        reason="infra",
        cause="exit",
        attempt=1,
        exit_code=1,
        tokens={"total": Decimal(7), "cost": Decimal("0.000001")},
        budget_reserved=True,
        ended_at=None,
        git_restored=2,
    )
    return record(
        attempt=2,
        attempts=first.as_earlier,
        flow="fix",
        ended_at=NOW + timedelta(microseconds=3),
        turns=4,
        tokens={
            "input": Decimal(5),
            "output": Decimal(6),
            "total": Decimal(11),
            "cost": Decimal("0.30"),
            "calls": Decimal(2),
            "unresolved": Decimal(0),
            "unpriced": Decimal(1),
            "metered": True,
        },
        usage=TELEMETRY.usage,
        context=Context(tokens=10, window=200),
        changed=False,
        replica=1,
        replicas=3,
    )


def test_a_row_an_attempt() -> None:
    first, last = rows_of("a.json", two_attempts())[0]

    job: Row = {
        "file": "a.json",
        "job_id": two_attempts().job_id,
        "kind": "local",
        "target": "local:site",
        "flow": "fix",
    }
    job |= {"replica": 1, "replicas": 3}
    assert {name: value for name, value in first.items() if value is not None} == job | {
        "place": 0,
        "last": False,
        "attempt": 1,
        "reason": "infra",
        "cause": "exit",
        "exit_code": 1,
        "git_restored": 2,
        "budget_reserved": True,
        "started_us": NOW_US,
        "at_us": NOW_US,
        "tokens_total": 7,
        "cost_micros": 1,
    }
    assert {name: value for name, value in last.items() if value is not None} == job | {
        "place": 1,
        "last": True,
        "attempt": 2,
        "outcome": "completed",
        "provider": "anthropic",
        "model": "m",
        "host": "host-1",
        "budget_reserved": False,
        "started_us": NOW_US,
        "ended_us": NOW_US + 3,
        "at_us": NOW_US + 3,
        "turns": 4,
        "changed": False,
        "tokens_input": 5,
        "tokens_output": 6,
        "tokens_total": 11,
        "cost_micros": 300_000,
        "calls": 2,
        "unresolved": 0,
        "unpriced": 1,
        "metered": True,
        "context_tokens": 10,
        "context_window": 200,
        "usage_truncated": 0,
    }


def test_a_row_a_model() -> None:
    told = TELEMETRY.usage
    assert told is not None
    rows = rows_of("a.json", two_attempts())[1]
    assert [(row["file"], row["place"], row["number"]) for row in rows] == [
        ("a.json", 1, number) for number in range(len(told.models))
    ]
    for row, model in zip(rows, told.models, strict=True):
        assert (row["provider"], row["model"], row["total"]) == (model.provider, model.model, int(model.total))
        assert row["cost_micros"] == int(model.cost * 1_000_000)


def test_every_column_has_its_value() -> None:
    tried, used = rows_of("a.json", two_attempts())
    assert {frozenset(row) for row in tried} == {frozenset(attempts.c.keys())}
    assert {frozenset(row) for row in used} == {frozenset(usage.c.keys())}


@pytest.mark.parametrize(
    ("dollars", "expected"),
    [
        ("0.1", 100_000),
        ("0.0000005", 0),
        ("0.0000015", 2),
        ("-0.000001", -1),
        ("9223372036854.775807", 2**63 - 1),
        ("9223372036854.775808", None),
        ("1e300", None),
        (True, None),
        (None, None),
    ],
)
def test_money_is_whole_millionths_of_a_dollar(dollars: str | bool | None, expected: int | None) -> None:
    assert micros(Decimal(dollars) if isinstance(dollars, str) else dollars) == expected


@pytest.mark.parametrize(
    ("claimed", "expected"),
    [(7, 7), (Decimal("7.0"), 7), (Decimal("0.5"), None), (-(2**63), None), (2**63, None), (True, None), ("7", None)],
)
def test_a_number_is_whole_and_fits_or_is_none(claimed: object, expected: int | None) -> None:
    assert whole(claimed) == expected


def test_what_is_no_text_is_refused() -> None:
    assert is_text("\x00\U0010ffff")
    assert is_text(None)
    assert not is_text("\ud800")
    with pytest.raises(ValueError, match="surrogate"):
        rows_of("a.json", record(flow="\ud800"))


def test_the_least_and_the_last_instant_fit() -> None:
    ends = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    [row] = rows_of("a.json", record(started_at=ends[0], ended_at=ends[1]))[0]
    assert (row["started_us"], row["ended_us"]) == (-62_135_596_800_000_000, 253_402_300_799_999_999)


@given(
    st.sets(
        st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1, max_size=5), max_size=6
    )
)
def test_the_sums_of_names_are_those_of_each(names: set[str]) -> None:
    assert sums(names) == (len(names), sum(zlib.crc32(os.fsencode(name)) for name in names))
    assert sums(names) == (len(names), sum(crc(name) for name in names))

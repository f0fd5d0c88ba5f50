"""Metering: what counts, what does not, and that all sums agree."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pirunner import records, report
from pirunner.lines import encode
from pirunner.meter import Meter
from pirunner.records import Record

WORDS: Record = {"type": "text", "text": "words"}


def usage(total: int, **more: object) -> Record:
    """A usage block of `total` input tokens."""
    return {"input": total, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": total, **more}


def answer(total: int, stop: str = "stop", model: str = "m", **more: object) -> Record:
    """The event that ends an assistant message."""
    message = {"role": "assistant", "provider": "p", "model": model, "stopReason": stop, "content": [WORDS]}
    return {"type": "message_end", "message": {**message, "usage": usage(total), **more}}


def metered(*events: Record) -> Meter:
    meter = Meter()
    for event in events:
        meter.observe(event)
    return meter


def rows(meter: Meter) -> list[Mapping[str, object]]:
    block = report.usage(meter, None)
    assert block is not None
    models = block["models"]
    assert isinstance(models, list)
    return models


def test_turns_are_answers_that_neither_failed_nor_were_aborted() -> None:
    meter = metered(*(answer(10, stop) for stop in ("stop", "toolUse", "length", "error", "aborted")))
    assert (meter.turns, meter.total.total, meter.total.calls) == (3, 50, 5)


def test_repeated_messages_are_not_counted_again() -> None:
    message = answer(10)["message"]
    meter = metered(
        answer(10),
        {"type": "turn_end", "message": message, "toolResults": []},
        {"type": "message_update", "usage": usage(10)},
        {"type": "agent_end", "messages": [message]},
    )
    assert meter.total.total == 10


def test_each_source_has_its_total() -> None:
    meter = metered(
        answer(1),
        {"type": "message_end", "message": {"role": "toolResult", "usage": usage(20)}},
        {"type": "message_end", "message": {"role": "toolResult"}},
        {"type": "message_end", "message": {"role": "user", "content": "x"}},
        {"type": "compaction_end", "result": {"usage": usage(300)}},
        {"type": "compaction_end", "aborted": True},
        {"type": "entry_appended", "entry": {"type": "usage", "provider": "p", "model": "n", "usage": usage(4000)}},
        {"type": "entry_appended", "entry": {"type": "custom", "usage": usage(50_000)}},
    )
    tokens = report.tokens(meter)
    assert (tokens["rootTotal"], tokens["otherTotal"], tokens["looseTotal"]) == (301, 20, 4000)
    assert (tokens["total"], tokens["calls"], tokens["sessions"], tokens["metered"]) == (4321, 4, 1, True)
    assert [(row["provider"], row["model"], row["total"]) for row in rows(meter)] == [
        ("p", "n", 4000),
        ("p", "m", 301),
        ("other", "other", 20),
    ]


def test_calls_that_fail_count_as_calls_and_cut_ones_are_unresolved() -> None:
    meter = metered(
        answer(0, "error", content=[]),
        answer(0, "error"),
        answer(0, "aborted"),
        answer(0, "aborted", content=[]),
        {"type": "message_start", "message": {"role": "assistant"}},
        {"type": "message_start", "message": {"role": "user"}},
    )
    assert (meter.total.calls, meter.unresolved, meter.turns) == (2, 3, 0)


def test_call_without_price_is_unpriced() -> None:
    free = answer(5, usage=usage(5, cost={"total": 0}))
    absurd = answer(5, usage=usage(5, cost={"total": Decimal("1e999999")}))
    negative = answer(5, usage=usage(5, cost={"total": -1}))
    empty = answer(0, usage=usage(0, cost={"total": 0}))
    paid = answer(5, usage=usage(5, cost={"total": Decimal("0.25")}))
    meter = metered(free, absurd, negative, empty, paid)
    assert (meter.total.unpriced, meter.total.cost) == (3, Decimal("0.25"))


@pytest.mark.parametrize("bad", [-1, Decimal("0.5"), Decimal("1e30"), 2**60, "7", None, True, [1]])
def test_broken_counts_are_zero(bad: object) -> None:
    block = {"input": bad, "output": 7, "cacheRead": bad, "cacheWrite": 2, "totalTokens": bad, "reasoning": bad}
    meter = metered(answer(0, usage=block))
    assert (meter.total.input, meter.total.output, meter.total.total, meter.total.reasoning) == (0, 7, 9, 0)


def test_total_is_never_less_than_its_parts() -> None:
    assert metered(answer(0, usage=usage(50, totalTokens=3))).total.total == 50
    assert metered(answer(0, usage=usage(50, totalTokens=80))).total.total == 80


def test_no_call_means_no_usage() -> None:
    assert report.usage(Meter(), "1.6.0") is None
    assert report.tokens(Meter())["total"] == 0


def test_at_most_eight_named_rows_highest_first_ties_in_first_seen_order() -> None:
    meter = metered(*(answer(10 if number < 9 else 99, model=f"m{number}") for number in range(11)))
    block = report.usage(meter, None)
    assert block is not None
    assert block["truncated"] == 3
    assert [row["model"] for row in rows(meter)] == ["m9", "m10", "m0", "m1", "m2", "m3", "m4", "m5", "other"]


def test_names_the_worker_would_refuse_are_folded() -> None:
    meter = metered(answer(1, model="Claude-X"), answer(2, model="claude@2025"), answer(3, model="x" * 65))
    block = report.usage(meter, None)
    assert block is not None
    assert [(row["model"], row["total"]) for row in rows(meter)] == [("Claude-X", 1), ("other", 5)]
    assert block["truncated"] == 2


def test_context_is_of_the_last_complete_answer() -> None:
    meter = metered(answer(10), answer(30), answer(99, "error"))
    assert report.context(meter, 200) == {"tokens": 30, "window": 200}
    assert report.context(meter, None) is None
    assert report.context(meter, 0) is None
    assert report.context(Meter(), 200) is None


@pytest.mark.parametrize(
    ("content", "version"),
    [(b'{"version":"1.6.0"}', "1.6.0"), (b'{"version":"1.6.0-rc1"}', None), (b"{}", None), (b"nonsense", None)],
)
def test_pi_ai_version(tmp_path: Path, content: bytes, version: str | None) -> None:
    (tmp_path / "package.json").write_bytes(content)
    assert report.pi_ai_version(tmp_path / "package.json") == version
    assert report.pi_ai_version(tmp_path / "absent.json") is None


_COUNT = st.integers(min_value=-5, max_value=10**7) | st.none()
_COST = st.decimals(min_value=-1, max_value=10**7, places=15, allow_nan=False) | st.sampled_from(
    [Decimal("NaN"), Decimal("Infinity"), None]
)
_USAGE = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "totalTokens", "reasoning"), _COUNT),
        "cost": st.fixed_dictionaries({"total": _COST}),
    },
)
_NAME = st.sampled_from([*(f"m{number}" for number in range(10)), "bad name", ""])
_STOP = st.sampled_from(["stop", "toolUse", "length", "error", "aborted"])
_EVENT = st.one_of(
    st.builds(lambda block, name, stop: answer(0, stop, name, usage=block), _USAGE, _NAME, _STOP),
    st.builds(lambda block: {"type": "message_end", "message": {"role": "toolResult", "usage": block}}, _USAGE),
    st.builds(lambda block: {"type": "compaction_end", "result": {"usage": block}}, _USAGE),
    st.builds(
        lambda block, name: {"type": "entry_appended", "entry": {"type": "usage", "model": name, "usage": block}},
        _USAGE,
        _NAME,
    ),
)


@given(st.lists(_EVENT, max_size=40))
def test_rows_sum_to_the_totals(events: list[Record]) -> None:
    meter = metered(*events)
    line = records.parse_record(encode({"tokens": report.tokens(meter), "usage": report.usage(meter, None)}).encode())
    assert line is not None
    tokens, models = records.mapping(line, "tokens"), records.objects(records.mapping(line, "usage"), "models")
    assert len(models) <= 9
    for key in ("input", "output", "total", "calls", "unpriced"):
        assert sum(records.integer(row, key) or 0 for row in models) == tokens[key]
    costs = [row["cost"] for row in models]
    assert sum((Decimal(str(cost)) for cost in costs), Decimal(0)) == Decimal(str(tokens["cost"]))
    parts = [records.integer(tokens, key) or 0 for key in ("rootTotal", "otherTotal", "looseTotal")]
    assert sum(parts) == tokens["total"] == meter.total.total
    assert meter.total.total >= meter.total.input + meter.total.output

"""The end of a run, read from output that anything in the box can write to."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.box.exitline import has_runner_line, last_exit, parse_line, read_telemetry
from pidispatch.box.run import ContainerEnd
from pidispatch.box.tail import Tail
from pidispatch.runs.classify import classify
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Completed, InfraFailed
from pidispatch.values.reason import Reason
from pidispatch.values.usage import Context

ROW = {"provider": "anthropic", "model": "m", "calls": 1, "input": 2, "output": 3, "total": 5, "cost": 0.25}


def exit_line(**fields: Any) -> str:
    return json.dumps({"event": "exit", "jobId": "x", "code": 0} | fields, separators=(",", ":"))


def usage(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"v": 1, "piAi": "1.6.0", "truncated": 0, "models": list(rows)}


@pytest.mark.example("ch3 E7", "an exit line behind stray bytes is recovered; one that was cut is nothing")
def test_a_glued_line_is_recovered_and_a_cut_one_is_not() -> None:
    line = 'progress 42%{"event":"exit","jobId":"x","code":0,"turns":3}'

    assert read_telemetry(line).turns == 3
    assert read_telemetry(line[:-1]).turns is None
    assert read_telemetry('{"event":"pi_auto_retry"' + exit_line(turns=4)).turns == 4


@pytest.mark.example("ch3 E8", "the last exit line decides, also where it is malformed")
def test_the_last_exit_line_decides() -> None:
    assert read_telemetry(exit_line(turns=99) + "\n" + exit_line(turns="x")).turns is None
    assert read_telemetry(exit_line(turns=99) + "\n" + exit_line(turns=2)).turns == 2


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({"tokens": 1e21, "window": 200000}, None),
        ({"tokens": 0, "window": 1}, Context(tokens=0, window=1)),
        ({"tokens": 0, "window": 0}, None),
        ({"tokens": True, "window": 1}, None),
        ({"tokens": -1, "window": 1}, None),
        ({"tokens": 3.0, "window": 10}, Context(tokens=3, window=10)),
        ({"tokens": 2**53, "window": 2**53}, None),
        (None, None),
        ([1, 2], None),
    ],
)
@pytest.mark.example("ch3 E9", "a context is kept only when both numbers are safe integers")
def test_context(context: object, expected: Context | None) -> None:
    assert read_telemetry(exit_line(context=context)).context == expected


@pytest.mark.example("ch3 E10", "the usage block is rebuilt whole from checked parts, or dropped whole")
def test_usage_is_rebuilt_or_dropped() -> None:
    kept = read_telemetry(exit_line(usage=usage(ROW | {"model": "Claude-X", "note": "dropped"}))).usage

    assert kept is not None
    assert kept.models[0].model == "claude-x"
    assert kept.models[0].reasoning == 0
    assert kept.models[0].cost == Decimal("0.25")
    assert "note" not in kept.model_dump_json()
    for rows in ([ROW | {"model": "../etc"}], [ROW] * 10, [], [ROW | {"cost": None}], [ROW | {"total": -1}], ["row"]):
        assert read_telemetry(exit_line(usage=usage() | {"models": rows})).usage is None
    for field, value in (("v", 0), ("v", True), ("piAi", "1.6"), ("truncated", -1), ("models", {})):
        assert read_telemetry(exit_line(usage=usage(ROW) | {field: value})).usage is None


@pytest.mark.example("ch3 E11", "an exit line within the kept tail is found; one pushed out of it leaves nothing")
def test_the_tail_bounds_what_is_read() -> None:
    def tail_of(*chunks: str) -> str:
        tail = Tail(Limits(), lambda _: None)
        for chunk in chunks:
            tail.write(chunk.encode())
        return tail.text()

    line = exit_line(turns=7, pad="p" * 250)
    assert read_telemetry(tail_of("n" * 20_000, "\n" + line + "\n")).turns == 7
    pushed_out = read_telemetry(tail_of("\n" + line + "\n", "n" * 9_000))
    assert pushed_out == read_telemetry("")
    for code, outcome in ((0, Completed()), (1, InfraFailed(reason=Reason.INFRA, cause="exit-1"))):
        end = ContainerEnd(code=code, tail=tail_of("\n" + line + "\n", "n" * 9_000), seconds=1.0)
        assert classify(end)[0] == outcome


def test_tokens_keep_numbers_and_switches_only() -> None:
    tokens = {"total": 5, "cost": 0.1, "metered": True, "note": "text", "a secret": True, "b": 1, "calls": {"a": 1}}

    assert read_telemetry(exit_line(tokens=tokens)).tokens == {"total": 5, "cost": Decimal("0.1"), "metered": True}
    assert read_telemetry(exit_line(tokens={"total": "5"})).tokens is None
    assert read_telemetry(exit_line(tokens={"input": 5})).tokens is None


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "1e9999999", "-1e9999999", "9" * 5000])
def test_numbers_that_are_none_are_refused(number: str) -> None:
    text = f'{{"event":"exit","jobId":"x","turns":{number},"tokens":{{"total":{number}}}}}'

    read = read_telemetry(text)
    assert (read.tokens, read.turns) == (None, None)
    context = f'{{"event":"exit","jobId":"x","context":{{"tokens":{number},"window":{number}}}}}'
    assert read_telemetry(context).context is None

    assert read_telemetry(text).tokens is None


def test_reason_and_message() -> None:
    read = read_telemetry(exit_line(reason="turn_budget", message="m" * 3000, truncated=True))

    assert read.reason == "turn_budget"
    assert read.message == "m" * 2000
    assert read.truncated
    assert read_telemetry(exit_line(reason="unknown-stop-reason:new-word")).reason == "unknown-stop-reason"
    assert read_telemetry(exit_line(reason="rm -rf /")).reason is None
    assert read_telemetry(exit_line(reason=7)).reason is None


def test_lines_are_split_at_line_feeds_alone() -> None:
    assert read_telemetry(exit_line(turns=1, message="a\u2028b\u0085c")).turns == 1
    assert read_telemetry("noise\r\n" + exit_line(turns=2) + "\r\n").turns == 2


def test_a_deep_nesting_ends_nothing() -> None:
    deep = '{"event":"exit","x":' + "[" * 100_000
    assert parse_line(deep) is None
    assert not has_runner_line("plain text\n")
    assert has_runner_line('x{"event":"turn","jobId":"a","turns":1}\n')


@given(st.text())
def test_reading_never_raises(text: str) -> None:
    read_telemetry(text)
    assert has_runner_line(text) in (True, False)


@given(
    noise=st.text(st.characters(exclude_characters='"\n', exclude_categories=["Cs"]), max_size=40),
    message=st.text(max_size=60),
    turns=st.integers(0, 10**6),
)
def test_whatever_stands_before_it_the_last_line_is_recovered(noise: str, message: str, turns: int) -> None:
    text = exit_line(turns=1) + "\n" + noise + exit_line(turns=turns, message=message) + "\n"

    found = last_exit(text)
    assert found is not None
    assert found["turns"] == turns

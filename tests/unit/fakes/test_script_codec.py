"""Scripts survive JSON, and what is no script is refused with its place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.model import (
    CATALOGUE,
    Call,
    Calls,
    Cut,
    Echo,
    Fault,
    Hang,
    Length,
    NoUsage,
    Say,
    Scenario,
    Slow,
    Step,
    Usage,
)
from tests.fakes.model.codec import CodecError, dumps, loads

TEXT = st.text(max_size=40)
TIMES = st.none() | st.integers(min_value=1, max_value=9)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
CALL = st.builds(Call, st.text(min_size=1, max_size=10), st.dictionaries(TEXT, JSON, max_size=3))
STEADY: st.SearchStrategy[Step] = st.one_of(
    st.builds(Say, TEXT),
    st.builds(Echo, TEXT),
    CALL,
    st.builds(Calls, st.lists(CALL, min_size=1, max_size=3).map(tuple)),
    st.builds(Slow, TEXT, st.floats(min_value=0, max_value=9), st.integers(min_value=1, max_value=9)),
    st.builds(Length, TEXT),
    st.builds(NoUsage, TEXT),
)
ANY: st.SearchStrategy[Step] = st.one_of(
    STEADY,
    st.builds(Fault, st.integers(min_value=400, max_value=599), TEXT, TIMES),
    st.builds(Cut, TEXT, TIMES),
    st.builds(Hang, TIMES),
)
COUNT = st.integers(min_value=0, max_value=10**9)
USAGE = st.none() | st.builds(Usage, COUNT, COUNT, COUNT, COUNT)


@given(st.text(min_size=1, max_size=10), st.lists(ANY, max_size=4), STEADY, USAGE)
def test_any_scenario_survives_json(name: str, first: list[Step], last: Step, usage: Usage | None) -> None:
    scenarios = {name: Scenario(name, (*first, last), usage)}
    assert loads(dumps(scenarios)) == scenarios


def test_the_catalogue_survives_json() -> None:
    assert loads(dumps(CATALOGUE)) == CATALOGUE


def test_fields_with_a_default_may_be_left_out() -> None:
    text = '{"x": {"steps": [{"step": "fault", "status": 503, "message": "m"}, {"step": "echo"}]}}'
    assert loads(text) == {"x": Scenario("x", (Fault(503, "m"), Echo()))}


def _with(step: object) -> str:
    return json.dumps({"x": {"steps": [step]}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1, column 2: not JSON"),
        ("[]", "document: expected an object, got []"),
        ('{"x": {}}', "x.steps: missing"),
        ('{"x": {"steps": [], "stpes": []}}', "x.stpes: unknown key; allowed: steps, usage"),
        ('{"x": {"steps": {}}}', "x.steps: expected a list, got {}"),
        ('{"x": {"steps": []}}', "x: scenario x: needs at least one step"),
        ('{"": {"steps": [{"step": "echo"}]}}', ": a scenario needs a name"),
        ('{"x": {"steps": [{"step": "echo"}], "steps": []}}', "steps: this key stands twice"),
        ('{"x": {"steps": [{"step": "slow", "text": "", "chunk_delay_s": NaN}]}}', "NaN: not JSON"),
        (_with("say"), 'x.steps[0]: expected an object, got "say"'),
        (_with({"text": "hi"}), 'x.steps[0]: has no "step"; write one of say, echo, call'),
        (_with({"step": "sing"}), "x.steps[0].step: unknown step 'sing'; write one of say"),
        (_with({"step": "say"}), "x.steps[0].text: missing"),
        (_with({"step": "say", "text": 3}), "x.steps[0].text: expected a string, got 3"),
        (_with({"step": "say", "text": "\ud800"}), "x.steps[0].text: not UTF-8"),
        (_with({"step": "say", "text": "a", "loud": True}), "x.steps[0].loud: unknown key; allowed: text"),
        (_with({"step": "call", "tool": "", "arguments": {}}), "x.steps[0]: a call needs the name of a tool"),
        (_with({"step": "call", "tool": "b", "arguments": ["x" * 99]}), "x.steps[0].arguments: expected an object"),
        (_with({"step": "calls", "calls": []}), "x.steps[0]: calls needs at least one call"),
        (_with({"step": "calls", "calls": [{"tool": "b"}]}), "x.steps[0].calls[0].arguments: missing"),
        (_with({"step": "fault", "status": 200, "message": ""}), "x.steps[0]: a fault's status is 400 to 599"),
        (_with({"step": "fault", "status": True, "message": ""}), "x.steps[0].status: expected a whole number"),
        (_with({"step": "cut", "after_text": "", "times": 0}), "x.steps[0]: times is 1 or more"),
        (_with({"step": "hang", "times": 2}), "x: scenario x: the last step repeats for ever"),
        (_with({"step": "slow", "text": "", "chunk_delay_s": "1", "chunks": 1}), "chunk_delay_s: expected a number"),
        (_with({"step": "slow", "text": "", "chunk_delay_s": -1, "chunks": 1}), "x.steps[0]: slow cannot wait -1.0 s"),
        (_with({"step": "slow", "text": "", "chunk_delay_s": 1, "chunks": 0}), "x.steps[0]: slow needs at least 1"),
        ('{"x": {"steps": [{"step": "echo"}], "usage": {"input": -1}}}', "x.usage: token counts cannot be negative"),
        ('{"x": {"steps": [{"step": "echo"}], "usage": {"total": 1}}}', "x.usage.total: unknown key"),
    ],
)
def test_what_is_no_script_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(CodecError) as caught:
        loads(text)
    assert message in str(caught.value)


def test_a_key_that_is_not_the_scenarios_name_is_refused() -> None:
    with pytest.raises(CodecError, match="y: the scenario calls itself 'x'"):
        dumps({"y": Scenario("x", (Say("hi"),))})

"""The stops from outside, as state machines over event names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pirunner.budget import Stop, TokenBackstop, TurnBackstop
from pirunner.records import Record

TOOL_TURN: Record = {"type": "turn_end", "toolResults": [{}]}
FINAL_TURN: Record = {"type": "turn_end", "toolResults": []}


def _feed(backstop: TurnBackstop, *events: str) -> list[Stop]:
    return [backstop.observe(event) for event in events]


@pytest.mark.example("ch3 E19", "A retry of a turn in which no tool ran is free; one after a tool ran is a turn more.")
def test_retry_turns_and_the_budget() -> None:
    exempt = TurnBackstop(1)
    assert _feed(exempt, "turn_start", "auto_retry_start", "turn_start") == [Stop.NO] * 3
    assert (exempt.turns, exempt.retry_turns, exempt.tripped) == (1, 1, False)

    counted = TurnBackstop(1)
    stops = _feed(counted, "turn_start", "tool_execution_start", "auto_retry_start", "turn_start")
    assert stops == [Stop.NO, Stop.NO, Stop.NO, Stop.FIRST]
    assert (counted.turns, counted.retry_turns, counted.tripped) == (2, 0, True)
    assert counted.observe("turn_start") is Stop.AGAIN


@pytest.mark.parametrize("disarming", ["auto_retry_end", "agent_settled"])
def test_exemption_ends_with_the_retry(disarming: str) -> None:
    backstop = TurnBackstop(1)
    assert _feed(backstop, "turn_start", "auto_retry_start", disarming, "turn_start")[-1] is Stop.FIRST


def test_exemption_is_used_up_by_one_turn() -> None:
    backstop = TurnBackstop(1)
    stops = _feed(backstop, "turn_start", "auto_retry_start", "turn_start", "turn_start")
    assert stops[-2:] == [Stop.NO, Stop.FIRST]


def test_tool_of_an_earlier_turn_does_not_matter() -> None:
    backstop = TurnBackstop(2)
    _feed(backstop, "turn_start", "tool_execution_start", "turn_start", "auto_retry_start", "turn_start")
    assert (backstop.turns, backstop.retry_turns, backstop.tripped) == (2, 1, False)


def test_last_turn_with_tool_results_stops_at_once() -> None:
    backstop = TurnBackstop(2)
    assert backstop.turn_ended(TOOL_TURN, 1) is Stop.NO
    assert backstop.turn_ended(FINAL_TURN, 2) is Stop.NO
    assert backstop.turn_ended(TOOL_TURN, 2) is Stop.FIRST
    assert backstop.turn_ended(TOOL_TURN, 3) is Stop.AGAIN


@given(
    st.integers(min_value=1, max_value=6),
    st.lists(st.sampled_from(["turn_start", "tool_execution_start", "auto_retry_start", "auto_retry_end", "other"])),
)
def test_every_turn_past_the_maximum_is_aborted_and_announced_once(maximum: int, events: list[str]) -> None:
    backstop = TurnBackstop(maximum)
    stops = _feed(backstop, *events)
    assert backstop.turns + backstop.retry_turns == events.count("turn_start")
    assert len([stop for stop in stops if stop is not Stop.NO]) == max(0, backstop.turns - maximum)
    assert stops.count(Stop.FIRST) == int(backstop.turns > maximum) == int(backstop.tripped)


def test_tokens_stop_past_the_cap_when_more_would_follow() -> None:
    backstop = TokenBackstop(100)
    assert backstop.observe(TOOL_TURN, 100) is Stop.NO
    assert backstop.observe(FINAL_TURN, 101) is Stop.NO
    assert backstop.observe({"type": "message_end"}, 101) is Stop.NO
    assert not backstop.tripped
    assert backstop.observe(TOOL_TURN, 101) is Stop.FIRST
    assert backstop.observe({"type": "turn_start"}, 101) is Stop.AGAIN
    assert backstop.tripped


def test_no_token_cap() -> None:
    assert TokenBackstop(None).observe(TOOL_TURN, 10**12) is Stop.NO

"""Which step answers which request."""

from __future__ import annotations

import pytest

from tests.fakes.model import CATALOGUE, Call, Echo, Fault, Say, Scenario, Step
from tests.fakes.model.ask import Ask
from tests.fakes.model.director import SUMMARY, Director, UnknownModel

DOWN = Fault(503, "down", 2)


def asking(turn: int, model: str = "m", *, has_tools: bool = True, prompt: str = "") -> Ask:
    return Ask("openai", model, turn, has_tools, prompt, wants_usage=True)


def director(*steps: Step) -> Director:
    return Director({name: Scenario(name, steps) for name in ("m", "other")})


def test_the_turn_picks_the_step_and_the_last_one_repeats() -> None:
    told = director(Say("a"), Say("b"))
    assert [told.step(asking(turn), "k") for turn in (0, 1, 2, 9, 0)] == [
        Say("a"),
        Say("b"),
        Say("b"),
        Say("b"),
        Say("a"),
    ]


def test_a_bounded_fault_stands_aside_once_it_is_used_up() -> None:
    told = director(Say("a"), DOWN, Say("b"))
    assert told.step(asking(0), "k") == Say("a")
    assert [told.step(asking(1), "k") for _ in range(4)] == [DOWN, DOWN, Say("b"), Say("b")]
    assert told.step(asking(0), "k") == Say("a")


def test_a_bounded_fault_counts_for_each_key_and_model_alone() -> None:
    told = director(DOWN, Say("up"))
    for key, model in (("k1", "m"), ("k2", "m"), ("k1", "other")):
        assert [told.step(asking(0, model), key) for _ in range(3)] == [DOWN, DOWN, Say("up")]


def test_an_unbounded_fault_stays() -> None:
    for_ever = Fault(500, "broken")
    assert [director(for_ever).step(asking(turn), "k") for turn in (0, 0, 5)] == [for_ever] * 3


def test_echo_says_the_prompt_back() -> None:
    assert director(Echo("You said: ")).step(asking(0, prompt="hello"), "k") == Say("You said: hello")


def test_a_request_without_tools_gets_text() -> None:
    told = director(Call("bash", {}), Say("b"))
    assert told.step(asking(0, has_tools=False), "k") == Say(SUMMARY)
    assert told.step(asking(1, has_tools=False), "k") == Say("b")


def test_an_unknown_model_is_no_scenario() -> None:
    with pytest.raises(UnknownModel, match="nope"):
        director(Say("a")).step(asking(0, "nope"), "k")


def test_every_name_in_the_catalogue_is_its_scenarios_own() -> None:
    assert CATALOGUE["edit"].steps[0] == Call("write", {"path": "hello.txt", "content": "hello world\n"})
    assert all(name == scenario.name for name, scenario in CATALOGUE.items())

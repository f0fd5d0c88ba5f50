"""Parsing of the runner's variables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pirunner.environment import MAX_SAFE_INTEGER, NOT_SERVED, parse, secrets
from pirunner.refusal import Refusal, RefusalReason

BASE = {"PI_PROVIDER": "anthropic", "PI_MODEL": "m", "PI_MAX_TURNS": "30"}
NUMBERS = ("PI_MAX_TURNS", "PI_MAX_TOKENS", "PI_RETRY_MAX", "PI_RETRY_BASE_MS")


def _message(environ: dict[str, str]) -> str:
    with pytest.raises(Refusal) as caught:
        parse(environ)
    assert caught.value.reason is RefusalReason.CONFIG
    return caught.value.message


def test_defaults() -> None:
    parsed = parse(BASE)
    assert (parsed.provider, parsed.model, parsed.max_turns) == ("anthropic", "m", 30)
    assert (parsed.max_tokens, parsed.retry_max, parsed.retry_base_ms) == (None, 2, 2000)
    assert (parsed.flow, parsed.home) == ("", "")


def test_everything_set() -> None:
    given_values = {
        "PI_MAX_TOKENS": "5",
        "PI_RETRY_MAX": "7",
        "PI_RETRY_BASE_MS": "9",
        "PI_FLOW": " any/text ",
        "HOME": "/h",
    }
    parsed = parse({**BASE, **given_values})
    assert (parsed.max_tokens, parsed.retry_max, parsed.retry_base_ms) == (5, 7, 9)
    assert (parsed.flow, parsed.home) == (" any/text ", "/h")


@pytest.mark.parametrize("name", ["PI_PROVIDER", "PI_MODEL", "PI_MAX_TURNS"])
@pytest.mark.parametrize("value", [None, ""])
def test_required(name: str, value: str | None) -> None:
    environ = {key: text for key, text in BASE.items() if key != name}
    assert _message(environ if value is None else {**environ, name: value}).startswith(f"{name} is not set")


@pytest.mark.parametrize("name", ["PI_MAX_TOKENS", "PI_RETRY_MAX", "PI_RETRY_BASE_MS"])
def test_empty_optional_number_is_absent(name: str) -> None:
    assert parse({**BASE, name: ""}) == parse(BASE)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(
    "value",
    ["0", "-1", "+1", "01", "1.0", "1e3", " 1", "1 ", "1\n", "1_000", "٣", "x", str(MAX_SAFE_INTEGER + 1), "9" * 5000],
)
def test_numbers_have_one_spelling(name: str, value: str) -> None:
    assert _message({**BASE, name: value}).startswith(f"{name} must be an integer of at least 1")


@given(st.integers(min_value=1, max_value=MAX_SAFE_INTEGER))
def test_every_positive_integer_round_trips(number: int) -> None:
    assert parse({**BASE, "PI_MAX_TURNS": str(number)}).max_turns == number


@pytest.mark.parametrize("name", NOT_SERVED)
def test_unserved_variable_is_refused_unless_empty(name: str) -> None:
    assert _message({**BASE, name: "x"}) == f"{name} is not served by this image"
    assert parse({**BASE, name: ""}) == parse(BASE)


def test_secrets_are_what_is_named_so() -> None:
    environ = {
        "ANTHROPIC_API_KEY": "key-longer-than-others",
        "GITHUB_TOKEN": "token-of-github",
        "DB_PASSWORD": "short",
        "PI_MAX_TOKENS": "1234567890",
        "SOME_TOKEN": "1234567890",
        "PATH": "/usr/local/bin",
    }
    assert secrets(environ) == ("key-longer-than-others", "token-of-github")

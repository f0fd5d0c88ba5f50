"""The receiver's variables, and what may not be forwarded because of it."""

import pytest

from pidispatch.config.receiver_settings import host_and_port
from pidispatch.config.settings import load_settings
from pidispatch.values.errors import ConfigError
from pidispatch.values.forge import FORGES
from pidispatch.values.names import NEVER_FORWARDED


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RECEIVER_PORT", "RECEIVER_BIND", "RECEIVER_IDENTITY_RETRY_SECONDS", "RECEIVER_HEALTH_BIND"):
        monkeypatch.delenv(name, raising=False)


def test_defaults() -> None:
    found = load_settings()
    assert (found.receiver_port, found.receiver_bind) == (3000, "0.0.0.0")
    assert (found.receiver_identity_retry_seconds, found.receiver_health_bind) == (600, None)


@pytest.mark.parametrize(("text", "seconds"), [("1", 60), ("59", 60), ("60", 60), ("61", 61), ("", 600)])
def test_a_short_patience_is_made_longer(monkeypatch: pytest.MonkeyPatch, text: str, seconds: int) -> None:
    monkeypatch.setenv("RECEIVER_IDENTITY_RETRY_SECONDS", text)
    assert load_settings().receiver_identity_retry_seconds == seconds


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("RECEIVER_PORT", "0", "must be from 1 to 65535"),
        ("RECEIVER_PORT", "65536", "must be from 1 to 65535"),
        ("RECEIVER_PORT", "http", "must be a whole number"),
        ("RECEIVER_BIND", " 127.0.0.1", "without blanks around it"),
        ("RECEIVER_BIND", "http://x", "without a port"),
        ("RECEIVER_BIND", "\u00e9", "without a port"),
        ("RECEIVER_IDENTITY_RETRY_SECONDS", "0", "must be 1 or more"),
        ("RECEIVER_IDENTITY_RETRY_SECONDS", "1.5", "must be a whole number"),
        ("RECEIVER_IDENTITY_RETRY_SECONDS", "-5", "must be a whole number"),
        ("RECEIVER_HEALTH_BIND", "3001", "must be an address and a port"),
        ("RECEIVER_HEALTH_BIND", "localhost:0", "must be from 1 to 65535"),
        ("RECEIVER_HEALTH_BIND", "::1:3001", "must be an address and a port"),
    ],
)
def test_refusals(monkeypatch: pytest.MonkeyPatch, name: str, text: str, words: str) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(ConfigError, match=words) as caught:
        load_settings()
    assert caught.value.message.startswith(f"{name}='{text}' ")
    assert f"Write for example: {name}=" in caught.value.message


@pytest.mark.parametrize(
    ("text", "place"),
    [("127.0.0.1:3001", ("127.0.0.1", 3001)), ("[::1]:1", ("::1", 1)), ("a-b.example:65535", ("a-b.example", 65535))],
)
def test_a_place(text: str, place: tuple[str, int]) -> None:
    assert host_and_port(text) == place


def test_no_token_of_a_forge_and_no_secret_of_a_webhook_is_forwarded() -> None:
    assert {name for row in FORGES.values() for name in row.token_variables} <= set(NEVER_FORWARDED)
    assert {"WEBHOOK_SECRET", "GITLAB_WEBHOOK_SECRET", "FORGEJO_WEBHOOK_SECRET", "AZURE_WEBHOOK_SECRET"} <= set(
        NEVER_FORWARDED
    )

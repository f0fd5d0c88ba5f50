"""The key that pi keeps itself: taken only where it is a plain one."""

import json
import os
from pathlib import Path

import pytest

from pidispatch.box.authfile import StoredKey, stored_key
from pidispatch.values.errors import InfraError

KEY = {"type": "api_key", "key": "sk-1"}


def write(folder: Path, document: object) -> Path:
    (folder / "auth.json").write_text(document if isinstance(document, str) else json.dumps(document))
    return folder


@pytest.mark.parametrize(
    ("provider", "variable"),
    [("anthropic", "ANTHROPIC_API_KEY"), ("openai", "OPENAI_API_KEY"), ("google", "GEMINI_API_KEY")],
)
def test_a_plain_key_goes_under_the_name_of_the_api_key(tmp_path: Path, provider: str, variable: str) -> None:
    write(tmp_path, {provider: KEY, "other": {"type": "oauth"}})
    assert stored_key(provider, tmp_path, {}) == StoredKey(variables={variable: "sk-1"})


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"type": "oauth", "access": "x"}, "is a login"),
        ({"key": "sk-1"}, "is a login"),
        ("sk-1", "is a login"),
        ({"type": "api_key", "key": "!pass show key"}, "no literal key"),
        ({"type": "api_key", "key": "$ANTHROPIC_KEY"}, "no literal key"),
        ({"type": "api_key", "key": "pre${X}"}, "no literal key"),
        ({"type": "api_key", "key": ""}, "no literal key"),
        ({"type": "api_key", "key": 7}, "no literal key"),
        ({"type": "api_key"}, "no literal key"),
        ({"type": "api_key", "key": "a\0b"}, "no literal key"),
        ({**KEY, "env": {"AZURE_BASE": "x"}}, "PI_FORWARD_ENV"),
        ({**KEY, "env": ["AZURE_BASE"]}, "PI_FORWARD_ENV"),
    ],
)
def test_anything_else_is_not_taken_and_says_why(tmp_path: Path, entry: object, why: str) -> None:
    found = stored_key("anthropic", write(tmp_path, {"anthropic": entry}), {})
    assert found.variables == {}
    assert why in str(found.refused)


def test_companions_that_are_forwarded_anyway_do_no_harm(tmp_path: Path) -> None:
    write(tmp_path, {"anthropic": {**KEY, "env": {"BASE": "x"}}})
    assert stored_key("anthropic", tmp_path, {"BASE": "y"}).variables == {"ANTHROPIC_API_KEY": "sk-1"}
    assert stored_key("anthropic", tmp_path, {"BASE": ""}).variables == {}


@pytest.mark.parametrize(
    "document", ["", "{", "[]", "null", "7", {}, {"openai": KEY}, "[" * 100_000, '{"a":"' + "x" * 2**20 + '"}']
)
def test_a_file_without_the_entry_gives_none(tmp_path: Path, document: object) -> None:
    assert stored_key("anthropic", write(tmp_path, document), {}) == StoredKey()


def test_no_file_and_no_such_provider_give_none(tmp_path: Path) -> None:
    assert stored_key("anthropic", tmp_path / "nowhere", {}) == StoredKey()
    assert stored_key("acme", write(tmp_path, {"acme": KEY}), {}) == StoredKey()


def test_a_file_that_cannot_be_read_now_is_a_fault(tmp_path: Path) -> None:
    os.mkdir(tmp_path / "auth.json")
    with pytest.raises(InfraError) as caught:
        stored_key("anthropic", tmp_path, {})
    assert caught.value.cause == "auth-unreadable"
    assert str(tmp_path) not in caught.value.message


def test_the_key_is_not_shown_by_accident(tmp_path: Path) -> None:
    assert "sk-1" not in repr(stored_key("anthropic", write(tmp_path, {"anthropic": KEY}), {}))

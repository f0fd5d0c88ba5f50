"""The overlay: one file, no link, no credential."""

import json
from pathlib import Path

import pytest

from pidispatch.box.overlay import check_overlay
from pidispatch.values.errors import ConfigError

MODEL = {"baseUrl": "http://model.test:443", "models": [{"id": "edit", "maxTokens": 4096}]}


def overlay(tmp_path: Path, document: object) -> Path:
    (tmp_path / "models.json").write_text(json.dumps(document))
    return tmp_path


def test_an_empty_overlay_and_a_plain_model_list_are_served(tmp_path: Path) -> None:
    check_overlay(tmp_path)
    check_overlay(overlay(tmp_path, {"providers": {"anthropic": MODEL | {"apiKey": "$NAME", "headers": {"x-a": "b"}}}}))
    assert (tmp_path / "models.json").exists()


def test_what_is_not_served_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    (tmp_path / "auth.json").touch()

    with pytest.raises(ConfigError, match=r"'auth\.json', 'skills'"):
        check_overlay(tmp_path)


@pytest.mark.parametrize(
    ("provider", "place"),
    [
        ({"apiKey": "sk-1"}, "providers.anthropic.apiKey"),
        ({"apiKey": "!pass show key"}, "providers.anthropic.apiKey"),
        ({"headers": {"Authorization": "Bearer x"}}, "providers.anthropic.headers.Authorization"),
        ({"headers": {"X-Api-Key": "x"}}, "providers.anthropic.headers.X-Api-Key"),
        ({"models": [{"id": "m", "headers": {"cookie": "x"}}]}, "providers.anthropic.models[0].headers.cookie"),
    ],
)
def test_a_credential_is_refused_at_its_place(tmp_path: Path, provider: dict[str, object], place: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check_overlay(overlay(tmp_path, {"providers": {"anthropic": MODEL | provider}}))
    assert place in raised.value.message
    assert "sk-1" not in raised.value.message


def test_a_file_that_is_no_model_list_is_refused(tmp_path: Path) -> None:
    for text in ("{", "[]", '{"providers": []}', "[" * 100_000):
        (tmp_path / "models.json").write_text(text)
        with pytest.raises(ConfigError):
            check_overlay(tmp_path)


def test_a_link_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.json"
    target.write_text("{}")
    folder = tmp_path / "overlay"
    folder.mkdir()
    (folder / "models.json").symlink_to(target)

    with pytest.raises(ConfigError, match="not a link"):
        check_overlay(folder)

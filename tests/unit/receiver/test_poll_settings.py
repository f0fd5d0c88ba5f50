"""The poller's variables."""

import pytest

from pidispatch.config.settings import Settings, load_settings
from pidispatch.values.errors import ConfigError


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POLL_REPOS", "POLL_INTERVAL_SECONDS"):
        monkeypatch.delenv(name, raising=False)


def test_defaults() -> None:
    found = load_settings()
    assert (found.poll_repos, found.poll_interval_seconds) == (None, 60)


@pytest.mark.parametrize(
    ("text", "repositories"),
    [
        ("acme/web", ("acme/web",)),
        (" acme/web ,acme/shop,", ("acme/web", "acme/shop")),
        ("acme/web,acme/shop,ACME/Web,acme/web", ("acme/web", "acme/shop")),
        ("a-b/.github", ("a-b/.github",)),
    ],
)
def test_repositories(monkeypatch: pytest.MonkeyPatch, text: str, repositories: tuple[str, ...]) -> None:
    monkeypatch.setenv("POLL_REPOS", text)
    assert load_settings().poll_repos == repositories


def test_a_list_that_is_one_stays_so() -> None:
    assert Settings.model_validate({"POLL_REPOS": ("acme/web",)}).poll_repos == ("acme/web",)


@pytest.mark.parametrize(
    "text",
    ["", " ", ",", "web", "acme/", "/web", "acme/web/x", "acme web/x", "acme/web shop/x", "acme/..", "./web", "a/b?c"],
)
def test_what_names_no_repository_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("POLL_REPOS", text)
    with pytest.raises(ConfigError, match="must be one repository or several") as caught:
        load_settings()
    assert caught.value.message.endswith("Write for example: POLL_REPOS=acme/web,acme/shop")


@pytest.mark.parametrize(("text", "seconds"), [("1", 30), ("29", 30), ("30", 30), ("31", 31), ("", 60)])
def test_a_short_interval_is_made_longer(monkeypatch: pytest.MonkeyPatch, text: str, seconds: int) -> None:
    monkeypatch.setenv("POLL_INTERVAL_SECONDS", text)
    assert load_settings().poll_interval_seconds == seconds


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "a minute"])
def test_what_is_no_interval_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("POLL_INTERVAL_SECONDS", text)
    with pytest.raises(ConfigError, match=r"POLL_INTERVAL_SECONDS"):
        load_settings()

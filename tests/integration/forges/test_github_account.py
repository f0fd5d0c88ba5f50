"""Whose word counts at GitHub, and who this deployment is there: through PyGithub, on a real socket."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import github
import pytest

from pidispatch.config.clock import SystemClock
from pidispatch.forges.github.account import GitHubAccount
from pidispatch.forges.github.module import GITHUB
from pidispatch.forges.github.payload import project
from pidispatch.forges.protocol import Answer
from pidispatch.values.clock import Clock
from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.values.event import Authority, Event
from pidispatch.workspace import process
from tests.fakes.github import payloads
from tests.fakes.github.server import RESET, RETRY_AFTER_S, Fault, GitHubServer, other_key, private_key
from tests.support.clock import FakeClock
from tests.support.settings import settings_of

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
ASKED = "GET /repos/acme/web/collaborators/alice/permission"
MINT = "/app/installations/88/access_tokens"


def closed(login: Any = "alice", repo: Any = "acme/web") -> Event:
    return project({"x-github-event": "issues", "x-github-delivery": "d"}, payloads.closed(login=login, repo=repo))


def variables(hub: GitHubServer, **more: str) -> dict[str, str]:
    return {"GITHUB_API_URL": hub.url, "GITHUB_AUTH_SOURCE": "pat", "GITHUB_PAT": "pat-secret", **more}


def app_variables(hub: GitHubServer, **more: str) -> dict[str, str]:
    app = {
        "GITHUB_API_URL": hub.url,
        "GITHUB_AUTH_SOURCE": "app",
        "GITHUB_APP_ID": "77",
        "GITHUB_APP_INSTALLATION_ID": "88",
        "GITHUB_APP_PRIVATE_KEY": private_key().replace("\n", "\\n"),
    }
    return app | more


def account(environment: dict[str, str], clock: Clock | None = None, timeout_s: float = 10) -> GitHubAccount:
    chosen = clock or SystemClock()
    return GitHubAccount.of(settings_of(environment), environment, process, chosen, timeout_s)


@pytest.mark.parametrize(
    ("permission", "authority"),
    [("admin", Authority.YES), ("write", Authority.YES), ("read", Authority.NO), ("none", Authority.NO)],
)
def test_who_may_write_may_start_jobs(hub: GitHubServer, permission: str, authority: Authority) -> None:
    hub.permissions["acme/web", "alice"] = permission
    assert account(variables(hub)).authority(closed()) == Answer(authority)
    assert hub.paths() == [ASKED]
    assert (hub.asked[0].token, hub.asked[0].version) == ("pat-secret", "2022-11-28")


def test_whom_nobody_knows_may_not(hub: GitHubServer) -> None:
    assert account(variables(hub)).authority(closed("mallory")) == Answer(Authority.NO)


REFUSED = [
    (Fault.SERVER_ERROR, "lookup-server-error"),
    (Fault.BAD_GATEWAY, "lookup-server-error"),
    (Fault.BAD_CREDENTIALS, "lookup-refused"),
    (Fault.FORBIDDEN, "lookup-refused"),
    (Fault.FORBIDDEN_BY_A_PROXY, "lookup-refused"),
    (Fault.GONE, "lookup-refused"),
    (Fault.MOVED_PERMANENTLY, "lookup-redirected"),
    (Fault.FOUND, "lookup-redirected"),
    (Fault.TEMPORARY_REDIRECT, "lookup-redirected"),
    (Fault.ACCEPTED, "lookup-unfinished"),
    (Fault.GARBAGE, "lookup-unreadable"),
    (Fault.NO_JSON, "lookup-unreadable"),
    (Fault.DEEP, "lookup-unreadable"),
    (Fault.A_LIST, "lookup-unreadable"),
    (Fault.WRONG_SHAPE, "lookup-unreadable"),
    (Fault.UNKNOWN_WORD, "lookup-unreadable"),
    (Fault.HUGE, "lookup-unreadable"),
    (Fault.HANG_UP, "lookup-unreachable"),
    (Fault.CUT_OFF, "lookup-unreachable"),
]


@pytest.mark.parametrize(("fault", "reason"), REFUSED, ids=lambda one: getattr(one, "name", one))
def test_what_github_does_not_say_is_unknown(hub: GitHubServer, fault: Fault, reason: str) -> None:
    hub.faults["/repos/"] = fault
    assert account(variables(hub)).authority(closed()) == Answer(Authority.UNKNOWN, reason)
    # Asked once: nothing is followed, waited for, or tried again.
    assert hub.paths() == [ASKED]


@pytest.mark.parametrize(
    ("fault", "resets"),
    [
        (Fault.RATE_LIMITED, RESET),
        (Fault.TOO_MANY_REQUESTS, RESET),
        (Fault.SECONDARY_LIMIT, NOW + timedelta(seconds=RETRY_AFTER_S)),
        # It does not say: GitHub's own page asks for a minute.
        (Fault.LIMIT_IN_WORDS, NOW + timedelta(seconds=60)),
        (Fault.ODD_LIMIT, NOW + timedelta(seconds=60)),
    ],
)
def test_a_used_up_rate_limit_says_until_when(hub: GitHubServer, fault: Fault, resets: datetime) -> None:
    hub.faults["/repos/"] = fault
    answer = account(variables(hub), FakeClock(NOW)).authority(closed())
    assert answer == Answer(Authority.UNKNOWN, "lookup-rate-limited", resets)


def test_no_answer_in_time_is_unknown(hub: GitHubServer) -> None:
    hub.faults["/repos/"] = Fault.SLOW
    assert account(variables(hub), timeout_s=0.2).authority(closed()) == Answer(Authority.UNKNOWN, "lookup-timeout")


def test_an_answer_byte_by_byte_is_left_in_time(hub: GitHubServer) -> None:
    hub.faults["/repos/"] = Fault.DRIP
    assert account(variables(hub), timeout_s=0.3).authority(closed()) == Answer(Authority.UNKNOWN, "lookup-timeout")


def test_nobody_there_is_unknown() -> None:
    with GitHubServer() as gone:
        environment = variables(gone)
    assert account(environment).authority(closed()) == Answer(Authority.UNKNOWN, "lookup-unreachable")


@pytest.mark.parametrize(
    ("login", "repo"),
    [
        (None, "acme/web"),
        ("", "acme/web"),
        ("../../user", "acme/web"),
        ("..", "acme/web"),
        ("a b", "acme/web"),
        ("alice?x", "acme/web"),
        ("alice#x", "acme/web"),
        ("alice\u202e", "acme/web"),
        ("a" * 101, "acme/web"),
        ("alice", None),
        ("alice", "acme"),
        ("alice", "acme/web/x"),
        ("alice", "acme/.."),
    ],
)
def test_what_cannot_be_asked_about_may_not_and_is_not_asked(hub: GitHubServer, login: Any, repo: Any) -> None:
    assert account(variables(hub)).authority(closed(login, repo)) == Answer(Authority.NO)
    assert hub.paths() == []


def test_a_name_with_odd_characters_stays_one_part_of_the_address(hub: GitHubServer) -> None:
    hub.permissions["acme/web", "a%2Fb[bot]"] = "write"
    assert account(variables(hub)).authority(closed("a%2Fb[bot]")) == Answer(Authority.YES)


def test_an_enterprise_server_answers_below_its_path(hub: GitHubServer) -> None:
    hub.prefix = "/api/v3"
    assert account(variables(hub)).authority(closed()) == Answer(Authority.YES)


@pytest.mark.parametrize("fault", [Fault.SERVER_ERROR, Fault.RATE_LIMITED, Fault.HANG_UP, Fault.WRONG_SHAPE])
def test_nothing_is_logged_and_no_token_is_told(
    hub: GitHubServer, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    hub.faults["/"] = fault
    one = account(variables(hub))
    with caplog.at_level(logging.DEBUG):
        one.authority(closed())
        with pytest.raises(InfraError) as caught:
            one.identity()
    told = f"{caplog.text}{caught.value.message}{caught.value!r}{one!r}{vars(one)}"
    assert "pat-secret" not in told
    assert "alice" not in told
    assert caplog.records == []


def test_the_identity_is_the_user_of_the_token(hub: GitHubServer) -> None:
    assert account(variables(hub)).identity().id == 9001
    assert hub.paths() == ["GET /user"]


def test_the_module_makes_the_account(hub: GitHubServer) -> None:
    environment = variables(hub)
    assert GITHUB.account(settings_of(environment), environment, process).identity().id == 9001


@pytest.mark.parametrize("fault", [Fault.BAD_CREDENTIALS, Fault.FORBIDDEN, Fault.NOT_FOUND])
def test_a_refused_token_ends_the_start(hub: GitHubServer, fault: Fault) -> None:
    hub.faults["/user"] = fault
    with pytest.raises(ConfigError, match="does not take the token in GITHUB_PAT: HTTP 40"):
        account(variables(hub)).identity()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault.SERVER_ERROR, "lookup-server-error, HTTP 500. Try again; check"),
        (Fault.RATE_LIMITED, "lookup-rate-limited, HTTP 403. Try again, not before 2030-01-02T03:04:05Z"),
        (Fault.MOVED_PERMANENTLY, "lookup-redirected, HTTP 301"),
        (Fault.HANG_UP, "lookup-unreachable. Try again"),
        (Fault.WRONG_SHAPE, "lookup-unreadable"),
        (Fault.UNKNOWN_WORD, "lookup-unreadable"),
    ],
)
def test_what_may_pass_is_tried_again(hub: GitHubServer, fault: Fault, words: str) -> None:
    hub.faults["/user"] = fault
    with pytest.raises(InfraError) as caught:
        account(variables(hub)).identity()
    assert words in caught.value.message
    assert hub.url in caught.value.message


def test_the_token_is_read_from_the_variable_that_is_named(hub: GitHubServer) -> None:
    hub.tokens = {"other": 9003}
    assert account(variables(hub, GITHUB_PAT_VAR="MINE", MINE="other\n")).identity().id == 9003


def test_an_app_asks_with_a_token_for_one_repository_that_reads_no_more_than_its_metadata(hub: GitHubServer) -> None:
    assert account(app_variables(hub)).authority(closed()) == Answer(Authority.YES)
    assert hub.paths() == [f"POST {MINT}", ASKED]
    assert hub.asked[0].body == {"repositories": ["web"], "permissions": {"metadata": "read"}}
    assert hub.asked[1].token == next(iter(hub.minted))


def test_an_app_makes_a_token_for_each_question(hub: GitHubServer) -> None:
    one = account(app_variables(hub))
    hub.permissions["acme/shop", "alice"] = "read"
    assert [one.authority(closed()), one.authority(closed(repo="acme/shop"))] == [
        Answer(Authority.YES),
        Answer(Authority.NO),
    ]
    assert [scope["repositories"] for scope in hub.minted.values()] == [["web"], ["shop"]]


def test_an_app_is_its_bot(hub: GitHubServer) -> None:
    assert account(app_variables(hub)).identity().id == 9002
    assert hub.paths() == ["GET /app", f"POST {MINT}", "GET /users/pi-dispatch-test[bot]"]
    assert hub.asked[1].body == {"permissions": {"metadata": "read"}}


def test_an_apps_key_is_read_from_its_file(hub: GitHubServer, tmp_path: Path) -> None:
    file = tmp_path / "app.pem"
    file.write_text(private_key())
    environment = app_variables(hub, GITHUB_APP_PRIVATE_KEY_PATH=str(file))
    del environment["GITHUB_APP_PRIVATE_KEY"]
    assert account(environment).identity().id == 9002


@pytest.mark.parametrize("behind_s", [-50, 0, 50])
def test_an_app_is_known_by_a_clock_that_is_a_little_off(hub: GitHubServer, behind_s: int) -> None:
    hub.now = lambda: NOW - timedelta(seconds=behind_s)
    assert account(app_variables(hub), FakeClock(NOW)).authority(closed()) == Answer(Authority.YES)


@pytest.mark.parametrize("behind_s", [-600, 70])
def test_an_app_whose_clock_is_far_off_gets_no_token(hub: GitHubServer, behind_s: int) -> None:
    hub.now = lambda: NOW - timedelta(seconds=behind_s)
    one = account(app_variables(hub), FakeClock(NOW))
    assert one.authority(closed()) == Answer(Authority.UNKNOWN, "token-mint-failed")
    assert hub.paths() == [f"POST {MINT}"]
    with pytest.raises(ConfigError, match="clock of this machine"):
        one.identity()


@pytest.mark.parametrize(
    ("fault", "resets"),
    [
        (Fault.SERVER_ERROR, None),
        (Fault.NOT_FOUND, None),
        (Fault.WRONG_SHAPE, None),
        (Fault.UNKNOWN_WORD, None),
        (Fault.GARBAGE, None),
        (Fault.FOUND, None),
        (Fault.RATE_LIMITED, RESET),
    ],
)
def test_a_token_that_is_not_made_leaves_it_unknown(hub: GitHubServer, fault: Fault, resets: datetime | None) -> None:
    hub.faults["/app/"] = fault
    assert account(app_variables(hub)).authority(closed()) == Answer(Authority.UNKNOWN, "token-mint-failed", resets)
    assert hub.paths() == [f"POST {MINT}"]


@pytest.mark.parametrize(
    "wrong",
    [{"GITHUB_APP_ID": "78"}, {"GITHUB_APP_INSTALLATION_ID": "89"}, {"GITHUB_APP_PRIVATE_KEY": other_key()}],
    ids=lambda one: next(iter(one)),
)
def test_an_app_that_is_not_the_one_is_refused(hub: GitHubServer, wrong: dict[str, str]) -> None:
    one = account(app_variables(hub, **wrong))
    with pytest.raises(ConfigError, match="does not take the App of GITHUB_APP_ID=7"):
        one.identity()
    assert one.authority(closed()).reason == "token-mint-failed"


@pytest.mark.parametrize("fault", [Fault.WRONG_SHAPE, Fault.UNKNOWN_WORD])
def test_an_app_without_a_name_is_asked_for_again(hub: GitHubServer, fault: Fault) -> None:
    hub.faults["/app$"] = fault
    with pytest.raises(InfraError, match="lookup-unreadable"):
        account(app_variables(hub)).identity()


class Gh:
    """A program gh on the `PATH`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def says(self, *lines: str) -> None:
        """What it does, as a shell script."""
        path = self._folder / "gh"
        path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        path.chmod(0o755)


@pytest.fixture
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gh:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return Gh(tmp_path)


def gh_variables(hub: GitHubServer, **more: str) -> dict[str, str]:
    return {"GITHUB_API_URL": hub.url, "PATH": "/usr/bin:/bin", "HOME": "/home/x", "SECRET": "s", **more}


def test_ghs_login_is_asked_for_each_time(hub: GitHubServer, gh: Gh, tmp_path: Path) -> None:
    gh.says(f'echo "$@" "$HOME" "${{SECRET:-none}}" >> {tmp_path}/called', "echo pat-secret")
    one = account(gh_variables(hub))
    assert not (tmp_path / "called").exists()
    assert one.identity().id == 9001
    assert one.authority(closed()) == Answer(Authority.YES)
    assert (tmp_path / "called").read_text() == "auth token --hostname github.com /home/x none\n" * 2


def test_gh_is_asked_for_the_login_of_an_enterprise_server(hub: GitHubServer, gh: Gh) -> None:
    gh.says('[ "$4" = ghe.example.org ] && echo pat-secret')
    assert account(gh_variables(hub, GITHUB_URL="https://ghe.example.org")).identity().id == 9001


@pytest.mark.parametrize("lines", [["exit 1"], ["echo"], ["echo no login; exit 0"], [r"printf '\303\251\n'"]])
def test_gh_without_a_login_is_told(hub: GitHubServer, gh: Gh, lines: Sequence[str]) -> None:
    gh.says(*lines)
    one = account(gh_variables(hub))
    with pytest.raises(ConfigError, match=r"gh auth login --hostname github\.com"):
        one.identity()
    assert one.authority(closed()) == Answer(Authority.UNKNOWN, "token-mint-failed")
    assert hub.paths() == []


def test_gh_that_is_not_there_is_told(hub: GitHubServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="gh is not on the PATH"):
        account(gh_variables(hub)).identity()


def test_pygithub_by_itself_would_follow_a_redirect_and_take_its_yes(hub: GitHubServer) -> None:
    """Why it is given a connection of our own; where this fails one day, that can go."""
    hub.faults["/repos/"] = Fault.MOVED_PERMANENTLY
    auth = github.Auth.Token("pat-secret")
    with github.Github(auth=auth, base_url=hub.url, retry=None, seconds_between_requests=None) as client:
        _, answer = client.requester.requestJsonAndCheck("GET", ASKED.removeprefix("GET "))
    assert answer["permission"] == "admin"

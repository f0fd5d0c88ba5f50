"""What this deployment's account may do at GitHub: of an App, of a token and of a login, over a real socket."""

from pathlib import Path
from typing import Any

import pytest

from pidispatch.forges.github.module import GITHUB
from pidispatch.forges.github.rights import GitHubRights
from pidispatch.forges.rights import Rights, Standing
from pidispatch.values.errors import ConfigError, DispatchError, InfraError, RateLimited
from pidispatch.workspace import process
from tests.fakes.github import apps
from tests.fakes.github.faults import RESET, Fault, Reply
from tests.integration.forges.scripted import USER_TOKEN, Scripted
from tests.support.clock import FakeClock
from tests.support.settings import settings_of

INSTALLATION = "GET /app/installations/88"
INSTALLED = "GET /repos/acme/web/installation"
USER = "GET /user"
REPO = "GET /repos/acme/web"
FULL = {"metadata": "read", "contents": "write", "issues": "write", "pull_requests": "write"}


def by_token(script: Scripted, **more: str) -> Rights:
    environment = {"GITHUB_API_URL": script.url, "GITHUB_AUTH_SOURCE": "pat", "GITHUB_PAT": USER_TOKEN} | more
    return GITHUB.rights(settings_of(environment), environment, process)


def by_app(script: Scripted) -> Rights:
    key = apps.private_key().replace("\n", "\\n")
    app = {"GITHUB_APP_ID": "77", "GITHUB_APP_INSTALLATION_ID": "88", "GITHUB_APP_PRIVATE_KEY": key}
    return by_token(script, GITHUB_AUTH_SOURCE="app", **app)


def installation(**parts: Any) -> Reply:
    whole = {
        "id": 88,
        "account": {"login": "acme"},
        "repository_selection": "selected",
        "permissions": FULL,
        "suspended_at": None,
    }
    return Reply(200, whole | parts)


def user(scopes: str | None, login: Any = "someone") -> Reply:
    return Reply(200, {"login": login, "id": 1}, {} if scopes is None else {"X-OAuth-Scopes": scopes})


def role(scopes: str | None, **levels: Any) -> Reply:
    permissions = {"admin": False, "push": True, "pull": True} | levels
    return Reply(200, {"permissions": permissions}, {} if scopes is None else {"X-OAuth-Scopes": scopes})


def test_an_app_is_told_by_its_installation(script: Scripted) -> None:
    script.replies[INSTALLATION] = installation()
    who, standing = by_app(script).account()
    assert who == "the App of GITHUB_APP_ID=77, installed on chosen repositories of acme"
    assert standing == Standing("metadata: read, contents: write, issues: write, pull_requests: write")
    # By the App's own word: no token is made for this.
    assert script.lines() == [INSTALLATION]


def test_what_an_app_lacks_and_has_beyond_is_told(script: Scripted) -> None:
    permissions = {**FULL, "issues": "read", "administration": "write"}
    script.replies[INSTALLATION] = installation(
        permissions=permissions, repository_selection="all", account={"slug": "big"}
    )
    who, standing = by_app(script).account()
    assert who.endswith("installed on all repositories of an account without a name")
    assert [one.found for one in standing.lacks] == [
        "issues: write is missing, so that nothing can be said on an issue"
    ]
    assert "administration: write" in standing.cautions[0].found


@pytest.mark.parametrize("line", [INSTALLATION, INSTALLED])
def test_a_suspended_app_gets_nothing(script: Scripted, line: str) -> None:
    script.replies[line] = installation(suspended_at="2026-01-31T12:00:00Z")
    rights = by_app(script)
    standing = rights.account()[1] if line == INSTALLATION else rights.repository("acme/web")
    assert [one.found for one in standing.lacks] == ["the App's installation is suspended: there is no token"]


def test_an_app_that_is_installed_on_a_repository(script: Scripted) -> None:
    script.replies[INSTALLED] = installation()
    assert by_app(script).repository("acme/web") == Standing("the App is installed on it")
    assert script.asked[0].token.count(".") == 2, "it is the App's own word"


def test_an_app_that_is_installed_there_as_another_installation(script: Scripted) -> None:
    script.replies[INSTALLED] = installation(id=99)
    [lack] = by_app(script).repository("acme/web").lacks
    assert "as 99, and GITHUB_APP_INSTALLATION_ID is 88" in lack.found
    assert lack.remedy.startswith("GITHUB_APP_INSTALLATION_ID=99")


def test_an_app_that_is_not_installed_there(script: Scripted) -> None:
    with pytest.raises(ConfigError, match="install the App on it") as caught:
        by_app(script).repository("acme/web")
    assert caught.value.cause == "repository-unseen"


@pytest.mark.parametrize("number", [None, "88", 0, True])
def test_an_installation_without_an_id_says_nothing(script: Scripted, number: Any) -> None:
    script.replies[INSTALLED] = installation(id=number)
    with pytest.raises(InfraError, match="lookup-unreadable"):
        by_app(script).repository("acme/web")


def test_permissions_that_are_none_say_nothing(script: Scripted) -> None:
    script.replies[INSTALLATION] = installation(permissions=["contents"])
    with pytest.raises(InfraError, match="lookup-unreadable"):
        by_app(script).account()


def test_an_app_whose_clock_is_off_is_told_so(script: Scripted) -> None:
    script.replies[INSTALLATION] = installation()
    script.now = lambda: RESET
    with pytest.raises(ConfigError, match="clock of this machine is off") as caught:
        by_app(script).account()
    assert caught.value.cause == "forge-clock"


def test_a_classic_token_is_told_by_its_scopes(script: Scripted) -> None:
    script.replies[USER] = user("repo, admin:org")
    who, standing = by_token(script).account()
    assert who == "the token in GITHUB_PAT, of someone"
    assert (standing.holds, standing.lacks) == ("scopes: repo, admin:org", ())
    assert "admin:org" in standing.cautions[0].found


@pytest.mark.parametrize(("scopes", "held"), [("", "none"), ("read:org", "read:org"), ("\x07<b>!", "b")])
def test_a_token_without_the_scope_can_do_nothing(script: Scripted, scopes: str, held: str) -> None:
    script.replies[USER] = user(scopes)
    _, standing = by_token(script).account()
    assert standing.holds == f"scopes: {held}"
    assert [one.found for one in standing.lacks] == ["the scope repo is missing, so that nothing can be pushed or said"]


@pytest.mark.parametrize("login", [None, 7, "../x", "a b"])
def test_of_a_fine_grained_token_nothing_is_claimed(script: Scripted, login: Any) -> None:
    script.replies[USER] = user(None, login)
    who, standing = by_token(script).account()
    assert who == "the token in GITHUB_PAT, of an account without a name"
    assert standing.holds.startswith("GitHub does not tell; see that the token's page says metadata: read")
    assert (standing.lacks, standing.cautions) == ((), ())


def test_a_login_of_gh_is_the_whole_of_a_persons(
    script: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gh").write_text(f"#!/bin/sh\necho {USER_TOKEN}\n")
    (tmp_path / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    script.replies[USER] = user("gist, repo, workflow")
    who, standing = by_token(script, GITHUB_AUTH_SOURCE="gh", PATH=f"{tmp_path}:/usr/bin:/bin").account()
    assert who == "gh's login for github.com, of someone"
    assert "the whole of a person's login, with the scopes gist, workflow" in standing.cautions[0].found


def test_whoever_may_write_may_work(script: Scripted) -> None:
    script.replies[REPO] = role("repo")
    assert by_token(script).repository("acme/web") == Standing("the account may write to it")


@pytest.mark.parametrize("push", [False, None, "true"])
def test_whoever_may_only_read_can_push_nothing(script: Scripted, push: Any) -> None:
    script.replies[REPO] = role("repo", push=push)
    [lack] = by_token(script).repository("acme/web").lacks
    assert lack.found == "the account of the token in GITHUB_PAT may not write to it: no branch can be pushed"


@pytest.mark.parametrize(("scopes", "lifts"), [("repo", True), ("public_repo", False), (None, False)])
def test_who_administers_can_lift_the_protection(script: Scripted, scopes: str | None, lifts: bool) -> None:
    script.replies[REPO] = role(scopes, admin=True)
    cautions = by_token(script).repository("acme/web").cautions
    assert ["take away the protection" in one.found for one in cautions] == [True] * lifts


def test_a_role_that_is_none_says_nothing(script: Scripted) -> None:
    script.replies[REPO] = Reply(200, {"permissions": "push"})
    with pytest.raises(InfraError, match="lookup-unreadable"):
        by_token(script).repository("acme/web")


def test_a_repository_that_is_not_seen(script: Scripted) -> None:
    with pytest.raises(ConfigError, match="give the account access to it") as caught:
        by_token(script).repository("acme/web")
    assert caught.value.cause == "repository-unseen"


def test_a_name_that_is_no_repositorys_is_not_asked_about(script: Scripted) -> None:
    for rights in (by_token(script), by_app(script)):
        with pytest.raises(ConfigError, match="Write owner/name"):
            rights.repository("acme/web/x")
    assert script.asked == []


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (Fault.BAD_CREDENTIALS, ConfigError, '"Bad credentials"'),
        (Fault.SERVER_ERROR, InfraError, "lookup-server-error, HTTP 500"),
        (Fault.RATE_LIMITED, RateLimited, "not before 2030-01-02T03:04:05Z"),
        (Fault.HANG_UP, InfraError, "lookup-unreachable"),
        (Fault.GARBAGE, InfraError, "lookup-unreadable"),
        (Fault.DEEP, InfraError, "lookup-unreadable"),
        (Fault.A_LIST, InfraError, "lookup-unreadable"),
    ],
)
def test_what_is_not_answered_is_told_without_the_token(
    script: Scripted, fault: Fault, kind: type[DispatchError], words: str
) -> None:
    script.replies[USER] = script.replies[REPO] = fault
    rights = by_token(script)
    for ask in (rights.account, lambda: rights.repository("acme/web")):
        with pytest.raises(kind) as caught:
            ask()
        assert words in caught.value.message
        assert script.url in caught.value.message
        assert USER_TOKEN not in f"{caught.value!r}{caught.value.__cause__!r}"


def test_it_does_not_wait_for_long(script: Scripted) -> None:
    script.replies[USER] = Fault.SLOW
    environment = {"GITHUB_API_URL": script.url, "GITHUB_AUTH_SOURCE": "pat", "GITHUB_PAT": USER_TOKEN}
    rights = GitHubRights.of(settings_of(environment), environment, process, FakeClock(RESET), 0.2)
    with pytest.raises(InfraError, match="lookup-timeout"):
        rights.account()

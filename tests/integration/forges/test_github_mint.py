"""The credential of a job: what GitHub is asked for, what it may answer, and what is told where there is none."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pidispatch.forges.protocol import Token
from pidispatch.values.errors import ConfigError, DispatchError, InfraError, RateLimited
from tests.fakes.github.apps import other_key
from tests.fakes.github.faults import RESET, RETRY_AFTER_S, Fault, Reply, message
from tests.integration.forges.scripted import APP_TOKEN, MINT, USER_TOKEN, Scripted, by_app, by_token
from tests.support.clock import FakeClock

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def failure(script: Scripted, clock: FakeClock | None = None, **more: str) -> DispatchError:
    """What minting for acme/web raises, asked for once."""
    with pytest.raises(DispatchError) as caught:
        by_app(script, clock, timeout_s=0.5, **more).mint("acme/web")
    assert script.lines() == [MINT]
    return caught.value


@pytest.mark.example("ch3 E4 mint", "An App's token of a job is for its repository alone, and not narrowed further.")
def test_an_apps_token_is_for_one_repository_and_may_do_what_the_app_may(script: Scripted) -> None:
    token = by_app(script).mint("acme/web")
    assert token == Token(APP_TOKEN)
    assert (script.lines(), script.asked[0].body) == ([MINT], {"repositories": ["web"]})
    assert APP_TOKEN not in f"{token}{token!r}"


def test_an_app_makes_one_for_each_job(script: Scripted) -> None:
    one = by_app(script)
    one.mint("acme/web")
    one.mint("acme/shop")
    assert [asked.body["repositories"] for asked in script.asked] == [["web"], ["shop"]]


def test_a_personal_token_is_handed_out_as_it_is(script: Scripted) -> None:
    assert [by_token(script).mint(repo) for repo in ("acme/web", None)] == [Token(USER_TOKEN)] * 2
    assert script.lines() == []


def test_an_app_has_no_token_for_a_folder(script: Scripted) -> None:
    with pytest.raises(ConfigError, match="choose GITHUB_AUTH_SOURCE=gh or pat") as caught:
        by_app(script).mint(None)
    assert (caught.value.cause, script.lines()) == ("setting", [])


@pytest.mark.parametrize("repo", ["web", "acme/", "/web", "acme/web/x", "acme/..", "acme/a b", "a\n/web", ""])
def test_what_is_no_repository_is_not_asked_about(script: Scripted, repo: str) -> None:
    one = by_app(script)
    for ask in (
        lambda: one.mint(repo),
        lambda: one.clone_url(repo),
        lambda: one.default_branch(repo, Token("t")),
    ):
        with pytest.raises(ConfigError, match="is no repository of GitHub's") as caught:
            ask()
        assert caught.value.cause == "repository-unseen"
        assert caught.value.message.isprintable()
    assert script.lines() == []


def test_a_token_of_gh_is_its_logins(script: Scripted, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gh = tmp_path / "gh"
    gh.write_text(f"#!/bin/sh\necho {USER_TOKEN}\n")
    gh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert by_token(script, GITHUB_AUTH_SOURCE="gh").mint("acme/web") == Token(USER_TOKEN)
    gh.write_text("#!/bin/sh\necho\n")
    with pytest.raises(ConfigError, match="gh has no login"):
        by_token(script, GITHUB_AUTH_SOURCE="gh").mint(None)


@pytest.mark.parametrize("repo", ["evil/web", "acme/web"])
@pytest.mark.parametrize(
    "told",
    [
        {"repositories": [{"full_name": "other/web"}]},
        {"repositories": [{"full_name": "evil/web"}, {"full_name": "acme/web"}]},
        {"repositories": [{"name": "web"}]},
        {"repositories": ["web"]},
        {"repositories": []},
        {"repositories": None},
        {},
    ],
)
def test_a_token_of_another_repository_with_the_same_name_is_not_handed_out(
    script: Scripted, repo: str, told: dict[str, Any]
) -> None:
    """Whoever installs an App on an account of their own sends events under its one secret."""
    script.replies[MINT] = Reply(201, {"token": APP_TOKEN, **told})
    with pytest.raises(ConfigError, match=f"a token that is not for {repo}") as caught:
        by_app(script).mint(repo)
    assert caught.value.cause == "repository-unseen"
    assert "GITHUB_APP_INSTALLATION_ID=88" in caught.value.message
    assert APP_TOKEN not in caught.value.message


def test_a_token_is_its_repositorys_however_that_is_written(script: Scripted) -> None:
    script.replies[MINT] = Reply(201, {"token": APP_TOKEN, "repositories": [{"full_name": "Acme/Web"}]})
    assert by_app(script).mint("acme/WEB") == Token(APP_TOKEN)


@pytest.mark.parametrize("token", ["", " ", "\n", "two words", "a\nb", "é", "x" * 5000, None, 7, ["x"], {"x": "y"}])
def test_what_is_no_token_is_refused(script: Scripted, token: Any) -> None:
    script.replies[MINT] = Reply(201, {"token": token})
    found = failure(script)
    assert (type(found), found.cause) == (ConfigError, "forge-token-empty")
    assert "blank or none" in found.message
    assert "two words" not in found.message


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (message(401, "A JSON web token could not be decoded"), 'HTTP 401, "A JSON web token could not be decoded"'),
        (message(401, "Bad credentials"), 'HTTP 401, "Bad credentials"'),
        (message(403, "This installation has been suspended"), 'HTTP 403, "This installation has been suspended"'),
        (message(404, "Integration not found"), 'HTTP 404, "Integration not found"'),
        (message(422, "at least one repository does not exist"), 'HTTP 422, "at least one repository does not'),
        (message(422, "the old one expired"), 'HTTP 422, "the old one expired"'),
        (Reply(410, {"message": 7}), "HTTP 410. Check"),
        (Reply(400, b"<html>"), "HTTP 400. Check"),
        (Reply(451, []), "HTTP 451. Check"),
    ],
)
def test_a_refusal_is_told_in_githubs_own_words_and_is_final(script: Scripted, reply: Reply, words: str) -> None:
    script.replies[MINT] = reply
    found = failure(script)
    assert (type(found), found.cause) == (ConfigError, "forge-refused")
    assert f"does not make the App of GITHUB_APP_ID=77 a token for acme/web: {words}" in found.message
    assert "GITHUB_APP_INSTALLATION_ID" in found.message
    assert (f'"{found.said}"' in found.message) is ('"' in words)
    assert script.url in found.message


def test_githubs_words_are_cut_and_cannot_steer_a_terminal(script: Scripted) -> None:
    script.replies[MINT] = message(403, "\x1b[2J\u202e" + "long " * 1000)
    told = failure(script).message
    assert told.isprintable()
    assert len(told) < 600
    assert told.count("long") < 41


def test_a_word_that_github_repeats_is_taken_out(script: Scripted) -> None:
    """The App's own word, and whatever looks like a credential in an address."""

    def echo(_query: object) -> Reply:
        return message(403, f"no: {script.asked[-1].token} of https://me:hunter2@example.org")

    script.replies[MINT] = echo
    told = failure(script).message
    assert "no: [token] of https://[redacted]@example.org" in told
    assert script.asked[0].token not in told
    assert "hunter2" not in told


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
def test_a_used_up_limit_says_until_when(script: Scripted, fault: Fault, resets: datetime) -> None:
    script.replies[MINT] = fault
    script.now = lambda: NOW
    found = failure(script, FakeClock(NOW))
    assert isinstance(found, RateLimited)
    assert (found.resets, found.cause) == (resets, "forge-rate-limited")
    assert f"not before {resets:%Y-%m-%dT%H:%M:%SZ}" in found.message


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault.SERVER_ERROR, "lookup-server-error, HTTP 500"),
        (Fault.BAD_GATEWAY, "lookup-server-error, HTTP 502"),
        (Fault.MOVED_PERMANENTLY, "lookup-redirected, HTTP 301"),
        (Fault.ACCEPTED, "lookup-unfinished"),
        (Fault.GARBAGE, "lookup-unreadable"),
        (Fault.HUGE, "lookup-unreadable"),
        (Fault.HANG_UP, "lookup-unreachable"),
        (Fault.CUT_OFF, "lookup-unreachable"),
        (Fault.SLOW, "lookup-timeout"),
        (Fault.DRIP, "lookup-timeout"),
    ],
)
def test_no_answer_is_tried_again(script: Scripted, fault: Fault, words: str) -> None:
    script.replies[MINT] = fault
    found = failure(script)
    assert (type(found), found.cause) == (InfraError, "forge-unanswered")
    assert words in found.message


@pytest.mark.example("ch8 F3", "A clock that is 45 s off gets its token; one that is far off is told so, asked once.")
@pytest.mark.parametrize("ahead_s", [-45, 45])
def test_a_clock_that_drifts_is_no_reason_to_fail(script: Scripted, ahead_s: int) -> None:
    script.now = lambda: NOW
    assert by_app(script, FakeClock(NOW + timedelta(seconds=ahead_s))).mint("acme/web") == Token(APP_TOKEN)
    assert script.lines() == [MINT]


@pytest.mark.example("ch8 F3", "A clock that is 45 s off gets its token; one that is far off is told so, asked once.")
@pytest.mark.parametrize(
    ("ahead_s", "words"), [(-700, "'Expiration time' claim ('exp')"), (90, "'Issued at' claim ('iat')")]
)
def test_a_clock_that_is_far_off_is_told_in_githubs_words(script: Scripted, ahead_s: int, words: str) -> None:
    script.now = lambda: NOW
    found = failure(script, FakeClock(NOW + timedelta(seconds=ahead_s)))
    assert (type(found), found.cause) == (ConfigError, "forge-clock")
    assert found.said is not None
    assert words in found.said
    assert found.said in found.message
    assert "The clock of this machine is off" in found.message


def test_the_wrong_key_is_no_question_of_the_clock(script: Scripted) -> None:
    assert failure(script, GITHUB_APP_PRIVATE_KEY=other_key()).cause == "forge-refused"


def test_a_personal_tokens_end_is_no_question_of_the_clock(script: Scripted) -> None:
    script.replies["GET /user"] = message(401, "The token expired")
    with pytest.raises(ConfigError, match="The token expired") as caught:
        by_token(script).identity()
    assert caught.value.cause == "forge-refused"

"""What is said on an issue or a pull request: whether this account has, and that it does so once."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

import pytest

from pidispatch.forges.protocol import Token
from pidispatch.values.errors import ConfigError, DispatchError, InfraError, RateLimited
from pidispatch.values.job import Target
from tests.fakes.github.faults import Fault, Reply, message
from tests.integration.forges.scripted import APP_TOKEN, MINT, USER_TOKEN, Scripted, by_app, by_token

SINCE = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
TOKEN = Token("ghs_of_the_job")
COMMENTS = "/repos/acme/web/issues/7/comments"
REVIEWS = "GET /repos/acme/web/pulls/7/reviews"
MARKER = "<!-- pi-dispatch gh-1 -->"
TEXT = f"It was not run.\n\n{MARKER}"


def target(kind: Literal["issue", "pull_request"] = "issue") -> Target:
    return Target(type=kind, number=7)


def by(user: Any, **more: Any) -> Mapping[str, Any]:
    return {"id": 1, "body": "Done.", "user": {"id": user, "login": "x"}, **more}


def review(user: Any, submitted: Any) -> Mapping[str, Any]:
    return by(user, state="APPROVED", submitted_at=submitted)


def said(script: Scripted, *comments: Mapping[str, Any], reviews: Any = ()) -> None:
    """What stands there."""
    script.replies["GET /user"] = Reply(200, {"id": 9001})
    script.replies[f"GET {COMMENTS}"] = Reply(200, list(comments))
    script.replies[REVIEWS] = Reply(200, list(reviews))


def acted(script: Scripted, kind: Literal["issue", "pull_request"] = "issue") -> bool:
    return by_token(script).acted("acme/web", target(kind), SINCE, TOKEN)


def test_a_comment_of_this_account_counts(script: Scripted) -> None:
    said(script, by(1), by(9001))
    assert acted(script)
    assert script.lines() == ["GET /user", f"GET {COMMENTS}"]
    assert (script.asked[0].token, script.asked[1].token) == (USER_TOKEN, "ghs_of_the_job")
    assert script.asked[1].query == {"per_page": "30", "since": "2026-01-31T12:00:00Z"}


@pytest.mark.parametrize(
    "comment",
    [by(1), by("9001"), by(None), {"user": None}, {"user": "9001"}, {}, by(9001, body=TEXT)],
    ids=lambda one: str(one.get("user")),
)
def test_a_comment_of_somebody_else_or_on_another_job_does_not(script: Scripted, comment: Mapping[str, Any]) -> None:
    said(script, comment)
    assert not acted(script)


def test_the_instant_is_told_in_the_worlds_time(script: Scripted) -> None:
    said(script)
    ahead = SINCE.astimezone(timezone(timedelta(hours=5)))
    by_token(script).acted("acme/web", target(), ahead, TOKEN)
    assert script.asked[1].query["since"] == "2026-01-31T12:00:00Z"


def test_a_comment_on_a_later_page_counts_and_later_ones_are_not_asked_for(script: Scripted) -> None:
    said(script)
    script.replies[f"GET {COMMENTS}"] = script.pages([by(1)], [by(9001)], [by(1)])
    assert acted(script)
    assert [one.query.get("page") for one in script.asked[1:]] == [None, "2"]


@pytest.mark.parametrize(
    ("reviews", "counts"),
    [
        ([review(9001, "2026-01-31T12:00:00Z")], True),
        ([review(9001, "2026-01-31T11:59:59Z"), review(9001, "2026-01-31T13:30:00+01:00")], True),
        ([review(9001, "2026-01-31T11:59:59Z")], False),
        ([review(1, "2026-01-31T12:00:01Z")], False),
        # Not handed in yet, or not to be read.
        ([by(9001, state="PENDING")], False),
        ([review(9001, "yesterday"), review(9001, 7), review(9001, "2026-01-31T12:00:01")], False),
        ([], False),
    ],
)
def test_a_review_of_this_account_counts(script: Scripted, reviews: list[Any], counts: bool) -> None:
    said(script, reviews=reviews)
    assert acted(script, "pull_request") is counts
    assert script.lines()[1:] == [f"GET {COMMENTS}", REVIEWS]


def test_an_issue_has_no_reviews(script: Scripted) -> None:
    said(script, reviews=[review(9001, "2026-01-31T12:00:01Z")])
    assert not acted(script)
    assert REVIEWS not in script.lines()


def test_an_app_is_known_by_its_bot_which_is_asked_for_once(script: Scripted) -> None:
    said(script, by(9002))
    script.replies["GET /app"] = Reply(200, {"slug": "robot"})
    script.replies["GET /users/robot%5Bbot%5D"] = Reply(200, {"id": 9002})
    one = by_app(script)
    assert one.acted("acme/web", target(), SINCE, TOKEN)
    assert one.acted("acme/web", target(), SINCE, TOKEN)
    assert script.lines() == ["GET /app", MINT, "GET /users/robot%5Bbot%5D", f"GET {COMMENTS}", f"GET {COMMENTS}"]


def test_who_it_is_is_asked_for_until_it_is_known(script: Scripted) -> None:
    one = by_token(script)
    script.replies["GET /user"] = Fault.SERVER_ERROR
    with pytest.raises(InfraError):
        one.identity()
    script.replies["GET /user"] = Reply(200, {"id": 9001})
    assert one.identity() == one.identity()
    assert script.lines() == ["GET /user", "GET /user"]


def comment(script: Scripted) -> None:
    by_app(script).comment("acme/web", target(), TEXT, MARKER, SINCE)


def test_a_comment_is_left_by_a_token_made_for_it(script: Scripted) -> None:
    said(script, by(1), {"body": None})
    script.replies[f"POST {COMMENTS}"] = Reply(201, {"id": 5})
    comment(script)
    assert script.lines() == [MINT, f"GET {COMMENTS}", f"POST {COMMENTS}"]
    assert (script.asked[0].body, script.asked[2].body) == ({"repositories": ["web"]}, {"body": TEXT})
    assert [one.token for one in script.asked[1:]] == [APP_TOKEN] * 2
    assert script.asked[1].query["since"] == "2026-01-31T12:00:00Z"


def test_a_personal_token_leaves_one_too_also_on_a_pull_request(script: Scripted) -> None:
    said(script)
    script.replies[f"POST {COMMENTS}"] = Reply(201, {"id": 5})
    by_token(script).comment("acme/web", target("pull_request"), TEXT, MARKER, SINCE)
    assert [one.token for one in script.asked] == [USER_TOKEN] * 2


@pytest.mark.parametrize("page", [1, 2])
def test_one_that_stands_is_not_left_again(script: Scripted, page: int) -> None:
    said(script)
    stands = [by(9001, body=f"Earlier.\n{MARKER}")]
    script.replies[f"GET {COMMENTS}"] = script.pages(*([[by(1)], stands] if page == 2 else [stands]))
    by_token(script).comment("acme/web", target(), TEXT, MARKER, SINCE)
    assert script.lines() == [*[f"GET {COMMENTS}"] * page, "GET /user"]


def test_somebody_else_who_writes_the_mark_silences_nobody(script: Scripted) -> None:
    said(script, by(1, body=TEXT), by(None, body=TEXT))
    script.replies[f"POST {COMMENTS}"] = Reply(201, {"id": 5})
    by_token(script).comment("acme/web", target(), TEXT, MARKER, SINCE)
    assert script.lines() == [f"GET {COMMENTS}", "GET /user", f"POST {COMMENTS}"]


def test_an_answer_that_is_lost_is_found_by_the_next_try(script: Scripted) -> None:
    said(script)
    script.replies[f"POST {COMMENTS}"] = Fault.HANG_UP
    with pytest.raises(InfraError):
        comment(script)
    said(script, by(9002, body=TEXT))
    script.replies["GET /app"] = Reply(200, {"slug": "robot"})
    script.replies["GET /users/robot%5Bbot%5D"] = Reply(200, {"id": 9002})
    comment(script)
    assert script.lines().count(f"POST {COMMENTS}") == 1


@pytest.mark.parametrize(
    ("reply", "kind", "cause", "words"),
    [
        (message(403, "Issue is locked"), ConfigError, "forge-refused", 'acme/web#7: HTTP 403, "Issue is locked"'),
        (message(410, "This issue was deleted"), ConfigError, "forge-refused", "This issue was deleted"),
        (message(404, "Not Found"), ConfigError, "repository-unseen", "does not see it"),
        (Fault.SECONDARY_LIMIT, RateLimited, "forge-rate-limited", "not before"),
        (Fault.BAD_GATEWAY, InfraError, "forge-unanswered", "HTTP 502"),
        (Fault.A_LIST, InfraError, "forge-unanswered", "lookup-unreadable"),
    ],
)
@pytest.mark.parametrize("verb", ["GET", "POST"])
def test_each_question_may_fail(
    script: Scripted, verb: str, reply: Reply | Fault, kind: type[DispatchError], cause: str, words: str
) -> None:
    said(script)
    script.replies[f"POST {COMMENTS}"] = Reply(201, {"id": 5})
    script.replies[f"{verb} {COMMENTS}"] = Reply(200, {}) if (verb, reply) == ("GET", Fault.A_LIST) else reply
    with pytest.raises(DispatchError) as caught:
        by_token(script).comment("acme/web", target(), TEXT, MARKER, SINCE)
    assert (type(caught.value), caught.value.cause) == (kind, cause)
    assert words in caught.value.message
    assert "It was not run" not in caught.value.message


def test_a_text_without_its_mark_is_a_mistake(script: Scripted) -> None:
    with pytest.raises(AssertionError):
        by_token(script).comment("acme/web", target(), "text", MARKER, SINCE)
    assert script.lines() == []

"""What a poll asks of GitHub, page by page, and what it makes of what is answered."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from pidispatch.forges.github.api import Page
from pidispatch.forges.github.payload import project
from pidispatch.forges.github.watching import GitHubWatch

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
USER = {"id": 1001, "login": "alice"}


def at(seconds: float) -> str:
    """So many seconds after noon, as GitHub writes it."""
    return f"{NOON + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


@dataclass
class Said:
    """Answers out of lists; `asked` has every path."""

    lists: dict[str, Sequence[dict[str, Any]]] = field(default_factory=dict)
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def name(self) -> str:
        """As GitHub spells it."""
        return "acme/web"

    def found(self, path: str) -> dict[str, Any] | None:
        """An object of the test."""
        self.asked.append(path)
        return self.objects.get(path)

    def listed(self, path: str, etag: str | None = None) -> Page:
        """A page of a list of the test; its etag is `e`."""
        self.asked.append(path)
        url, query = urlsplit(path), dict(parse_qsl(urlsplit(path).query))
        if etag == "e":
            return Page([], etag, 60, None, 304)
        size, number = int(query["per_page"]), int(query.get("page", 1))
        rows = self.lists.get(url.path, ())
        base = path.partition("&page=")[0]
        more = f"{base}&page={number + 1}" if number * size < len(rows) else None
        return Page([*rows[(number - 1) * size : number * size]], "e", 60, more, 200)

    def seen(self, path: str) -> list[dict[str, Any]]:
        """As `listed`."""
        return self.listed(path).items


def watch(said: Said) -> GitHubWatch:
    """A look at the repository."""
    made = GitHubWatch("ACME/web", said)
    made.begin()
    assert made.repo == "acme/web"
    return made


def event(number: int, seconds: float, action: str = "labeled") -> dict[str, Any]:
    """An event of an issue."""
    issue = {"number": 7, "labels": [{"name": "pi:fix"}]}
    return {"id": number, "event": action, "created_at": at(seconds), "actor": USER, "issue": issue}


EVENTS = "/repos/acme/web/issues/events"
COMMENTS = "/repos/acme/web/issues/comments"


def test_the_first_look_at_events_is_at_the_first_page() -> None:
    said = Said({EVENTS: [event(1000 - number, -number) for number in range(300)]})
    look = watch(said).events(None, None, closes=True)
    assert len(said.asked) == 1
    assert [one.id for one in look.sights] == [*range(901, 1001)]
    assert look.since == NOON - timedelta(seconds=60)
    assert (look.etag, look.poll_s, look.new, look.missed) == ("e", 60, True, False)


def test_where_one_page_is_not_enough_for_what_may_be_late_it_begins_after_that() -> None:
    said = Said({EVENTS: [event(1000 - number, -number / 10) for number in range(300)]})
    assert watch(said).events(None, None, closes=True).since == NOON - timedelta(seconds=9)


def test_events_are_read_back_to_what_is_known() -> None:
    said = Said({EVENTS: [event(1000 - number, -number) for number in range(400)]})
    look = watch(said).events(NOON - timedelta(seconds=150), None, closes=True)
    assert len(said.asked) == 2
    assert not look.missed
    assert look.since == NOON - timedelta(seconds=60)


def test_of_more_than_five_pages_the_rest_is_missed_and_said_to_be() -> None:
    said = Said({EVENTS: [event(1000 - number, -number) for number in range(600)]})
    look = watch(said).events(NOON - timedelta(seconds=1000), None, closes=True)
    assert len(said.asked) == 5
    assert (len(look.sights), look.missed) == (500, True)


def test_exactly_five_pages_are_all() -> None:
    said = Said({EVENTS: [event(1000 - number, -number) for number in range(500)]})
    assert not watch(said).events(NOON - timedelta(seconds=1000), None, closes=True).missed


def test_events_that_are_none_are_left_out() -> None:
    odd: list[dict[str, Any]] = [
        {**event(1, 0), "id": "1"},
        {**event(2, 0), "id": 0},
        {**event(3, 0), "created_at": None},
        {**event(4, 0), "created_at": "yesterday"},
        event(5, 0, "unlabeled"),
    ]
    said = Said({EVENTS: odd})
    assert watch(said).events(NOON, None, closes=True).sights == []
    assert watch(Said()).events(NOON, None, closes=True).since is None
    assert len(said.asked) == 1


def test_pages_without_a_single_instant_are_not_read_on_and_on() -> None:
    said = Said({EVENTS: [{"id": number} for number in range(300)]})
    assert watch(said).events(NOON, None, closes=True).since is None
    assert len(said.asked) == 1


def test_what_was_closed_is_seen_and_told_of_only_where_it_is_asked_for() -> None:
    said = Said({EVENTS: [event(1, 0, "closed")]})
    [unasked] = watch(said).events(None, None, closes=False).sights
    assert unasked.told is None
    [asked] = watch(said).events(None, None, closes=True).sights
    assert asked.told is not None
    headers, payload = asked.told()
    assert headers == {"x-github-event": "issues", "x-github-delivery": "poll-e1"}
    found = project(headers, payload)
    assert (found.repo, found.action, found.actor.id, found.actor.login) == ("acme/web", "closed", 1001, "alice")
    assert found.labels == ("pi:fix",)


@pytest.mark.parametrize("issue", [None, {"pull_request": {}}, {"pull_request": {}, "number": "7"}])
def test_an_event_of_nothing_is_dropped_by_the_gate(issue: Any) -> None:
    said = Said({EVENTS: [{**event(1, 0), "issue": issue}]})
    [one] = watch(said).events(None, None, closes=True).sights
    assert one.told is not None
    assert project(*one.told()).target is None


def comment(number: int, seconds: float, edited: float | None = None) -> dict[str, Any]:
    """A comment."""
    issue = "https://api.github.com/repos/acme/web/issues/7"
    times = {"created_at": at(seconds), "updated_at": at(seconds if edited is None else edited)}
    return {"id": number, "body": "@pi", "user": USER, "author_association": "MEMBER", "issue_url": issue, **times}


def test_the_first_look_at_comments_is_at_the_newest() -> None:
    said = Said({COMMENTS: [comment(9, -100, 0), comment(8, -5)]})
    look = watch(said).comments(None, None)
    assert said.asked == [f"{COMMENTS}?per_page=100&sort=updated&direction=desc"]
    assert [one.id for one in look.sights] == [9, 8], "by when they were written"
    assert (look.since, look.etag) == (NOON - timedelta(seconds=60), None)
    assert watch(Said()).comments(None, None).since is None


def test_comments_are_read_from_where_one_was() -> None:
    said = Said({COMMENTS: [comment(1, 0), comment(2, 5)]})
    look = watch(said).comments(NOON, None)
    assert said.asked == [f"{COMMENTS}?per_page=100&sort=updated&direction=asc&since=2026-01-31T11%3A59%3A59Z"]
    assert (look.since, look.etag) == (NOON + timedelta(seconds=5 - 60), "e")
    assert watch(said).comments(NOON, "e") == look._replace(sights=(), since=None, new=False)
    assert watch(Said()).comments(NOON, None).since is None


def test_of_very_many_comments_the_rest_comes_the_next_time() -> None:
    said = Said({COMMENTS: [comment(number, number) for number in range(1, 1201)]})
    look = watch(said).comments(NOON, None)
    assert len(said.asked) == 10
    assert len(look.sights) == 1000
    assert (look.since, look.etag) == (NOON + timedelta(seconds=1000), None)
    odd = Said({COMMENTS: [{"id": 1}] * 1200})
    assert watch(odd).comments(NOON, None).since is None


@pytest.mark.parametrize("url", [None, "https://api.github.com/repos/acme/web/issues/x", "7/../8"])
def test_a_comment_on_nothing_is_dropped_by_the_gate(url: Any) -> None:
    said = Said({COMMENTS: [{**comment(1, 0), "issue_url": url}]})
    [one] = watch(said).comments(None, None).sights
    assert one.told is not None
    assert project(*one.told()).target is None


def pull(number: int, sha: str = "a" * 40, repo: Any = "acme/web") -> dict[str, Any]:
    """A pull request of a list."""
    head = {"ref": "mend", "sha": sha, "repo": {"full_name": repo}}
    return {"number": number, "user": USER, "labels": [], "author_association": "MEMBER", "head": head}


PULLS = "/repos/acme/web/pulls"


def test_pull_requests_are_read_page_by_page() -> None:
    said = Said({PULLS: [pull(number) for number in range(150)]})
    found = watch(said).pulls(None)
    assert len(found.open) == 150
    assert said.asked[0] == f"{PULLS}?per_page=100&state=open&sort=updated&direction=desc"
    assert (found.whole, found.etag) == (True, None), "the first page does not show whether another one is gone"
    many = watch(Said({PULLS: [pull(number) for number in range(1001)]})).pulls(None)
    assert (len(many.open), many.whole) == (1000, False)
    few = watch(Said({PULLS: [pull(1), {"number": "2"}, {"number": 3, "head": None}]})).pulls(None)
    assert ([one.number for one in few.open], few.etag) == ([1], "e")
    assert not watch(said).pulls("e").new


def test_a_pull_request_of_a_list_is_not_asked_for_again() -> None:
    said = Said({PULLS: [pull(8, "abcdef1234" + "0" * 30)]})
    [one] = watch(said).pulls(None).open
    headers, payload = one.told("opened")
    assert headers["x-github-delivery"] == "poll-pr8-abcdef1"
    assert project(headers, payload).association == "MEMBER"
    assert len(said.asked) == 1


def pusher(said: Said) -> Any:
    """Who pushed to the only pull request."""
    [one] = watch(said).pulls(None).open
    return project(*one.told("synchronize")).actor.id


def test_who_pushed_is_not_who_opened() -> None:
    bob = {"id": 1002, "login": "bob"}
    activity = [{"after": "b" * 40, "actor": USER}, {"after": "a" * 40, "actor": bob}]
    said = Said({PULLS: [pull(8)], "/repos/acme/web/activity": activity})
    assert pusher(said) == 1002
    assert said.asked[-1] == "/repos/acme/web/activity?per_page=100&ref=refs%2Fheads%2Fmend"
    fork = Said({PULLS: [pull(8, repo="bob/web")], "/repos/bob/web/activity": activity})
    assert pusher(fork) == 1002


@pytest.mark.parametrize("repo", ["acme/web", "acme/..", "acme", "a/b/c", None, 7])
def test_who_pushed_may_be_unknown(repo: Any) -> None:
    assert pusher(Said({PULLS: [pull(8, repo=repo)]})) is None


def test_reviews_that_are_still_being_written_are_not_seen() -> None:
    path = f"{PULLS}/8/reviews"
    review = {"id": 5, "user": USER, "body": "x", "state": "APPROVED", "author_association": "MEMBER"}
    said = Said({path: [{**review, "submitted_at": at(0)}, {**review, "id": 4}]}, {f"{PULLS}/8": pull(8)})
    look = watch(said).reviews(8, None)
    assert look.since == NOON - timedelta(minutes=10)
    [one] = look.sights
    assert one.told is not None
    headers, payload = one.told()
    found = project(headers, payload)
    assert headers == {"x-github-event": "pull_request_review", "x-github-delivery": "poll-rv5"}
    assert found.review is not None
    assert (found.review.state, found.association) == ("approved", "MEMBER")
    assert not watch(said).reviews(8, "e").new
    many = Said({path: [{**review, "id": number, "submitted_at": at(number)} for number in range(1, 120)]})
    assert watch(many).reviews(8, None).etag is None
    assert watch(Said()).reviews(8, None).since is None

"""What is new in a repository of GitHub's, as a poll sees it: each thing with the event that its webhook would tell.

https://docs.github.com/en/rest/issues/events, https://docs.github.com/en/rest/issues/comments,
https://docs.github.com/en/rest/pulls/pulls and https://docs.github.com/en/rest/pulls/reviews
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol
from urllib.parse import urlencode

from pidispatch.forges.github.address import repository
from pidispatch.forges.github.api import Page
from pidispatch.forges.github.payload import clean_segment
from pidispatch.forges.github.wire import DELIVERY, EVENT
from pidispatch.forges.polling import Look, OpenPull, Pulls, Sight, Told

_PER_PAGE: Final = 100
#: Pages of one look: of events and of all else.
_EVENT_PAGES: Final = 5
_PAGES: Final = 10
#: For how long something may be shown late, after what came later. Reviews are asked for one pull request after the
#: other, so that those of the last one are minutes newer.
_LATE: Final = timedelta(seconds=60)
_REVIEW_LATE: Final = timedelta(minutes=10)
_SECOND: Final = timedelta(seconds=1)


class Questions(Protocol):
    """What GitHub is asked by, about one repository. All of it raises `ConfigError` or `InfraError`."""

    def name(self) -> str:
        """What GitHub calls it."""
        ...

    def found(self, path: str) -> dict[str, Any] | None:
        """An object; `None` where there is none of it any more, here."""
        ...

    def listed(self, path: str, etag: str | None = None) -> Page:
        """A part of a list."""
        ...

    def seen(self, path: str) -> list[dict[str, Any]]:
        """The first part of a list that need not be there for this account; nothing, then."""
        ...


class GitHubWatch:
    """One repository in one cycle."""

    def __init__(self, repo: str, questions: Questions) -> None:
        self._repo = repo
        self._questions = questions
        self._pulls: dict[int, dict[str, Any] | None] = {}

    def begin(self) -> None:
        """Find out how GitHub spells it."""
        self._repo = self._questions.name()

    @property
    def repo(self) -> str:
        """`owner/name`, as GitHub spells it."""
        return self._repo

    def events(self, since: datetime | None, etag: str | None, *, closes: bool) -> Look:
        """Labels that were put on, and with `closes` what was closed. The list begins with the newest."""
        page = self._questions.listed(self._list("issues/events"), etag)
        if page.status == 304:
            return _nothing(page)
        first, items = page, [*page.items]
        for _ in range(_EVENT_PAGES - 1):
            if since is None or page.next is None or _reach(items, since):
                break
            page = self._questions.listed(page.next)
            items += page.items
        whole = page.next is None or (since is not None and _reach(items, since))
        sights = [one for one in (self._event(item, closes) for item in items) if one is not None]
        missed = since is not None and not whole
        return Look(_ordered(sights), _known(_instants(items), whole), first.etag, first.poll_s, missed=missed)

    def comments(self, since: datetime | None, etag: str | None) -> Look:
        """Comments on issues and pull requests; those that were edited are among them, by when they were written."""
        path = "issues/comments"
        if since is None:
            page = self._questions.listed(self._list(path, sort="updated", direction="desc"))
            sights = self._comments(page.items)
            return Look(sights, _known(_instants(page.items, "updated_at"), page.next is None), None, page.poll_s)
        asked = f"{since - _SECOND:%Y-%m-%dT%H:%M:%SZ}"
        first = page = self._questions.listed(self._list(path, sort="updated", direction="asc", since=asked), etag)
        if page.status == 304:
            return _nothing(page)
        items, whole = self._rest(page)
        times = _instants(items, "updated_at")
        # What is left is asked for from where this ends.
        known = _known(times, True) if whole or not times else times[-1]
        return Look(self._comments(items), known, first.etag if first.next is None else None, first.poll_s)

    def pulls(self, etag: str | None) -> Pulls:
        """The open ones. Whatever is done to one brings it to the first page."""
        page = first = self._questions.listed(self._list("pulls", state="open", sort="updated", direction="desc"), etag)
        if page.status == 304:
            return Pulls(etag=page.etag, poll_s=page.poll_s, new=False)
        items, whole = self._rest(page)
        found = []
        for item in items:
            number, sha = item.get("number"), _dict(item.get("head")).get("sha")
            if type(number) is int and isinstance(sha, str):
                self._pulls[number] = item
                found.append(OpenPull(number, sha, partial(self._pull_told, number, sha)))
        # One that is closed is gone from wherever it stood, which the first page does not show.
        etag = first.etag if first.next is None else None
        return Pulls(found, whole, etag, first.poll_s)

    def reviews(self, number: int, etag: str | None) -> Look:
        """All reviews of a pull request that were submitted."""
        page = first = self._questions.listed(self._list(f"pulls/{number}/reviews"), etag)
        if page.status == 304:
            return _nothing(page)
        items, _ = self._rest(page)
        sights = _sights(items, "submitted_at", lambda item: partial(self._review_told, number, item))
        times = _instants(items, "submitted_at")
        return Look(
            sights,
            times[-1] - _REVIEW_LATE if times else None,
            first.etag if first.next is None else None,
            first.poll_s,
        )

    def _event(self, item: dict[str, Any], closes: bool) -> Sight | None:
        action = item.get("event")
        if action not in ("labeled", "closed"):
            return None
        told = partial(self._event_told, action, item) if action == "labeled" or closes else None
        return _sight(item, "created_at", told)

    def _event_told(self, action: str, item: dict[str, Any]) -> Told:
        issue, delivery, actor = _dict(item.get("issue")), f"poll-e{item['id']}", item.get("actor")
        if issue.get("pull_request") is None:
            return self._told("issues", action, delivery, actor, issue=issue)
        return self._told("pull_request", action, delivery, actor, pull_request=self._pull(issue.get("number")))

    def _comments(self, items: Sequence[dict[str, Any]]) -> list[Sight]:
        return _sights(items, "created_at", lambda item: partial(self._comment_told, item))

    def _comment_told(self, item: dict[str, Any]) -> Told:
        number = str(item.get("issue_url")).rpartition("/")[2]
        issue = self._questions.found(f"{repository(self._repo)}/issues/{number}") if number.isdecimal() else None
        delivery = f"poll-c{item['id']}"
        return self._told("issue_comment", "created", delivery, item.get("user"), issue=issue, comment=item)

    def _review_told(self, number: int, item: dict[str, Any]) -> Told:
        delivery, pull = f"poll-rv{item['id']}", self._pull(number)
        return self._told(
            "pull_request_review", "submitted", delivery, item.get("user"), pull_request=pull, review=item
        )

    def _pull_told(self, number: int, sha: str, action: str) -> Told:
        pull = _dict(self._pull(number))
        # Who opened it has not pushed to it: it may have been this deployment, which must not answer itself.
        sender = self._pusher(_dict(pull.get("head")), sha) if action == "synchronize" else pull.get("user")
        return self._told("pull_request", action, f"poll-pr{number}-{sha[:7]}", sender, pull_request=pull)

    def _pusher(self, head: dict[str, Any], sha: str) -> object:
        """Who brought a branch to a commit: https://docs.github.com/en/rest/repos/repos#list-repository-activities"""
        name, ref = _dict(head.get("repo")).get("full_name"), head.get("ref")
        if not isinstance(name, str) or name.count("/") != 1 or not all(map(clean_segment, name.split("/"))):
            return None
        asked = urlencode({"per_page": _PER_PAGE, "ref": f"refs/heads/{ref}"})
        pushes = self._questions.seen(f"{repository(name)}/activity?{asked}")
        return next((one.get("actor") for one in pushes if one.get("after") == sha), None)

    def _pull(self, number: object) -> dict[str, Any] | None:
        """A pull request, asked for once."""
        if type(number) is not int:
            return None
        if number not in self._pulls:
            self._pulls[number] = self._questions.found(f"{repository(self._repo)}/pulls/{number}")
        return self._pulls[number]

    def _told(self, event: str, action: str, delivery: str, sender: object, **parts: object) -> Told:
        whole = {"action": action, **parts, "sender": sender, "repository": {"full_name": self._repo}}
        return {EVENT: event, DELIVERY: delivery}, whole

    def _list(self, path: str, **query: str) -> str:
        return f"{repository(self._repo)}/{path}?{urlencode({'per_page': _PER_PAGE, **query})}"

    def _rest(self, page: Page) -> tuple[list[dict[str, Any]], bool]:
        """The items of a page and of those after it, and whether there are no more."""
        items = [*page.items]
        for _ in range(_PAGES - 1):
            if page.next is None:
                break
            page = self._questions.listed(page.next)
            items += page.items
        return items, page.next is None


def _nothing(page: Page) -> Look:
    return Look(etag=page.etag, poll_s=page.poll_s, new=False)


def _sights(
    items: Sequence[dict[str, Any]], field: str, telling: Callable[[dict[str, Any]], Callable[[], Told]]
) -> list[Sight]:
    found = (_sight(item, field, telling(item)) for item in items)
    return _ordered([one for one in found if one is not None])


def _sight(item: dict[str, Any], field: str, told: Callable[[], Told] | None) -> Sight | None:
    """An object of a list; `None` where it has no number, or no instant: a review that is still being written."""
    number, at = item.get("id"), _instant(item.get(field))
    return Sight(number, at, told) if type(number) is int and number > 0 and at is not None else None


def _ordered(sights: list[Sight]) -> list[Sight]:
    return sorted(sights, key=lambda one: (one.at, one.id))


def _known(times: Sequence[datetime], whole: bool) -> datetime | None:
    """From when on whatever is new has not been seen; `whole`: everything before is known, or nobody's business."""
    if not times:
        return None
    return times[-1] - _LATE if whole else max(times[-1] - _LATE, times[0] + _SECOND)


def _reach(items: Sequence[dict[str, Any]], since: datetime) -> bool:
    """Whether they go back beyond an instant, or to nothing."""
    times = _instants(items)
    return not times or times[0] < since


def _instants(items: Sequence[dict[str, Any]], field: str = "created_at") -> list[datetime]:
    """All of them, the oldest first."""
    found = (_instant(item.get(field)) for item in items)
    return sorted(one for one in found if one is not None)


def _instant(value: object) -> datetime | None:
    try:
        return datetime.strptime(str(value), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}

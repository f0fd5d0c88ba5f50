"""What is said on an issue or a pull request: by this account, by a marker, or now.

https://docs.github.com/en/rest/issues/comments and
https://docs.github.com/en/rest/pulls/reviews#list-reviews-for-a-pull-request
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from github.Auth import Auth

from pidispatch.forges.github.address import repository
from pidispatch.forges.github.api import Api
from pidispatch.forges.github.pages import each
from pidispatch.values.job import Target
from pidispatch.values.names import COMMENT_MARK


def acted(api: Api, auth: Auth, repo: str, target: Target, since: datetime, me: int | str | None) -> bool:
    """Whether the account of that id has written there since then: a comment, one anew, or a review.

    What pi-dispatch itself says of another job does not count. Raises `Unanswered`.
    """
    written = (one for one in _comments(api, auth, repo, target, since) if COMMENT_MARK not in str(one.get("body")))
    if any(_author(comment) == me for comment in written):
        return True
    if target.type != "pull_request":
        return False
    reviews = each(api, auth, f"{repository(repo)}/pulls/{target.number}/reviews")
    return any(_author(review) == me and _not_before(review.get("submitted_at"), since) for review in reviews)


def said(
    api: Api, auth: Auth, repo: str, target: Target, marker: str, since: datetime, me: Callable[[], int | str | None]
) -> bool:
    """Whether a comment of this account of since then holds `marker`. Raises `Unanswered`, and what `me` does.

    `me` says which account that is, where it matters: anybody else may know the marker too.
    """
    marked = (one for one in _comments(api, auth, repo, target, since) if marker in str(one.get("body")))
    return any(_author(comment) == me() for comment in marked)


def say(api: Api, auth: Auth, repo: str, target: Target, text: str) -> None:
    """Leave a comment. Raises `Unanswered`, also where it may have come through."""
    api.ask(auth, "POST", _path(repo, target), {"body": text})


def _comments(api: Api, auth: Auth, repo: str, target: Target, since: datetime) -> Iterator[dict[str, Any]]:
    return each(api, auth, _path(repo, target), {"since": f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"})


def _path(repo: str, target: Target) -> str:
    # Also for a pull request, which is an issue too.
    return f"{repository(repo)}/issues/{target.number}/comments"


def _author(item: dict[str, Any]) -> object:
    """The id of who wrote it; of one who is gone there is none."""
    user = item.get("user")
    return user.get("id") if isinstance(user, dict) else None


def _not_before(value: object, since: datetime) -> bool:
    """Whether an instant, of a review that was handed in, is not before `since`."""
    try:
        instant = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        instant = None
    return instant is not None and instant.tzinfo is not None and instant >= since

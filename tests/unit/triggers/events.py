"""Events as a forge's module makes them, by hand."""

from typing import Any

from pidispatch.values.event import Actor, Event, Identity, Occasion
from pidispatch.values.job import Comment, Review, Target

#: This deployment's own account.
ME = Identity(id=9_000, alias="pi@example.com")
ALICE = Actor(id=1001)


def issue(number: int = 7) -> Target:
    """An issue."""
    return Target(type="issue", number=number)


def pull(number: int = 8) -> Target:
    """A pull request."""
    return Target(type="pull_request", number=number)


def event(forge: Any, name: str, action: str, *occasions: Occasion, **fields: Any) -> Event:
    """An event on issue 7 of `acme/web` by somebody, with other or further fields."""
    whole: dict[str, Any] = {"actor": ALICE, "repo": "acme/web", "target": issue()}
    return Event(forge=forge, delivery="d-1", event=name, action=action, occasions=occasions, **(whole | fields))


def labeled(*labels: str, forge: Any = "github", **fields: Any) -> Event:
    """An issue that has these labels, or got them."""
    return event(forge, "issues", "labeled", Occasion.LABEL, labels=labels, **fields)


def commented(body: str, *, forge: Any = "github", association: str | None = "MEMBER", **fields: Any) -> Event:
    """A comment."""
    comment = Comment(body=body)
    fields = {"comment": comment, "association": association} | fields
    return event(forge, "issue_comment", "created", Occasion.COMMENT, **fields)


def happened(action: str, *, forge: Any = "github", association: str | None = "MEMBER", **fields: Any) -> Event:
    """Something that happened to a pull request."""
    fields = {"target": pull(), "association": association} | fields
    return event(forge, "pull_request", action, Occasion.PULL_REQUEST, **fields)


def reviewed(state: str, body: str = "Look there.", *, association: str | None = "MEMBER", **fields: Any) -> Event:
    """A review of a pull request on GitHub; `association` is the reviewer's."""
    fields = {"target": pull(), "association": association, "review": Review(state=state, body=body)} | fields
    return event("github", "pull_request_review", "submitted", Occasion.REVIEW, **fields)


def closed(number: int = 40, *, forge: Any = "github", kind: str = "issue", **fields: Any) -> Event:
    """An issue or a pull request that was closed."""
    name, target = ("issues", issue(number)) if kind == "issue" else ("pull_request", pull(number))
    word = "close" if forge == "gitlab" else "closed"
    fields = {"target": target} | fields
    return event(forge, name, word, *fields.pop("occasions", [Occasion.CLOSE]), **fields)

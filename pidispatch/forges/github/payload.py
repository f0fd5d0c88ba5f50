"""A payload of GitHub's, read field by field. What is not named here goes no further.

Whatever stands in it, this does not fail: a field that is not what it should be is taken as missing.
https://docs.github.com/en/webhooks/webhook-events-and-payloads
"""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from pidispatch.forges.github.wire import DELIVERY, EVENT
from pidispatch.values.event import Actor, Event, Occasion
from pidispatch.values.forge import JobKind
from pidispatch.values.job import Comment, Head, Review, Target

#: Which rules an event can fire, by its name and its action; all others fire none.
OCCASIONS: Final[Mapping[tuple[str, str], Occasion]] = {
    ("issues", "opened"): Occasion.LABEL,
    ("issues", "labeled"): Occasion.LABEL,
    ("issues", "reopened"): Occasion.LABEL,
    ("issues", "closed"): Occasion.CLOSE,
    ("issue_comment", "created"): Occasion.COMMENT,
    ("pull_request", "labeled"): Occasion.PULL_REQUEST,
    ("pull_request", "opened"): Occasion.PULL_REQUEST,
    ("pull_request", "synchronize"): Occasion.PULL_REQUEST,
    ("pull_request", "reopened"): Occasion.PULL_REQUEST,
    ("pull_request", "closed"): Occasion.CLOSE,
    ("pull_request_review", "submitted"): Occasion.REVIEW,
}
#: The part of the payload whose author's word counts.
_WRITTEN: Final = {"issue_comment": "comment", "pull_request": "pull_request", "pull_request_review": "review"}
#: The largest number that a server or a database keeps exactly.
_MOST: Final = 2**63 - 1
#: A surrogate without its other half, which JSON can spell and no text can hold.
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
#: GitHub's own fixed words.
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}", re.ASCII)
#: What would lead elsewhere in the address of a question.
_UNCLEAN: Final = re.compile(r"[\s/?#]")
_LONGEST_SEGMENT: Final = 100


def project(headers: Mapping[str, str], document: Any) -> Event:
    """The event of a delivery, `document` being its body's JSON."""
    payload = _dict(document)
    event, action = _text(headers.get(EVENT)), _word(payload.get("action")) or ""
    occasion = OCCASIONS.get((event, action))
    sender = _dict(payload.get("sender"))
    return Event(
        forge=JobKind.GITHUB,
        delivery=_text(headers.get(DELIVERY)),
        event=event,
        action=action,
        installation=_number(_dict(payload.get("installation")).get("id")),
        occasions=() if occasion is None else (occasion,),
        actor=Actor(id=_number(sender.get("id")), login=_text(sender.get("login")) or None),
        association=_word(_dict(payload.get(_WRITTEN.get(event, ""))).get("author_association")),
        repo=_repo(payload.get("repository")),
        target=_target(event, payload),
        labels=_labels(payload, event),
        comment=_comment(payload.get("comment")) if event == "issue_comment" else None,
        review=_review(payload.get("review")) if event == "pull_request_review" else None,
    )


def clean_segment(text: object) -> bool:
    """Whether `text` can stand as one part of an address and mean itself: an owner, a repository, a login."""
    if not isinstance(text, str) or not 0 < len(text) <= _LONGEST_SEGMENT or text in (".", ".."):
        return False
    return text.isprintable() and _UNCLEAN.search(text) is None


def _target(event: str, payload: dict[str, Any]) -> Target | None:
    """What the event is about: one item with a number."""
    if event in ("pull_request", "pull_request_review"):
        pull = _dict(payload.get("pull_request"))
        base = _text(_dict(pull.get("base")).get("ref")) or None
        return _item("pull_request", pull, head=_head(pull.get("head")), base=base)
    issue = _dict(payload.get("issue"))
    is_pull = issue.get("pull_request") is not None
    if event == "issues" and is_pull:
        # Rules for issues are never about a pull request.
        return None
    return _item("pull_request" if is_pull else "issue", issue)


def _item(
    kind: Literal["issue", "pull_request"], item: dict[str, Any], head: Head | None = None, base: str | None = None
) -> Target | None:
    number = _number(item.get("number"))
    if number is None:
        return None
    return Target(
        type=kind, number=number, title=_text(item.get("title")), body=_text(item.get("body")), head=head, base=base
    )


def _head(value: object) -> Head | None:
    head = _dict(value)
    ref, sha = _text(head.get("ref")), _text(head.get("sha"))
    return Head(ref=ref, sha=sha, repo=_repo(head.get("repo"))) if ref and sha else None


def _labels(payload: dict[str, Any], event: str) -> tuple[str, ...]:
    item = payload.get("issue" if event in ("issues", "issue_comment") else "pull_request")
    labels = _dict(item).get("labels")
    names = [_dict(one).get("name") for one in labels] if isinstance(labels, list) else []
    return tuple(_text(name) for name in names if isinstance(name, str))


def _comment(value: object) -> Comment:
    comment = _dict(value)
    return Comment(body=_text(comment.get("body")), author_association=_word(comment.get("author_association")))


def _review(value: object) -> Review:
    review = _dict(value)
    return Review(
        id=_number(review.get("id")),
        body=_text(review.get("body")),
        state=(_word(review.get("state")) or "").lower(),
        author_association=_word(review.get("author_association")),
    )


def _repo(value: object) -> str | None:
    """`owner/name`, where it is that and nothing else."""
    name = _dict(value).get("full_name")
    if not isinstance(name, str):
        return None
    parts = name.split("/")
    return name if len(parts) == 2 and all(map(clean_segment, parts)) else None


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> int | None:
    """An id or the number of an item; a truth value, a fraction or a text of digits is none."""
    return value if type(value) is int and 1 <= value <= _MOST else None


def _text(value: object) -> str:
    if not isinstance(value, str):
        return ""
    # Asked first, as it takes no time: a body may have two million letters.
    return value if value.isascii() else _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and _WORD.fullmatch(value) else None

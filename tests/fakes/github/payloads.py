"""Deliveries: bodies of webhooks, their headers and their signature."""

import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Any

#: The secret of the examples' webhook.
SECRET = "test-secret"
REPO = "acme/web"
#: An issue that got a label, byte for byte, and its signature with `SECRET`.
LABELED = (
    b'{"action":"labeled","issue":{"number":7,"title":"Broken link","body":"The footer link 404s.",'
    b'"labels":[{"name":"pi:fix"}]},"sender":{"id":1001,"login":"alice"},"repository":{"full_name":"acme/web"}}'
)
LABELED_SIGNATURE = "sha256=a545bd3e9fb74b90ee68c850a6fc0c7733847f53c39c535663ca4670469406be"


def sign(body: bytes, secret: str = SECRET) -> str:
    """The value of `X-Hub-Signature-256`."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def encode(payload: Any) -> bytes:
    """A payload as a body."""
    return json.dumps(payload, separators=(",", ":")).encode()


def headers(event: str, body: bytes, delivery: str, secret: str = SECRET) -> dict[str, str]:
    """The headers of a delivery."""
    return {
        "Content-Type": "application/json",
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": delivery,
        "X-Hub-Signature-256": sign(body, secret),
    }


def _whole(action: str, sender: int, login: str, repo: str, **parts: Any) -> dict[str, Any]:
    return {
        "action": action,
        **parts,
        "sender": {"id": sender, "login": login},
        "repository": {"full_name": repo},
    }


def issues(
    action: str = "labeled",
    *,
    number: int = 7,
    labels: Sequence[str] = ("pi:fix",),
    sender: int = 1001,
    login: str = "alice",
    repo: str = REPO,
) -> dict[str, Any]:
    """`issues`; as it stands, the payload of `LABELED`."""
    issue = {
        "number": number,
        "title": "Broken link",
        "body": "The footer link 404s.",
        "labels": [{"name": name} for name in labels],
    }
    return _whole(action, sender, login, repo, issue=issue)


def issue_comment(
    body: str = "@pi please",
    *,
    association: str = "MEMBER",
    number: int = 9,
    on_pull: bool = False,
    sender: int = 1001,
    repo: str = REPO,
) -> dict[str, Any]:
    """`issue_comment`, created."""
    issue: dict[str, Any] = {"number": number, "title": "A question", "body": "Why?", "labels": []}
    if on_pull:
        issue["pull_request"] = {"url": f"https://api.github.com/repos/{repo}/pulls/{number}"}
    comment = {"body": body, "author_association": association}
    return _whole("created", sender, "alice", repo, issue=issue, comment=comment)


def _pull(number: int, association: str, labels: Sequence[str], repo: str) -> dict[str, Any]:
    return {
        "number": number,
        "title": "Mend the footer",
        "body": "As asked.",
        "author_association": association,
        "labels": [{"name": name} for name in labels],
        "head": {"ref": "mend", "sha": "a" * 40, "repo": {"full_name": "fork/web"}},
        "base": {"ref": "main"},
    }


def pull_request(
    action: str = "opened",
    *,
    association: str = "MEMBER",
    number: int = 8,
    labels: Sequence[str] = (),
    sender: int = 1001,
    login: str = "alice",
    repo: str = REPO,
) -> dict[str, Any]:
    """`pull_request`; `association` is the author's."""
    return _whole(action, sender, login, repo, pull_request=_pull(number, association, labels, repo))


def pull_request_review(
    state: str = "CHANGES_REQUESTED",
    *,
    reviewer: str = "MEMBER",
    author: str = "NONE",
    body: str = "Please mend the test.",
    action: str = "submitted",
    number: int = 8,
    sender: int = 1001,
    repo: str = REPO,
) -> dict[str, Any]:
    """`pull_request_review`; `reviewer` and `author` are their associations."""
    review = {"id": 5001, "body": body, "state": state, "author_association": reviewer}
    return _whole(action, sender, "alice", repo, review=review, pull_request=_pull(number, author, (), repo))


def closed(number: int = 40, *, sender: int = 1002, login: str = "bob", repo: str = REPO) -> dict[str, Any]:
    """`issues`, closed by somebody who must be asked about."""
    return issues("closed", number=number, labels=(), sender=sender, login=login, repo=repo)

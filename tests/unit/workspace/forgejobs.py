"""Jobs of a forge as tests want them."""

from typing import Any

from pidispatch.values.forge import JobKind
from pidispatch.values.job import ForgeJob, Matched, Origin, Sender, Target


def issue(title: str = "a title", body: str = "a body", number: int = 7) -> Target:
    return Target(type="issue", number=number, title=title, body=body)


def pull_request(title: str = "a title", body: str = "a body", number: int = 7, **more: Any) -> Target:
    return Target(type="pull_request", number=number, title=title, body=body, **more)


def origin(**more: Any) -> Origin:
    given: dict[str, Any] = {
        "event": "issues",
        "action": "labeled",
        "delivery_id": "8f2c",
        "sender": Sender(id=42),
        "matched": Matched(type="label", index=3, label="pi:fix"),
    }
    return Origin(**{**given, **more})


def forge_job(**more: Any) -> ForgeJob:
    """A job of the flow `fix` for issue 7 of `acme/web`, where nothing else is said."""
    given: dict[str, Any] = {
        "id": "gh-8f2c",
        "kind": JobKind.GITHUB,
        "repo": "acme/web",
        "target": issue(),
        "flow": None if "command" in more else "fix",
        "trigger": origin(),
    }
    return ForgeJob(**{**given, **more})

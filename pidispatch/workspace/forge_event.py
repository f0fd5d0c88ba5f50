"""What a job of a forge is told of the event that it comes from, beside its prompt (docs/explanation/prompt.md)."""

import json
from typing import Any

from pidispatch.values.base import Value
from pidispatch.values.job import ForgeJob


def forge_event(job: ForgeJob) -> str:
    """`event.json` of a job of a forge. Each key is named here: nothing that says how the job is run is among them."""
    origin, target = job.trigger, job.target
    about: dict[str, Any] = {"number": target.number, "title": target.title, "body": target.body}
    if target.type == "pull_request":
        about |= _given(head=target.head, base=target.base)
    told = {
        "event": origin.event,
        "action": origin.action,
        "delivery": origin.delivery_id,
        "repository": {"full_name": job.repo},
        target.type: about,
        **_given(comment=origin.comment, review=origin.review),
        "sender": {"id": origin.sender.id},
        "matched": _plain(origin.matched),
    }
    return json.dumps(told) + "\n"


def _given(**values: Value | str | None) -> dict[str, Any]:
    """Those that there are."""
    return {name: _plain(value) for name, value in values.items() if value is not None}


def _plain(value: Value | str) -> Any:
    # With the names that forges themselves have for these things.
    return value.model_dump(mode="json", by_alias=False, exclude_none=True) if isinstance(value, Value) else value

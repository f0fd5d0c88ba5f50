"""What an entry of the triggers file is known by where its place does not do: the file is edited, marks must not move.

Hashes of the normalised entry, so that blanks and the order of keys make no difference (docs/reference/triggers.md).
"""

import hashlib
import json
from typing import Any, Final

from pidispatch.triggers.entry import CronTrigger, ForgeTrigger

_DIGITS: Final = 16


def breaker_of(trigger: CronTrigger | ForgeTrigger) -> str:
    """What its runs are counted under: the id of a schedule; else what fires the rule and what it runs.

    A rule that is edited in the rest stays the same, one that takes its place in the file does not.
    """
    if isinstance(trigger, CronTrigger):
        return trigger.on.id
    run = trigger.run
    return _hash({"kind": run.kind, "on": _on(trigger), "flow": run.flow, "command": run.command})


def oneshot_of(trigger: CronTrigger | ForgeTrigger) -> str | None:
    """What the mark of a rule that fires once is kept under: the whole rule. `None` for one that fires again."""
    if isinstance(trigger, CronTrigger) or not getattr(trigger.on, "once", None):
        return None
    return _hash({"on": _on(trigger), "run": trigger.run.model_dump(mode="json", exclude_none=True)})


def _on(trigger: ForgeTrigger) -> dict[str, Any]:
    return trigger.on.model_dump(mode="json", exclude_none=True, exclude={"disarmed"})


def _hash(part: dict[str, Any]) -> str:
    text = json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]

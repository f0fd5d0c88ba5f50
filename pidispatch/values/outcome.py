"""How an attempt ended: four kinds of value, returned and never thrown."""

from typing import Literal

from pidispatch.values.base import Value
from pidispatch.values.reason import AbortReason, Reason


class Completed(Value):
    """The agent ran to its own end, whatever it says it achieved."""

    kind: Literal["completed"] = "completed"
    #: The model's last answer was cut at its own output limit.
    truncated: bool = False


class Refused(Value):
    """Ended by policy: before anything was spent, or by a rule of the runner. Never retried."""

    kind: Literal["refused"] = "refused"
    reason: Reason
    #: A fixed token that narrows the reason down.
    cause: str | None = None
    #: One sentence for the operator; not recorded.
    detail: str | None = None
    #: What to write instead, when it is more exact than the reason's own remedy.
    remedy: str | None = None
    #: What a forge answered, where that explains it: one line, recorded.
    said: str | None = None


class Aborted(Value):
    """Ended by whoever runs the job. Never retried."""

    kind: Literal["aborted"] = "aborted"
    reason: Reason
    cause: AbortReason


class InfraFailed(Value):
    """The surroundings failed. May be retried."""

    kind: Literal["infra"] = "infra"
    reason: Reason
    cause: str | None = None
    detail: str | None = None
    #: What to do, when it is more exact than the reason's own remedy.
    remedy: str | None = None
    #: What a forge answered, where that explains it: one line, recorded.
    said: str | None = None


Outcome = Completed | Refused | Aborted | InfraFailed


def recorded_outcome(outcome: Outcome) -> Literal["completed", "policy", "failed"]:
    """The word a run record carries for an outcome (docs/reference/reasons.md)."""
    match outcome:
        case Completed():
            return "completed"
        case Refused() | Aborted():
            return "policy"
        case InfraFailed():
            return "failed"

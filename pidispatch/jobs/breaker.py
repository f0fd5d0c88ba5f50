"""What the end of a job says of its trigger: runs that come to nothing, one after the other, pause it.

docs/how-to/triggers.md tells which ends count.
"""

from typing import Final, Literal

from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.record import RunRecord

Said = Literal["bad", "good", ""]
#: Ends that an operator, a cap or a stop brought about: they are no word about the trigger.
_NEUTRAL: Final = frozenset(
    {
        Reason.OPERATOR_CANCEL,
        Reason.ONCE_ALREADY_SPENT,
        Reason.DAILY_TOKEN_CAP,
        Reason.OVER_BUDGET,
        Reason.SOFT_HOLD,
    }
)
#: A job in the words of another version.
_NEWER: Final = "row-unreadable"


def said_of_trigger(record: RunRecord) -> Said:
    """`bad` where the job failed, was refused, or changed nothing; `good` where it changed something."""
    if record.outcome == "completed":
        if record.changed is None:
            return ""
        return "good" if record.changed else "bad"
    if record.reason in _NEUTRAL or record.cause == _NEWER:
        return ""
    if record.reason == Reason.WORKER_ABORT and record.cause != AbortReason.JOB_TIMEOUT:
        return ""
    return "bad"

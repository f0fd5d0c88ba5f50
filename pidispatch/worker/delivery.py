"""What became of one delivered ticket: the value that the Celery task turns into its end."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from pidispatch.values.job import Job
from pidispatch.values.outcome import Outcome
from pidispatch.values.record import RunRecord


class End(Enum):
    """How the delivery ends."""

    #: The attempt ended and no other follows: the task succeeds.
    RETURNED = auto()
    #: The last attempt failed for reasons outside of the job: the task fails.
    FAILED = auto()
    #: Another ticket of this job comes at its time, after a deferral or a failed attempt.
    AGAIN = auto()
    #: A ticket that has no say any more.
    IGNORED = auto()
    #: The store did not say whether the ticket counts: it comes again soon, as it is.
    UNDECIDED = auto()
    #: This worker is about to stop and begins nothing: the ticket goes back to its queue.
    GIVEN_BACK = auto()


def _nothing() -> None:
    pass


@dataclass
class Delivery:
    """One ticket and its end."""

    job_id: str
    end: End
    #: The record that this delivery has to write: it alone was told that its end counts.
    record: RunRecord | None = None
    #: The job that it is about, where this worker read it.
    job: Job | None = field(default=None, repr=False)
    #: How its attempt ended, in more words than the record has; `None` where none ended here, or another follows.
    outcome: Outcome | None = field(default=None, repr=False)
    #: Of the next ticket.
    gen: int = 0
    delay_ms: int = 0
    queue: str = ""
    label: str = ""
    #: Gives back slot and folder.
    release: Callable[[], None] = field(default=_nothing, repr=False)

    @property
    def word(self) -> str:
        """What Flower shows as the task's result: fixed words only."""
        if self.record is None:
            return self.end.name.lower()
        return f"{self.record.outcome}{f' {self.record.reason}' if self.record.reason else ''}"

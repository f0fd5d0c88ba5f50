"""The job store's values: what a job's row holds, what a ticket carries, and what each move answers."""

from enum import StrEnum
from typing import Final, Literal, NamedTuple

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from pidispatch.jobs.charges import Reserved, TurnedAway, verdict
from pidispatch.jobs.delivered import Delivery
from pidispatch.values.base import Value
from pidispatch.values.errors import InfraError
from pidispatch.values.forge import FORGES, JobKind
from pidispatch.values.job import Job, read_job
from pidispatch.values.record import RunRecord

#: Digits of a number that a worker tells of itself.
_DIGITS: Final = 9
#: Amounts by key; the store's own arithmetic makes no difference between 1 and 1.0.
_CHARGED: Final = TypeAdapter(dict[str, int])


class JobState(StrEnum):
    """Where a job stands."""

    #: Its ticket lies in its queue.
    QUEUED = "queued"
    #: It sleeps until its instant.
    DEFERRED = "deferred"
    #: A worker holds it.
    ACTIVE = "active"
    #: It ended, by itself or by policy.
    COMPLETED = "completed"
    #: It ended because the surroundings failed.
    FAILED = "failed"
    #: It was cancelled before it was run.
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        """Whether the job never runs again."""
        return self in (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED)


class Answer(StrEnum):
    """What the store says to the one who believes to hold a job."""

    #: It is done.
    WON = "won"
    #: Another one holds the job, or nobody does: nothing was changed.
    STALE = "stale"
    #: The store knows no such job.
    UNKNOWN = "unknown"
    #: A request to cancel stands: end the job by it instead. Nothing was changed.
    CANCEL = "cancel"


def ending_state(record: RunRecord) -> JobState:
    """The state of a job that a worker ended with `record`. Also one that was stopped ran to its end."""
    return JobState.FAILED if record.outcome == "failed" else JobState.COMPLETED


class Keep(NamedTuple):
    """How long the row of a job stays, in milliseconds from its end."""

    #: After success, a refusal or a cancel.
    done_ms: int
    #: After a failure.
    failed_ms: int


_HOUR_MS: Final = 3_600_000
#: Retention of each kind of job. Until then its id is refused as a duplicate.
RETENTION: Final[dict[JobKind, Keep]] = {
    JobKind.LOCAL: Keep(24 * _HOUR_MS, 7 * 24 * _HOUR_MS),
    # Longer than a forge sends a delivery again, or a person clicks on that.
    **{kind: Keep(31 * 24 * _HOUR_MS, 31 * 24 * _HOUR_MS) for kind in FORGES},
}


class Ticket(Value):
    """All that a message carries: it says that the job can be looked at, and the row says the rest."""

    job_id: str
    #: Generation of the job that it announces; the store takes no ticket of an earlier one.
    gen: int
    queue: str
    #: What may be shown of the job; no text of it.
    label: str


class Submitted(Value):
    """What became of a job that was handed in."""

    #: `trigger-paused`: its trigger is. `spent`: its rule fires once, and has. No job was made of either.
    status: Literal["submitted", "duplicate", "coalesced", "trigger-paused", "spent"]
    #: Its id; for `coalesced` that of the job which holds the semantic key; empty where none was made.
    job_id: str
    #: To be published next; `None` but for `submitted`.
    ticket: Ticket | None = None


class Submission(NamedTuple):
    """A job that is handed in, and how."""

    job: Job
    queue: str
    #: Attempts at it: the one retry comes `Limits.retry_base_ms` after the first.
    max_attempts: int = 2
    #: What the same wish has in common, where two of them are to be one job.
    dedup_key: str | None = None
    #: Make no job of a paused trigger.
    heed_pause: bool = False
    #: What the log of deliveries keeps of the event that asks for it.
    delivery: Delivery | None = None


class Lease(Value):
    """The proof that one worker holds one attempt of a job."""

    job_id: str
    #: `<worker>#<engine id>#<nonce>`; the nonce is new for every delivery.
    owner: str
    gen: int
    #: Number of the attempt, from 1.
    attempt: int


class Acquired(Value):
    """A job that the worker holds now."""

    job: Job
    lease: Lease
    queue: str
    label: str
    max_attempts: int
    #: Record of the attempt before, which failed.
    previous: RunRecord | None = None


class Paused(Value):
    """A job that was put to sleep instead, because its queue is paused. This ticket is to be published next."""

    ticket: Ticket
    #: Until it is looked at again, in milliseconds.
    delay_ms: int


class Ignored(Value):
    """A ticket that is to be dropped, because its job needs none."""

    state: Literal["stale", "active", "finished", "unknown"]


class Deferred(Value):
    """A job that was put to sleep."""

    #: Generation of the ticket that wakes it.
    gen: int
    #: Its instant by the server's clock, in milliseconds since 1970.
    due_ms: int
    #: Milliseconds from now to that instant.
    delay_ms: int


class Cancelled(Value):
    """What a cancel came to."""

    #: `cancelled`: it waited, and will not run. `requested`: a worker holds it and is asked to stop it. Else the state
    #: that it had ended in, or `unknown`. `stale`: it has moved on since the record was made; look again.
    status: Literal["cancelled", "requested", "completed", "failed", "unknown", "stale"]
    #: It was this call that cancelled it, and not an earlier one.
    changed: bool = False


class Settled(Value):
    """What the settling of a broken-off attempt came to."""

    #: `won`: the job has this end. `unspent`: it is queued again, having cost nothing. `completed-telemetry`: it had
    #: ended as lost, and its record knows now what was used. `stale`: it needs nothing of this.
    status: Literal["won", "unspent", "completed-telemetry", "stale", "unknown"]
    #: To be published next, for `unspent`; `None` where it was the last time it could be queued again.
    ticket: Ticket | None = None


class Swept(Value):
    """What a sweep found. All tickets of it are to be published next."""

    #: Jobs that ended now because the worker that held them is gone.
    lost: tuple[str, ...] = ()
    #: Tickets of jobs whose worker is gone before it spent anything.
    requeued: tuple[Ticket, ...] = ()
    #: Tickets in the place of those that never arrived.
    publish: tuple[Ticket, ...] = ()
    #: Jobs whose record still has to be written.
    unrecorded: tuple[str, ...] = ()


class WorkerSeen(Value):
    """A worker, as it last described itself."""

    name: str
    fields: dict[str, str]
    #: Milliseconds since it did, by the server's clock.
    age_ms: int

    @property
    def queues(self) -> list[str]:
        """The queues that it takes from."""
        return [name for name in self.fields.get("queues", "").split(",") if name]

    def told(self, name: str) -> int:
        """A number that it tells of itself; 0 where it tells none, as one of another version may."""
        text = self.fields.get(name, "")
        return int(text) if text.isdecimal() and len(text) <= _DIGITS else 0


def unreadable(job_id: str) -> str:
    """What is said of a row that holds no job."""
    return f"the store holds job {job_id} in a form that this version does not read; submit it again"


class RowUnreadable(InfraError):
    """The data of an acquired job cannot be read, so it cannot run; `lease` lets its holder fail it."""

    def __init__(self, lease: Lease, queue: str, label: str, max_attempts: int) -> None:
        super().__init__(unreadable(lease.job_id), "row-unreadable")
        self.lease = lease
        self.queue = queue
        self.label = label
        self.max_attempts = max_attempts


class Row(Value):
    """A job as the store holds it. Instants are milliseconds since 1970 by the server's clock."""

    model_config = ConfigDict(extra="ignore")

    id: str
    state: JobState
    queue: str
    label: str
    kind: str
    #: The job as JSON. It holds the task: never logged.
    data: str = Field(repr=False)
    gen: int
    #: Number of the attempt that runs, or comes next, or was the last.
    attempt: int
    max_attempts: int
    created_ms: int = Field(alias="createdAt")
    #: When its ticket was last published.
    published_ms: int = Field(alias="publishedAt")
    #: When it wakes; only of a deferred job.
    due_ms: int | None = Field(default=None, alias="due")
    #: Why it sleeps.
    why: str | None = None
    acquired_ms: int | None = Field(default=None, alias="acquiredAt")
    #: Since when this attempt may have cost something.
    spend_ms: int | None = Field(default=None, alias="spendFrom")
    #: What this attempt was counted for, as JSON: amounts by key, without the prefix of all keys.
    charged_text: str | None = Field(default=None, alias="charged", repr=False)
    #: Its generation and what the counters answered it, as JSON.
    verdict_text: str | None = Field(default=None, alias="verdict", repr=False)
    finished_ms: int | None = Field(default=None, alias="finishedAt")
    #: The lease's owner; only of an active job.
    owner: str | None = None
    #: The owner that went away with the last attempt.
    lost_owner: str | None = None
    #: Times it was lost before it spent anything.
    lost: int = 0
    dedup_key: str | None = None
    #: What the store knows its rule by, where that fires once; and what its trigger's runs are counted under.
    oneshot: str | None = None
    breaker: str | None = None
    #: Reason and cause it ended with.
    reason: str | None = None
    cause: str | None = None
    #: The attempt that the record below is about.
    record_attempt: int | None = None
    #: Whether that record is written; `None` where there is nothing to write.
    recorded: bool | None = None
    #: The record as JSON; none where the job ended without a worker.
    record: str | None = Field(default=None, repr=False)
    #: The record of an earlier attempt, where this one has none of its own.
    previous: str | None = Field(default=None, repr=False)
    #: A record that a job which had ended as lost takes its telemetry from.
    telemetry: str | None = Field(default=None, repr=False)

    @property
    def charged(self) -> dict[str, int]:
        """What this attempt was counted for: amounts by key, without the prefix of all keys."""
        return {} if self.charged_text is None else _CHARGED.validate_json(self.charged_text)

    @property
    def verdict(self) -> Reserved | TurnedAway | None:
        """What the counters answered its last attempt; `None` where it has not asked."""
        return None if self.verdict_text is None else verdict(self.verdict_text.partition(" ")[2])

    @property
    def job(self) -> Job:
        """The job. Raises `InfraError` where this version does not read it."""
        try:
            return read_job(self.data)
        except ValidationError:
            raise InfraError(unreadable(self.id), "row-unreadable") from None

    @property
    def ticket(self) -> Ticket:
        """The ticket that would announce it as it stands."""
        return Ticket(job_id=self.id, gen=self.gen, queue=self.queue, label=self.label)

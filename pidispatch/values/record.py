"""The run record: what is kept of a run. Ids, operator-chosen names, numbers and fixed words only."""

from datetime import datetime
from typing import Any, Final, Literal

from pydantic import ConfigDict, Field

from pidispatch.values.base import Number, Value
from pidispatch.values.change import Change
from pidispatch.values.job import ForgeJob, Job
from pidispatch.values.outcome import Aborted, Completed, InfraFailed, Outcome, recorded_outcome
from pidispatch.values.reason import Reason
from pidispatch.values.usage import Context, Telemetry, Usage

#: What the keys of counters begin with that are not of the whole deployment.
_NARROW: Final = "budget:s:"


class Result(Value):
    """What one attempt returns: its outcome and everything learnt on the way."""

    outcome: Outcome = Field(discriminator="kind")
    started_at: datetime
    ended_at: datetime
    provider: str
    model: str
    #: A container was started, or may have been; `None` where our own mistake keeps that from being known.
    spent: bool | None = False
    #: Exit status of the container; `None` when none ran.
    exit_code: int | None = None
    telemetry: Telemetry = Telemetry()
    image_digest: str | None = None
    change: Change | None = None
    #: Unified diff of what changed; shown, never recorded.
    diff: str | None = None
    #: Why what changed could not be read, when it could not.
    change_error: str | None = None
    #: Files the agent left in its outbox, which nothing reads yet.
    outbox_files: int = 0
    #: Entries of the folder's git directory that the agent had changed and that were put back.
    restored: tuple[str, ...] = ()
    #: Where the agent's versions of them are kept; shown, never recorded.
    kept: str | None = None
    #: Why the git directory could not be put back, when it could not.
    guard_error: str | None = None
    #: Seconds from the container's start to its end.
    container_s: float | None = None
    #: What the attempt stays counted for: amounts by the key of a counter.
    charged: dict[str, int] = Field(default_factory=dict)

    @classmethod
    def begin(cls, now: datetime, provider: str, model: str) -> "Result":
        """The result of an attempt that has not come to anything yet."""
        unfinished = InfraFailed(reason=Reason.INFRA, cause="unfinished")
        return cls(outcome=unfinished, started_at=now, ended_at=now, provider=provider, model=model)

    def ending(self, outcome: Outcome) -> "Result":
        """The same attempt with its outcome."""
        return self.model_copy(update={"outcome": outcome})


class SessionUse(Value):
    """What became of a resumable session."""

    resumed: bool
    reason: str | None
    #: Size of the transcript.
    bytes: int | None


class EarlierAttempt(Value):
    """What is kept of an attempt that another one followed."""

    model_config = ConfigDict(extra="ignore")

    attempt: int
    started_at: datetime | None
    ended_at: datetime | None
    reason: str | None
    cause: str | None
    exit_code: int | None
    tokens: dict[str, Number | bool] | None
    usage: Usage | None
    budget_reserved: bool | None
    git_restored: int | None = None
    charged: dict[str, int] | None = None


class RunRecord(Value):
    """The last attempt at a job, as JSON with these keys (docs/reference/record.md).

    The only texts in it are ids, names that an operator chose, words of closed lists, and what a forge answered to a
    question for a token.
    """

    #: Readers ignore keys of later versions.
    model_config = ConfigDict(extra="ignore")

    job_id: str
    kind: str | None
    target: str | None
    flow: str | None
    #: Name of the command of a command job, up to its first blank.
    command: str | None = None
    started_at: datetime | None
    ended_at: datetime | None
    outcome: Literal["completed", "policy", "failed"]
    reason: str | None
    #: What narrows the reason down.
    cause: str | None
    #: `None` when no container ran.
    exit_code: int | None
    turns: int | None
    tokens: dict[str, Number | bool] | None
    usage: Usage | None
    context: Context | None
    #: As the host chose it; never what the container says.
    provider: str | None
    model: str | None
    #: Whether the run stays counted in the deployment's windows; where none counts it, whether its container was
    #: started.
    budget_reserved: bool | None
    #: What it stays counted for, exactly: amounts by the key of a counter, without the prefix of all keys.
    charged: dict[str, int] | None = None
    #: Which attempt at the job this is, from 1.
    attempt: int
    #: The attempts before it, oldest first.
    attempts: tuple[EarlierAttempt, ...] = ()
    #: Name of the machine that ran it.
    host: str | None
    image_digest: str | None
    #: `None` where it could not be read or nothing ran.
    changed: bool | None
    #: Entries of the git directory that the agent had changed and that were put back; `None` where nothing ran.
    git_restored: int | None
    parent_job_id: str | None = None
    chain_depth: int | None = None
    chain_enqueued: int | None = None
    chain_refused: int | None = None
    replica: int | None = None
    replicas: int | None = None
    trigger_index: int | None = None
    trigger_type: str | None = None
    session: SessionUse | None = None
    trace_id: str | None = None
    #: The job that this one repeats, because an operator asked for it.
    retry_of: str | None = None
    #: What the forge answered, where it gave no token: one line of its own words.
    said: str | None = None

    @classmethod
    def of(
        cls, job: Job, result: Result, host: str, attempt: int = 1, attempts: tuple[EarlierAttempt, ...] = ()
    ) -> "RunRecord":
        """The record of one attempt, built key by key so that nothing else can slip in."""
        outcome = result.outcome
        refusal = None if isinstance(outcome, Completed) else outcome
        return cls(
            job_id=job.id,
            kind=job.kind.value,
            target=job.target_name,
            flow=job.flow,
            command=job.command_name,
            started_at=result.started_at,
            ended_at=result.ended_at,
            outcome=recorded_outcome(outcome),
            reason=refusal.reason.value if refusal else None,
            cause=str(refusal.cause) if refusal and refusal.cause else None,
            exit_code=result.exit_code,
            turns=result.telemetry.turns,
            tokens=result.telemetry.tokens,
            usage=result.telemetry.usage,
            context=result.telemetry.context,
            provider=result.provider,
            model=result.model,
            budget_reserved=_reserved(result, refusal.reason if refusal else None),
            charged=result.charged,
            attempt=attempt,
            attempts=attempts,
            host=host,
            image_digest=result.image_digest,
            changed=result.change.changed if result.change else None,
            git_restored=len(result.restored) if result.spent else None,
            replica=job.replica if isinstance(job, ForgeJob) else None,
            replicas=job.replicas if isinstance(job, ForgeJob) else None,
            trigger_index=job.matched.index if job.matched else None,
            trigger_type=job.matched.type if job.matched else None,
            retry_of=job.retry_of,
            said=None if isinstance(outcome, Completed | Aborted) else outcome.said,
        )

    @classmethod
    def of_no_run(cls, **known: Any) -> "RunRecord":
        """The record of an end that no attempt of this program's own stands behind: what is not `known` is null."""
        absent = {name: None for name, field in cls.model_fields.items() if field.is_required()}
        return cls.model_validate({**absent, **known})

    @property
    def as_earlier(self) -> tuple[EarlierAttempt, ...]:
        """The earlier attempts of the one that follows this one: those of this record, and it."""
        own = {name: getattr(self, name) for name in EarlierAttempt.model_fields}
        return (*self.attempts, EarlierAttempt.model_validate(own))

    @property
    def final(self) -> bool:
        """Whether the job must not run again: it ended by itself or by policy, or nobody can tell what it spent."""
        return self.outcome != "failed" or self.reason == Reason.WORKER_LOST


def _reserved(result: Result, reason: Reason | None) -> bool | None:
    if reason is Reason.CONTAINER_NEVER_STARTED:
        return False
    counted = any(not key.startswith(_NARROW) for key in result.charged)
    # An error of our own may have come anywhere; a refusal by a cap is counted though nothing ran.
    return True if result.spent is not None and counted else result.spent

"""The run record: what is kept of a run. Ids, operator-chosen names, numbers and fixed words only."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from pidispatch.values.base import Number, Value
from pidispatch.values.change import Change
from pidispatch.values.job import Job
from pidispatch.values.outcome import Completed, InfraFailed, Outcome, recorded_outcome
from pidispatch.values.reason import Reason
from pidispatch.values.usage import Context, Telemetry, Usage


class Result(Value):
    """What one attempt returns: its outcome and everything learnt on the way."""

    outcome: Outcome = Field(discriminator="kind")
    started_at: datetime
    ended_at: datetime
    provider: str
    model: str
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
    #: Seconds from the container's start to its end.
    container_s: float | None = None

    @classmethod
    def begin(cls, now: datetime, provider: str, model: str) -> "Result":
        """The result of an attempt that has not come to anything yet."""
        unfinished = InfraFailed(reason=Reason.INFRA, cause="unfinished")
        return cls(outcome=unfinished, started_at=now, ended_at=now, provider=provider, model=model)

    def ending(self, outcome: Outcome) -> "Result":
        """The same attempt with its outcome."""
        return self.model_copy(update={"outcome": outcome})


class RunRecord(Value):
    """One run, as JSON with these keys (docs/reference/record.md)."""

    job_id: str
    kind: str
    target: str
    started_at: datetime
    ended_at: datetime
    outcome: Literal["completed", "policy", "failed"]
    reason: str | None
    cause: str | None
    exit_code: int | None
    turns: int | None
    tokens: dict[str, Number | bool] | None
    usage: Usage | None
    context: Context | None
    provider: str
    model: str
    image_digest: str | None
    #: `None` where it could not be read or nothing ran.
    changed: bool | None

    @classmethod
    def of(cls, job: Job, result: Result) -> "RunRecord":
        """The record of one attempt, built key by key so that nothing else can slip in."""
        outcome = result.outcome
        refusal = None if isinstance(outcome, Completed) else outcome
        return cls(
            job_id=job.id,
            kind=job.kind.value,
            target=job.target,
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
            image_digest=result.image_digest,
            changed=result.change.changed if result.change else None,
        )

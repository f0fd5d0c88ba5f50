"""What a job container says of itself to one who knows nothing else of the job any more."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pidispatch.values import names
from pidispatch.values.base import Value
from pidispatch.workspace.jobdir import sanitise


class JobContainer(Value):
    """One container of a job, as the engine tells it. All of this was written by the host when it was made."""

    name: str
    #: Id of the job; `None` where the labels and the name do not agree, so that nobody knows whose it is.
    job_id: str | None
    #: Which attempt at the job it is, from 1.
    attempt: int
    #: `created`, `running`, `exited`, `dead`, ...
    state: str
    provider: str
    model: str
    image_digest: str
    created_at: datetime

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "JobContainer":
        """From what the engine answers to an inspection.

        https://docs.docker.com/reference/api/engine/version/v1.47/#tag/Container/operation/ContainerInspect
        """
        name = str(facts["Name"]).removeprefix("/")
        config = facts["Config"]
        labels: Mapping[str, str] = config.get("Labels") or {}
        variables = dict(one.partition("=")[::2] for one in config.get("Env") or ())
        job_id, attempt = labels.get(names.LABEL_JOB), labels.get(names.LABEL_ATTEMPT, "1")
        agree = job_id is not None and name == names.JOB_PREFIX + sanitise(job_id)
        return cls(
            name=name,
            job_id=job_id if agree else None,
            attempt=int(attempt) if attempt.isdecimal() else 1,
            state=str(facts["State"].get("Status", "")),
            provider=variables.get("PI_PROVIDER", ""),
            model=variables.get("PI_MODEL", ""),
            image_digest=str(facts["Image"]),
            created_at=_instant(facts["Created"]),
        )


def _instant(text: object) -> datetime:
    """An instant of the engine's, which writes nanoseconds and its own offset."""
    instant = datetime.fromisoformat(str(text))
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)

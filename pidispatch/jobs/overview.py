"""The queue at one moment, for who looks at it: counts, and the few jobs that say most. Nothing is decided on it."""

from datetime import datetime
from typing import Any, Final

from pidispatch.jobs.calls import Calls
from pidispatch.jobs.keys import ACTIVE, DUE, FAILED_JOBS, JOB, PAUSED, PROGRESS, QUEUED, QUEUES, UNRECORDED
from pidispatch.jobs.pausing import EVERY, instant, since
from pidispatch.values.base import Value

#: What is asked of the row of a job that is shown.
_FIELDS: Final = (
    *("label", "queue", "attempt", "maxAttempts", "createdAt"),
    *("owner", "acquiredAt", "spendFrom", "due", "why"),
)


class QueueSeen(Value):
    """One queue."""

    name: str
    #: Jobs whose ticket lies in it.
    waiting: int
    #: The job in it whose ticket was published first; `None` where none waits.
    first: str | None
    #: Since when it is paused; `None` where it is not.
    paused_since: datetime | None


class JobSeen(Value):
    """One job, by what may be shown of it."""

    job_id: str
    label: str
    queue: str
    attempt: int
    max_attempts: int
    #: When it was handed in.
    created: datetime
    #: Of one that runs: its worker, since when, whether it may cost something by now, turns and tokens so far.
    worker: str | None = None
    since: datetime | None = None
    spending: bool = False
    turns: int | None = None
    tokens: int | None = None
    #: Of one that is held: why, and until when.
    why: str | None = None
    until: datetime | None = None


class Overview(Value):
    """The queue at one moment, by the server's clock."""

    at: datetime
    #: Since when all queues are paused, also those that come later; `None` where they are not.
    all_paused_since: datetime | None
    queues: tuple[QueueSeen, ...]
    #: Jobs that a worker has; `running` holds the first of them.
    active: int
    running: tuple[JobSeen, ...]
    #: Jobs that sleep; `held` holds the first that wake.
    deferred: int
    held: tuple[JobSeen, ...]
    #: Of the first jobs of all queues the one that was handed in first; `None` where none waits.
    oldest: JobSeen | None
    #: Failed jobs whose row is still there.
    failed: int
    #: Jobs that ended and whose record is still to be written.
    unrecorded: int

    @property
    def names(self) -> list[str]:
        """Every queue that ever had a job or was paused."""
        return [queue.name for queue in self.queues]

    @property
    def paused(self) -> list[str]:
        """The paused queues, and `*` where all of them are."""
        every = [EVERY] if self.all_paused_since else []
        return every + [queue.name for queue in self.queues if queue.paused_since]


class Overviews(Calls):
    """Looking at everything at once, in three round trips however much there is."""

    def overview(self, most: int) -> Overview:
        """How the queue stands, with `most` jobs that run and as many that are held. Raises `InfraError`."""
        names, now, active, running, deferred, held, failed, unrecorded, everything = self._counts(most)
        queues = self._queues(sorted(names))
        first = [queue.first for queue in queues if queue.first is not None]
        running, held = running[:most], held[:most]
        jobs = self._jobs([*running, *held, *first])
        waiting = [jobs[one] for one in first if one in jobs]
        return Overview(
            at=instant(now[0] * 1000 + now[1] // 1000),
            all_paused_since=since(everything),
            queues=queues,
            active=active,
            running=tuple(jobs[one] for one in running if one in jobs),
            deferred=deferred,
            held=tuple(jobs[one] for one in held if one in jobs),
            oldest=min(waiting, key=lambda job: job.created, default=None),
            failed=failed,
            unrecorded=unrecorded,
        )

    def _counts(self, most: int) -> Any:
        with self._client.pipeline(transaction=True) as asked:
            asked.smembers(self._key(QUEUES))
            asked.time()
            asked.zcard(self._key(ACTIVE))
            asked.zrange(self._key(ACTIVE), 0, max(most, 1) - 1)
            asked.zcard(self._key(DUE))
            asked.zrange(self._key(DUE), 0, max(most, 1) - 1)
            asked.zcard(self._key(FAILED_JOBS))
            asked.zcard(self._key(UNRECORDED))
            asked.get(self._key(PAUSED, EVERY))
            return self._ask(asked.execute)

    def _queues(self, names: list[str]) -> tuple[QueueSeen, ...]:
        with self._client.pipeline(transaction=False) as asked:
            for name in names:
                asked.zcard(self._key(QUEUED, name))
                asked.zrange(self._key(QUEUED, name), 0, 0)
                asked.get(self._key(PAUSED, name))
            told = iter(self._ask(asked.execute))
        return tuple(
            QueueSeen(
                name=name,
                waiting=waiting,
                first=first[0] if first else None,
                paused_since=since(paused),
            )
            for name, waiting, first, paused in zip(names, told, told, told, strict=False)
        )

    def _jobs(self, job_ids: list[str]) -> dict[str, JobSeen]:
        with self._client.pipeline(transaction=False) as asked:
            for job_id in job_ids:
                asked.hmget(self._key(JOB, job_id), _FIELDS)
                asked.hmget(self._key(PROGRESS, job_id), ("turns", "tokens"))
            told = iter(self._ask(asked.execute))
        found = zip(job_ids, told, told, strict=False)
        seen = {job_id: _job(job_id, row, progress) for job_id, row, progress in found}
        return {job_id: job for job_id, job in seen.items() if job is not None}


def _job(job_id: str, row: list[Any], progress: list[Any]) -> JobSeen | None:
    """A job by its row; `None` for one that ended between two questions, and where the row cannot be read."""
    try:
        return _read(job_id, row, progress)
    except ValueError:
        return None


def _read(job_id: str, row: list[Any], progress: list[Any]) -> JobSeen:
    label, queue, attempt, max_attempts, created, owner, acquired, spend, due, why = row
    turns, tokens = progress if owner is not None else (None, None)
    return JobSeen(
        job_id=job_id,
        label=label,
        queue=queue,
        attempt=attempt,
        max_attempts=max_attempts,
        created=instant(created),
        why=why,
        until=None if due is None else instant(due),
        worker=None if owner is None else str(owner).partition("#")[0],
        since=None if owner is None or acquired is None else instant(acquired),
        spending=owner is not None and spend is not None,
        turns=turns,
        tokens=tokens,
    )

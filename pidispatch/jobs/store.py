"""The job store: the truth about every job. A message only says that it can be looked at.

Each move is one atomic script and one round trip, and time is the server's. A move of a job that a worker holds asks
for its lease and is refused to everybody else (docs/explanation/queue.md).
"""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import ValidationError

from pidispatch.jobs import lost
from pidispatch.jobs.breaker import said_of_trigger
from pidispatch.jobs.cancelling import Cancelling
from pidispatch.jobs.charges import NOTHING, Ask, Reserved, TurnedAway, verdict
from pidispatch.jobs.comments import Comments
from pidispatch.jobs.delivered import Delivery
from pidispatch.jobs.deliveries import Deliveries
from pidispatch.jobs.endings import Telling
from pidispatch.jobs.ids import sibling_id
from pidispatch.jobs.keys import JOB, TAKEN
from pidispatch.jobs.overview import Overviews
from pidispatch.jobs.pausing import Pausing
from pidispatch.jobs.polled import Polled
from pidispatch.jobs.repair import Repair
from pidispatch.jobs.rows import (
    Acquired,
    Answer,
    Deferred,
    Ignored,
    Lease,
    Paused,
    Row,
    RowUnreadable,
    Submission,
    Submitted,
    Ticket,
    ending_state,
    unreadable,
)
from pidispatch.jobs.schedules import Schedules
from pidispatch.jobs.seen import Seen
from pidispatch.jobs.setup import Setup
from pidispatch.jobs.triggered import Triggered
from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.values.job import ForgeJob, Job, read_job
from pidispatch.values.record import RunRecord

__all__ = ["JobStore", "RowUnreadable"]


class JobStore(Setup, Seen, Cancelling, Pausing, Overviews, Repair, Schedules, Triggered, Deliveries, Comments, Polled):
    """The jobs of one deployment."""

    def submit(
        self,
        job: Job,
        *,
        queue: str,
        max_attempts: int = 2,
        dedup_key: str | None = None,
        heed_pause: bool = False,
        delivery: Delivery | None = None,
    ) -> Submitted:
        """Accept a job: on the return it will be run once, or stands already. Its ticket is to be published next.

        An id that is known in any state is a `duplicate`. With `heed_pause` a job of a paused trigger is none. One of
        a rule that fires once, and has, is `spent`. Then a semantic key that another job took less than
        `Limits.dedup_ms` ago makes it `coalesced`. What became of it is logged with `delivery` in the same step, but
        for `spent`. Raises `ConfigError` for a job that cannot be stored, and `InfraError`.
        """
        one = Submission(job, queue, max_attempts, dedup_key, heed_pause, delivery)
        return _submitted(one, self._script("submit", *_asking(one)))

    def submit_all(self, asked: Sequence[Submission]) -> list[Submitted | InfraError]:
        """The same for several, each for itself, in one round trip. Raises `ConfigError`, and `InfraError`."""
        answers = self._script_each("submit", [_asking(one) for one in asked])
        return [
            answer if isinstance(answer, InfraError) else _submitted(one, answer)
            for one, answer in zip(asked, answers, strict=True)
        ]

    def acquire(self, job_id: str, gen: int, owner: str) -> Acquired | Paused | Ignored:
        """Take the job that a ticket of generation `gen` announces; once per generation. `owner` is new every time.

        A job of a paused queue is put to sleep instead, with the same attempt.
        Raises `RowUnreadable`, with the lease, where the job is taken and cannot be read; and `InfraError`.
        """
        status, *told = self._script("acquire", job_id, gen, owner)
        if status == "paused":
            next_gen, delay_ms, queue, label = told
            ticket = Ticket(job_id=job_id, gen=int(next_gen), queue=queue, label=label)
            return Paused(ticket=ticket, delay_ms=int(delay_ms))
        if status != "acquired":
            return Ignored(state=status)
        data, attempt, max_attempts, queue, label, record = told
        lease = Lease(job_id=job_id, owner=owner, gen=gen, attempt=int(attempt))
        try:
            job = read_job(data)
        except ValidationError:
            raise RowUnreadable(lease, queue, label, int(max_attempts)) from None
        return Acquired(
            job=job,
            lease=lease,
            queue=queue,
            label=label,
            max_attempts=int(max_attempts),
            previous=lost.parsed(record),
        )

    def renew(self, leases: Iterable[Lease]) -> dict[str, Answer]:
        """Renew leases, all in one round trip; the answer for each job. Raises `InfraError`.

        A lease whose key is gone is taken again, as long as the row names its owner: the server was away.
        """
        asked = list(leases)
        if not asked:
            return {}
        answers = self._script("renew", *(part for one in asked for part in _proof(one)))
        return {one.job_id: Answer(answer) for one, answer in zip(asked, answers, strict=True)}

    def defer(self, lease: Lease, delay_ms: int, why: str, *, never_started: bool = False) -> Deferred | Answer:
        """Put a job to sleep, with the same attempt. An attempt that may have cost something is never put to sleep.

        `never_started`: no container was made since `spend`, so what was counted is given back. The ticket of the new
        generation is to be published next. Raises `InfraError`.
        """
        return _slept(self._script("defer", *_proof(lease), delay_ms, why, int(never_started)))

    def spend(self, lease: Lease, ask: Ask = NOTHING) -> Reserved | TurnedAway | Answer:
        """Count the attempt in every ledger it asks for, and note that from now on it may cost something.

        All of it or nothing, in one step; asked a second time, the answer is the first one's. Renews the lease. An
        `Answer` where the job is another's, or gone. Raises `InfraError`.
        """
        status, *told = self._script("spend", *_proof(lease), ask.model_dump_json())
        return Answer(status) if status != "won" else verdict(told[0])

    def book(self, lease: Lease, key: str, ttl_ms: int, amount: int) -> Answer:
        """Add what the attempt has used to the counter `key`, once however often it is said. Raises `InfraError`."""
        return Answer(self._script("book", *_proof(lease), key, ttl_ms, amount))

    def finish(self, lease: Lease, record: RunRecord, telling: Telling | None = None) -> Answer:
        """End a job with `record`. `WON` is answered once; its receiver writes the record. Raises `InfraError`.

        `telling` is kept for an hour for the one who waits for the job (`told`).
        """
        told = (record.model_dump_json(), record.reason or "", record.cause or "", record.attempt, _shown(telling))
        return Answer(self._script("finish", *_proof(lease), ending_state(record).value, *told, *_counting(record)))

    def fail(
        self, lease: Lease, record: RunRecord, telling: Telling | None = None, *, never_started: bool
    ) -> Deferred | Answer:
        """End an attempt whose surroundings failed: `Deferred` to the next one, or `WON` where it was the last.

        `CANCEL`: another attempt would come, and a request to cancel stands. `never_started` says that no container
        ran, so that nothing was spent. `telling` as for `finish`. Raises `InfraError`.
        """
        told = (record.model_dump_json(), record.reason or "", record.cause or "", int(record.final))
        more = (int(never_started), _shown(telling), *_counting(record))
        return _slept(self._script("fail", *_proof(lease), *told, *more))

    def row(self, job_id: str) -> Row | None:
        """The row of a job as it stands; `None` where there is none. Raises `InfraError`."""
        fields = self._ask(lambda: self._client.hgetall(self._key(JOB, job_id)))
        if not fields:
            return None
        try:
            return Row.model_validate({"id": job_id, **fields})
        except ValidationError:
            raise InfraError(unreadable(job_id), "row-unreadable") from None

    def record_of(self, row: Row) -> RunRecord | None:
        """The record of the last attempt that ended, made from the row where no worker could; `None` without one."""
        return lost.record_of(row)


def _asking(one: Submission) -> tuple[str | int, ...]:
    """What the script is given. Raises `ConfigError`."""
    job = one.job
    # One that an operator asks for again is no second firing of its rule.
    oneshot = job.oneshot if isinstance(job, ForgeJob) and job.retry_of is None else None
    what = (job.id, _stored(job), one.queue, job.label, job.kind.value, one.max_attempts, one.dedup_key or "")
    delivery = one.delivery.stored() if one.delivery is not None else ""
    sibling = sibling_id(job) if isinstance(job, ForgeJob) and job.retry_of is None else ""
    return *what, oneshot or "", job.breaker or "", int(one.heed_pause), delivery, sibling


def _submitted(one: Submission, answer: list[Any]) -> Submitted:
    status, job_id, *gen = answer
    if not gen:
        return Submitted(status=status, job_id=job_id)
    ticket = Ticket(job_id=job_id, gen=int(gen[0]), queue=one.queue, label=one.job.label)
    return Submitted(status=status, job_id=job_id, ticket=ticket)


def _proof(lease: Lease) -> tuple[str, str, int]:
    return lease.job_id, lease.owner, lease.gen


def _counting(record: RunRecord) -> tuple[int, str]:
    """Whether what the attempt was counted for stays, and what its end says of its trigger.

    Its record says both: the counters are the sum of all records.
    """
    return int(bool(record.charged)), said_of_trigger(record)


def _shown(telling: Telling | None) -> str:
    try:
        return "" if telling is None else telling.model_dump_json()
    except ValueError:
        # Advice: with letters in it that are none, the record has to do.
        return ""


def _slept(told: list[Any]) -> Deferred | Answer:
    status, *rest = told
    if status != "deferred":
        return Answer(status)
    gen, due_ms, delay_ms = (int(one) for one in rest)
    return Deferred(gen=gen, due_ms=due_ms, delay_ms=delay_ms)


def _stored(job: Job) -> str:
    """A job as JSON. Raises `ConfigError`."""
    if job.id.startswith(TAKEN):
        raise ConfigError(f"a job's id cannot begin with {', '.join(TAKEN)}: name it otherwise", "job-id")
    try:
        return job.stored()
    except ValueError:
        raise ConfigError(
            "the folder's path is not UTF-8, so the job cannot be stored: rename the folder", "folder-name"
        ) from None

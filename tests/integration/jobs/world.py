"""A store with a clock that a test moves, and the queue's lists beside it, as the transport keeps them."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import redis

from pidispatch.jobs.rows import Acquired, JobState, Lease, Row, Ticket
from pidispatch.jobs.store import JobStore
from pidispatch.values.job import LocalJob
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Completed, InfraFailed, Outcome, Refused
from pidispatch.values.reason import Reason
from pidispatch.values.record import Result, RunRecord
from pidispatch.values.usage import Context, Telemetry
from tests.support.server import content

PREFIX = "pi:"
QUEUE = "pi-jobs"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DONE = Completed()
BROKEN = InfraFailed(reason=Reason.INFRA, cause="exit-1")
CANCELLED = Refused(reason=Reason.OPERATOR_CANCEL)
TELEMETRY = Telemetry(turns=3, tokens={"total": Decimal(12)}, context=Context(tokens=12, window=1000))


def job(job_id: str = "local-1") -> LocalJob:
    """A job on a folder."""
    return LocalJob(id=job_id, folder=Path("/srv/site"), task="run the nightly tidy", flow="tidy")


def record(
    of: str = "local-1",
    outcome: Outcome = DONE,
    attempt: int = 1,
    *,
    previous: RunRecord | None = None,
    spent: bool = True,
) -> RunRecord:
    """The record of an attempt."""
    result = Result.begin(NOW, "anthropic", "m").model_copy(
        update={"spent": spent, "exit_code": 0 if spent else None, "telemetry": TELEMETRY}
    )
    return RunRecord.of(job(of), result.ending(outcome), "host", attempt, previous.as_earlier if previous else ())


@dataclass
class World:
    """Everything a test of the store needs."""

    client: redis.Redis
    limits: Limits = field(default_factory=Limits)
    #: Where the store's clock stands, but for the time that one command takes.
    now_ms: int = round(NOW.timestamp() * 1000)
    #: Runs for nothing that pause a trigger; 0: none does.
    breaker_runs: int = 0
    _nonce: int = 0

    @property
    def store(self) -> JobStore:
        """The store, with its clock put to that of the test: how busy the machine is decides nothing."""
        seconds, micros = self.client.time()
        offset_ms = self.now_ms - (int(seconds) * 1000 + int(micros) // 1000)
        return JobStore(self.client, PREFIX, self.limits, offset_ms, self.breaker_runs)

    def later(self, seconds: float) -> "World":
        """Move the clock."""
        self.now_ms += round(seconds * 1000)
        return self

    def submit(self, job_id: str = "local-1", queue: str = QUEUE, **more: Any) -> Ticket:
        """Accept a job; its ticket, which is not published."""
        ticket = self.store.submit(job(job_id), queue=queue, **more).ticket
        assert ticket is not None
        return ticket

    def publish(self, *tickets: Ticket) -> None:
        """Put tickets into their queues' lists."""
        for ticket in tickets:
            self.client.lpush(PREFIX + ticket.queue, f"{ticket.gen} {ticket.job_id}")

    def fetch(self, queue: str = QUEUE) -> tuple[str, int] | None:
        """Take the oldest ticket out of a queue's list: id and generation."""
        message = self.client.rpop(PREFIX + queue)
        if message is None:
            return None
        gen, _, job_id = str(message).partition(" ")
        return job_id, int(gen)

    def owner(self, worker: str = "w") -> str:
        """An owner for one delivery."""
        self._nonce += 1
        return f"{worker}#engine#{self._nonce}"

    def take(self, job_id: str = "local-1", gen: int | None = None, worker: str = "w") -> Acquired:
        """Acquire a job by its ticket as it stands."""
        gen = self.row(job_id).gen if gen is None else gen
        acquired = self.store.acquire(job_id, gen, self.owner(worker))
        assert isinstance(acquired, Acquired), acquired
        return acquired

    def active(self, job_id: str = "local-1", **more: Any) -> Lease:
        """A job that is submitted and acquired."""
        self.submit(job_id, **more)
        return self.take(job_id).lease

    def row(self, job_id: str = "local-1") -> Row:
        """The row of a job that there is."""
        row = self.store.row(job_id)
        assert row is not None, job_id
        return row

    def record(self, job_id: str = "local-1") -> RunRecord:
        """The record of a job that has one."""
        found = self.store.record_of(self.row(job_id))
        assert found is not None
        return found

    def state(self, job_id: str = "local-1") -> JobState:
        """The state of a job."""
        return self.row(job_id).state

    def raw(self) -> dict[str, Any]:
        """Everything in the store but instants and expiry, to see that nothing changed."""
        return {name: content(self.client, name) for name in sorted(self.client.scan_iter(f"{PREFIX}*"))}

    def check(self) -> None:
        """The indexes hold what a full scan of the rows finds, and nothing else."""
        rows, indexes, locks, expiring = self._scan()
        wanted = _wanted(rows)
        # The end of a lease stands nowhere but in its index, nor does since when a record is owed.
        for index in ("jobs:active", "jobs:unrecorded"):
            wanted[index] = {one: indexes.get(index, {}).get(one, -1.0) for one in wanted[index]}
        assert indexes == {name: members for name, members in wanted.items() if members}
        assert locks <= set(wanted["jobs:active"])
        for one, fields in rows.items():
            assert (one in expiring) is JobState(fields["state"]).terminal, one
            assert ("owner" in fields) is (fields["state"] == "active"), one

    def _scan(self) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, float]], set[str], set[str]]:
        """All rows, all indexes, the ids that are locked, and those of rows that will expire."""
        names = {str(name).removeprefix(PREFIX) for name in self.client.scan_iter(f"{PREFIX}job*", count=1000)}
        indexes = sorted(name for name in names if name.startswith("jobs:"))
        locks = {name.removeprefix("job:lock:") for name in names if name.startswith("job:lock:")}
        rows = sorted(
            name.removeprefix("job:")
            for name in names - {*indexes}
            if not name.startswith(("job:lock:", "job:told:", "job:progress:"))
        )
        with self.client.pipeline(transaction=False) as questions:
            for one in rows:
                questions.hgetall(f"{PREFIX}job:{one}")
                questions.pttl(f"{PREFIX}job:{one}")
            for index in indexes:
                questions.zrange(PREFIX + index, 0, -1, withscores=True)
            answers = questions.execute()
        expiring = {one for one, left in zip(rows, answers[1 : 2 * len(rows) : 2], strict=True) if left > 0}
        found = {name: _scored(told) for name, told in zip(indexes, answers[2 * len(rows) :], strict=True)}
        return dict(zip(rows, answers[: 2 * len(rows) : 2], strict=True)), found, locks, expiring


def _scored(told: Any) -> dict[str, float]:
    return {str(member): float(score) for member, score in told}


def _wanted(rows: dict[str, dict[str, str]]) -> dict[str, dict[str, float]]:
    wanted: dict[str, dict[str, float]] = {"jobs:active": {}, "jobs:due": {}, "jobs:failed": {}, "jobs:unrecorded": {}}
    for one, row in rows.items():
        match row["state"]:
            case "queued":
                wanted.setdefault(f"jobs:queued:{row['queue']}", {})[one] = float(row["publishedAt"])
            case "deferred":
                wanted["jobs:due"][one] = float(row["due"])
            case "active":
                wanted["jobs:active"][one] = 0.0
            case "failed":
                wanted["jobs:failed"][one] = float(row["finishedAt"])
        if row.get("recorded") == "0":
            wanted["jobs:unrecorded"][one] = 0.0
    return wanted

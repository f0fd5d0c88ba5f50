"""A worker without Celery and without an engine: real store, gates, leases and records, and an attempt as told."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pidispatch.box.abort import Abort
from pidispatch.config.clock import SystemClock
from pidispatch.config.settings import Settings
from pidispatch.gates.chain import Gate, Gates
from pidispatch.gates.folder import FolderMutex
from pidispatch.gates.host import HostSlots
from pidispatch.jobs.rows import Row, Ticket
from pidispatch.jobs.store import JobStore
from pidispatch.money.budget import Budget
from pidispatch.runs.records import RecordStore
from pidispatch.server.address import Address
from pidispatch.server.client import connect
from pidispatch.values.job import Job, LocalJob
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Completed, Outcome
from pidispatch.values.progress import ProgressSink
from pidispatch.values.record import Result, RunRecord
from pidispatch.values.verdict import Admit, Defer, Verdict
from pidispatch.worker.cases import Cases
from pidispatch.worker.deliver import Deliverer
from pidispatch.worker.delivery import Delivery
from pidispatch.worker.ending import Ending
from pidispatch.worker.hook import Recorder
from pidispatch.worker.leases import Leases
from tests.support.ends import NOW, job_of, result_of
from tests.support.round_trips import round_trips
from tests.support.server import OwnServer

PREFIX = "pi:"
JOB = "local-1"
QUEUE = "pi-jobs"
LIMITS = Limits(store_retry_s=0.05, stop_patience_s=0.2, sweep_rest_s=0)


@dataclass
class Turn:
    """What happens in the middle of an attempt: called with the job and its abort."""

    act: Callable[[Any, Abort], Result | Defer]

    def __call__(self, job: Job, progress: ProgressSink, abort: Abort, number: int = 1) -> Result | Defer:
        """Run the attempt."""
        return self.act(job, abort)


@dataclass
class Door:
    """A gate whose verdict, and what happens while it is asked, a test chooses."""

    act: Callable[[Any], Verdict] = lambda _: Admit()
    inside: list[str] = field(default_factory=list)

    def check(self, job: Job, _: datetime) -> Verdict:
        """Ask it."""
        verdict = self.act(job)
        if isinstance(verdict, Admit):
            self.inside.append(job.id)
        return verdict

    def release(self, job: Job) -> None:
        """Give back."""
        self.inside.remove(job.id)


class Bench:
    """One worker named `build-1`."""

    def __init__(self, server: OwnServer, folder: Path, settings: Settings | None = None) -> None:
        settings = settings or Settings.model_validate({})
        self.server = server
        self.client: Any = server.client()
        self.connection = connect(Address.parse(server.url))
        self.store = JobStore(self.connection, PREFIX, LIMITS, breaker_runs=settings.breaker_runs)
        self.records = RecordStore(folder / "logs")
        self.records.prepare()
        self.recorder = Recorder(self.store, self.records)
        self.leases = Leases(self.store, "build-1")
        self.stopping = threading.Event()
        self.stops_while_asking = False
        self.door = Door()
        #: Attempts after which the engine is to be looked at again.
        self.failures = 0
        self.ending = Ending(self.store, self.records, "build-1", LIMITS, SystemClock(), self.stopping)
        self.cases = Cases(self.store, Budget(settings), self.ending)
        self._nonce = 0
        slots: list[Gate] = [HostSlots(lambda: 3, LIMITS), FolderMutex(LIMITS), self.door]
        self.deliverer = Deliverer(
            self.store,
            Gates(slots),
            self.leases,
            self.cases,
            self.records,
            settings,
            LIMITS,
            SystemClock(),
            self.owner,
            self.stopping,
            self._failed,
        )
        self.ended_with(Completed())

    def _failed(self) -> None:
        self.failures += 1

    def owner(self) -> str:
        """An owner for one delivery."""
        if self.stops_while_asking:
            self.stopping.set()
        self._nonce += 1
        return f"build-1#engine#{self._nonce}"

    def attempt(self, act: Callable[[Any, Abort], Result | Defer]) -> None:
        """Let the next attempts do this."""
        self.deliverer.attempt = Turn(act)

    def ended_with(self, outcome: Outcome, *, spent: bool | None = True) -> None:
        """Let the next attempts spend and end so."""

        def act(job: LocalJob, _: Abort) -> Result:
            if spent:
                self.cases.spend(job, NOW)
            result = result_of(outcome, spent=spent)
            self.cases.finish(job, result)
            return result

        self.attempt(act)

    def completes_with_tokens(self, tokens: int) -> None:
        """Let the next attempts spend, take so many tokens, and complete."""

        def act(job: LocalJob, _: Abort) -> Result:
            charged, refused = self.cases.spend(job, NOW)
            assert refused is None
            charged |= self.cases.book(job, NOW, tokens)
            result = result_of(Completed(), spent=True).model_copy(update={"charged": charged})
            self.cases.finish(job, result)
            return result

        self.attempt(act)

    def never(self) -> None:
        """No attempt may be made."""

        def act(*_: object) -> Result:
            raise AssertionError("an attempt was made")

        self.attempt(act)

    def submit(self, job_id: str = JOB, **more: Any) -> Ticket:
        """Accept a job."""
        ticket = self.store.submit(job_of(job_id), queue=QUEUE, **more).ticket
        assert ticket is not None
        return ticket

    def deliver(self, job_id: str = JOB, gen: int | None = None) -> Delivery:
        """Deliver the ticket of a job as it stands, and do what Celery's signals do at its end."""
        delivery = self.deliverer(job_id, self.row(job_id).gen if gen is None else gen)
        if delivery.record is not None:
            self.recorder.ended(delivery.record, delivery.job, delivery.outcome)
        delivery.release()
        return delivery

    def row(self, job_id: str = JOB) -> Row:
        """The row of a job that there is."""
        row = self.store.row(job_id)
        assert row is not None
        return row

    def raw(self, job_id: str = JOB) -> dict[str, str]:
        """Every field of it."""
        found: dict[str, str] = self.client.hgetall(f"{PREFIX}job:{job_id}")
        return found

    def forget(self) -> None:
        """Let the server lose all its data."""
        self.client.flushall()

    def take_away(self, job_id: str = JOB) -> None:
        """Let another worker have the job's lease."""
        self.client.set(f"{PREFIX}job:lock:{job_id}", "other#engine#1", px=60_000)

    def ask_to_cancel(self, job_id: str = JOB) -> None:
        """Let a request to cancel stand."""
        self.client.set(f"{PREFIX}cancel:req:{job_id}", "1", px=60_000)

    @contextmanager
    def away(self) -> Iterator[None]:
        """The server is not there, and has all its data afterwards."""
        self.server.stop()
        try:
            yield
        finally:
            self.server.start()

    def close(self) -> None:
        """Close both connections."""
        self.client.close()
        self.connection.close()


#: A cap on everything that can have one.
CAPS = {"PI_WEEKLY_CAP": "100", "PI_MONTHLY_CAP": "100", "PI_SOFT_HOLD_PCT": "90", "PI_DAILY_TOKEN_CAP": "9000"}
TOKENS = 1000


def pickup(server: OwnServer, folder: Path) -> tuple[RunRecord, int]:
    """The record of one job that runs with every cap there is, and how often its worker asked the server for it."""
    bench = Bench(server, folder, Settings.model_validate(CAPS))
    bench.completes_with_tokens(TOKENS)
    for job_id in ("local-1", "local-2"):
        bench.submit(job_id)
    # The first one finds a server that knows no script yet.
    bench.deliver("local-1", gen=0)
    with round_trips() as asked:
        delivery = bench.deliver("local-2", gen=0)
    bench.close()
    assert delivery.record is not None, delivery
    return delivery.record, asked.times

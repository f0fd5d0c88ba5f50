"""A store, a folder, the program, and the moves of a worker."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pidispatch.jobs.endings import Telling
from pidispatch.jobs.rows import Acquired, Answer, Deferred, JobState, Lease, Row
from pidispatch.jobs.store import JobStore
from pidispatch.runs.records import RecordStore
from pidispatch.server.address import Address
from pidispatch.server.client import connect
from pidispatch.values.job import LocalJob
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Outcome
from pidispatch.values.record import Result, RunRecord
from tests.support.program import Program
from tests.support.repository import Repository
from tests.support.server import OwnServer

WORKER = "build-1"
OWNER = f"{WORKER}#engine#nonce"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Bench:
    """Everything a test of these verbs needs."""

    server: OwnServer
    program: Program
    repository: Repository
    store: JobStore
    records: RecordStore

    @classmethod
    @contextmanager
    def of(cls, server: OwnServer, home: Path, repository: Repository) -> Iterator["Bench"]:
        """A bench whose program has its home in `home`."""
        program = Program(home, {"VALKEY_URL": server.url, "PI_LOGS_DIR": str(home / "logs")})
        (home / "logs").mkdir()
        with closing(connect(Address.parse(server.url))) as client:
            store = JobStore(client, "pi:", Limits())
            yield cls(server, program, repository, store, RecordStore(home / "logs"))

    @property
    def folder(self) -> str:
        """The repository's path, as an argument."""
        return str(self.repository.path)

    def submit(self, job_id: str = "local-1") -> LocalJob:
        """A job in the store, without the verb."""
        job = LocalJob(id=job_id, folder=self.repository.path, task="a private task")
        assert self.store.submit(job, queue="pi-jobs").status == "submitted"
        return job

    def row(self, job_id: str = "local-1") -> Row:
        """The row of a job that is there."""
        row = self.store.row(job_id)
        assert row is not None
        return row

    def take(self, job_id: str = "local-1") -> Lease:
        """Take a job as its worker does."""
        acquired = self.store.acquire(job_id, self.row(job_id).gen, OWNER)
        assert isinstance(acquired, Acquired)
        return acquired.lease

    def end(self, lease: Lease, outcome: Outcome, *, told: bool = True, recorded: bool = True) -> RunRecord:
        """End an attempt as its worker does, in its order."""
        job = self.row(lease.job_id).job
        result = Result.begin(NOW, "p", "m").ending(outcome).model_copy(update={"diff": "+x\n"})
        record = RunRecord.of(job, result, WORKER, lease.attempt)
        telling = Telling(result=result, record=str(self.records.record_path(job.id))) if told else None
        if record.final:
            assert self.store.finish(lease, record, telling) is Answer.WON
        else:
            answer = self.store.fail(lease, record, telling, never_started=False)
            assert isinstance(answer, Deferred) or answer is Answer.WON
        if recorded:
            self.records.write(record)
            self.store.recorded(job.id, lease.attempt)
        return record

    def state(self, job_id: str = "local-1") -> JobState:
        """Where a job stands."""
        return self.row(job_id).state


@dataclass
class Script:
    """A pause in which the next step happens; after the last one, whoever waits is sent away."""

    steps: Sequence[Callable[[], object]]
    pauses: int = field(default=0)

    def __call__(self, _seconds: float) -> bool:
        """One pause."""
        step = self.steps[self.pauses] if self.pauses < len(self.steps) else None
        self.pauses += 1
        if step is None:
            return True
        step()
        return False


def nothing() -> None:
    """A step in which nothing happens."""

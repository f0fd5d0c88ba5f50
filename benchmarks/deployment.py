"""One deployment for the figures of the queue: a server, an engine's stub, folders, and the real programs on them.

Whatever it starts ends with it, however that comes: by its end, an error, or Ctrl-C.
"""

import importlib
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path

import redis
from celery import Celery

from benchmarks.scratch import scratch
from pidispatch.config.settings import Settings
from pidispatch.jobs.producer import producer, publish
from pidispatch.jobs.route import route
from pidispatch.jobs.store import JobStore
from pidispatch.server.address import Address
from pidispatch.server.client import connect
from pidispatch.values.job import LocalJob
from pidispatch.values.limits import Limits
from tests.support.program import PROGRAM
from tests.support.repository import make_repository
from tests.support.server import OwnServer, until
from tests.support.settings import settings_of

ROOT = Path(__file__).resolve().parent.parent
IMAGE, PREFIX, WORKER = "pi-job:latest", "bench:", "w1"
#: Seconds in which a program must have started, or ended.
_TAKE_S = 30.0
#: Most jobs whose end is waited for take a hundredth of it.
ROUND_S = 120.0


class Deployment:
    """`slots` jobs at a time, each in a folder of its own. No provider has a credential: each job ends at that rung.

    `more`: what its programs' environment has beside that.
    """

    def __init__(
        self, place: Path, server: OwnServer, slots: int, open_: ExitStack, more: Mapping[str, str] | None = None
    ) -> None:
        self.server = server
        self._more = dict(more or {})
        self.slots = slots
        self._place = place
        self._open = open_
        self._engine = place / "e.sock"
        # Of its own, as workers of one engine shut each other out.
        engine_id = f"bench-{secrets.token_hex(4)}"
        open_.callback(_forget_engine, engine_id)
        self.records = place / "logs"
        #: Records that no worker of the product's writes.
        self.written = place / "written" / "logs"
        self.written.parent.mkdir(mode=0o700)
        for folder in (self.records, self.written, place / "home"):
            folder.mkdir(mode=0o700)
        self.folders = [make_repository(place / "folders" / str(number)).path for number in range(slots)]
        self.start("stub", sys.executable, "-m", "benchmarks.stub_engine", str(self._engine), IMAGE, engine_id)
        until(self._engine.exists, "the stub of the engine", _TAKE_S)

    @property
    def environment(self) -> dict[str, str]:
        """The closed environment of its programs."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self._place / "home"),
            "LANG": "C.UTF-8",
            "DOCKER_HOST": f"unix://{self._engine}",
            "VALKEY_URL": self.server.url,
            "PI_KEY_PREFIX": PREFIX,
            "PI_WORKER_NAME": WORKER,
            "PI_CONCURRENCY": str(self.slots),
            "PI_STATE_DIR": str(self._place / "state"),
            "PI_JOBS_DIR": str(self._place / "jobs"),
            "PI_LOGS_DIR": str(self.records),
            "BENCH_BROKER": f"redis+socket://{self.server.socket}",
            "BENCH_SOCKET": str(self.server.socket),
            "BENCH_PREFIX": PREFIX,
            "BENCH_WRITTEN": str(self.written),
            **self._more,
        }

    @cached_property
    def settings(self) -> Settings:
        """What its programs read from it."""
        return settings_of(self.environment)

    @cached_property
    def client(self) -> "redis.Redis":
        """A client of the benchmark's own."""
        client = self.server.client()
        self._open.callback(client.close)
        return client

    @cached_property
    def store(self) -> JobStore:
        """The store, as the product opens it."""
        client = connect(Address.of(self.settings))
        self._open.callback(client.close)
        return JobStore(client, PREFIX, Limits())

    @cached_property
    def app(self) -> Celery:
        """What publishes tickets."""
        return producer(self.settings, Address.of(self.settings))

    def job(self, number: int = 0) -> LocalJob:
        """A new job on the folder of this number, counted around."""
        folder = self.folders[number % self.slots]
        return LocalJob(id=f"local-{secrets.token_hex(8)}", folder=folder, task="Do nothing.")

    def submit(self, job: LocalJob) -> str:
        """Hand a job in as `pi-dispatch run` does: the row, then the ticket; its id."""
        submitted = self.store.submit(job, queue=route(job, self.settings))
        assert submitted.ticket is not None, submitted
        publish(self.app, submitted.ticket)
        return job.id

    def await_records(self, count: int, folder: Path | None = None) -> None:
        """Wait until so many jobs have their record (in `folder`, else the worker's), and the store knows of each."""
        records = folder or self.records

        def there() -> bool:
            recorded = sum(name.endswith(".json") for name in os.listdir(records)) >= count
            return recorded and not self.client.zcard(f"{PREFIX}jobs:unrecorded")

        until(there, f"{count} records", ROUND_S)

    def worker(self) -> "subprocess.Popen[bytes]":
        """A worker by the verb, once it takes jobs."""
        process = self.start("worker", PROGRAM, "worker")
        log = self._place / "worker.log"
        until(lambda: self._lives(process, "worker") and "worker_started" in log.read_text(), "the worker", _TAKE_S)
        return process

    def celery_worker(self, application: str, *options: str) -> "subprocess.Popen[bytes]":
        """A worker of Celery's own with as many threads as there are slots."""
        worker = ("-m", "celery", "-A", f"benchmarks.{application}", "worker")
        pool = ("--pool", "threads", "--concurrency", str(self.slots))
        return self.start(application, sys.executable, *worker, *pool, *options)

    def bare_worker(self) -> "subprocess.Popen[bytes]":
        """A worker of the baseline, once it takes tasks."""
        process = self.celery_worker("bare")
        self.stamp("ready")
        until(lambda: self._lives(process, "bare") and self.client.get("ready"), "the bare worker", _TAKE_S)
        return process

    def stamp(self, key: str) -> None:
        """Have the bare worker keep when it comes to this."""
        from benchmarks.bare import stamp

        stamp.delay(key)

    def stamped(self, key: str) -> float:
        """Wait for that instant."""
        return float(str(until(lambda: self.client.get(key), f"the stamp {key}", ROUND_S)))

    def _lives(self, process: "subprocess.Popen[bytes]", name: str) -> bool:
        if process.poll() is not None:
            said = (self._place / f"{name}.log").read_text(errors="replace")
            raise RuntimeError(f"the benchmark's own {name} ended: {said[-3000:]}")
        return True

    def start(self, name: str, *command: str, more: Mapping[str, str] | None = None) -> "subprocess.Popen[bytes]":
        """A program of the benchmark's, with `more` in its environment; ended with this."""
        with (self._place / f"{name}.log").open("wb") as log:
            # Its own session: Ctrl-C is for the benchmark, which ends it.
            process = subprocess.Popen(
                command,
                env=self.environment | dict(more or {}),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._open.callback(end, process)
        return process


def _forget_engine(engine_id: str) -> None:
    """Remove the lock of an engine that there never was."""
    for folder in (Path("/run/lock"), Path(tempfile.gettempdir())):
        (folder / f"pi-dispatch-{engine_id}.lock").unlink(missing_ok=True)


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a process, and be sure that it is gone."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_TAKE_S)
    finally:
        process.kill()
        process.wait()


@contextmanager
def deployment(slots: int, **more: str) -> Iterator[Deployment]:
    """A fresh one; `more` goes to the environment of its programs."""
    with ExitStack() as open_:
        # Short, because the path of a unix socket is bounded.
        place = Path(open_.enter_context(scratch()))
        server = open_.enter_context(OwnServer("valkey", place / "server"))
        made = Deployment(place, server, slots, open_, more)
        os.environ.update({name: value for name, value in made.environment.items() if name.startswith("BENCH_")})
        # The bare application has its broker from these, once it is loaded.
        if (bare := sys.modules.get("benchmarks.bare")) is not None:
            importlib.reload(bare)
        yield made

"""A deployment of a test's own: server, folders, real worker processes, and an image that answers as a runner does."""

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import docker
from celery import Celery

from pidispatch.config.settings import Settings
from pidispatch.jobs.producer import TASK, producer, publish
from pidispatch.jobs.route import route
from pidispatch.jobs.rows import Acquired, Deferred, JobState, Row
from pidispatch.jobs.store import JobStore
from pidispatch.server.address import Address
from pidispatch.server.client import connect
from pidispatch.values.job import LocalJob
from pidispatch.values.limits import Limits
from pidispatch.values.names import JOB_PREFIX, LABEL_ATTEMPT
from pidispatch.values.verdict import Why
from pidispatch.workspace.jobdir import sanitise
from tests.image.assemble import ensure_probe
from tests.support.box import program_image
from tests.support.repository import make_repository
from tests.support.server import OwnServer, until
from tests.support.settings import settings_of
from tests.support.worker_app import VARIABLE

ROOT = Path(__file__).resolve().parents[2]
#: Small enough for a test, in the proportions of the real ones.
QUICK: dict[str, Any] = {
    "lease_s": 3.0,
    "renew_every_s": 1.0,
    "sweep_every_s": 0.5,
    "sweep_rest_s": 0.0,
    "unclaimed_s": 2.0,
    "overdue_s": 1.0,
    "unrecorded_s": 1.0,
    "scope_busy_recheck_ms": 500,
    "retry_base_ms": 1000,
    "cancel_poll_s": 0.3,
    "visibility_s": 4.0,
    "tick_every_s": 2.0,
    "worker_seen_s": 6.0,
    "store_retry_s": 0.2,
    "stop_grace_s": 2,
}
#: Answers as the runner does. The model's name says what to do.
STUB = r"""#!/bin/sh
code=0
turn() { echo "{\"event\":\"turn\",\"jobId\":\"$PI_JOB_ID\",\"turns\":1,\"tokens\":7}"; }
ended() {
  told="\"code\":$code,\"reason\":\"$1\",\"turns\":1,\"tokens\":{\"total\":7}"
  echo "{\"event\":\"exit\",\"jobId\":\"$PI_JOB_ID\",$told}"
  exit $code
}
trap 'code=143; exit 143' TERM
turn
case "$PI_MODEL" in
  sleep-*) sleep "${PI_MODEL#sleep-}" & wait $! ;;
  fail) code=1; ended infra ;;
  policy) code=2; ended turn_budget ;;
  killed) kill -9 $$ ;;
  stubborn-*) trap '' TERM; sleep "${PI_MODEL#stubborn-}" ;;
  flaky) [ -e /workspace/tried ] || { : >/workspace/tried; code=1; ended infra; } ;;
esac
ended stop
"""


class Starts:
    """What the engine itself tells of job containers, from now on: the proof of what was started."""

    def __init__(self, client: docker.DockerClient) -> None:
        self._events = client.events(decode=True, filters={"type": "container", "event": ["start", "destroy"]})
        self._lock = threading.Lock()
        self._seen: list[tuple[str, str, str]] = []
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        with contextlib.suppress(Exception):
            for event in self._events:
                told = event["Actor"]["Attributes"]
                with self._lock:
                    self._seen.append((event["status"], told.get("name", ""), told.get(LABEL_ATTEMPT, "")))

    def of(self, job_id: str) -> int:
        """How often a container of this job was started."""
        return len(self.attempts_of(job_id))

    def attempts_of(self, job_id: str) -> list[int]:
        """The attempt of each start of a container of this job, in the order of the starts."""
        with self._lock:
            wanted = ("start", f"{JOB_PREFIX}{sanitise(job_id)}")
            return [int(attempt) for status, name, attempt in self._seen if (status, name) == wanted]

    def close(self) -> None:
        """Stop following."""
        self._events.close()
        self._thread.join(5)


class Neighbour:
    """The one container that jobs of these tests can reach; it does nothing."""

    def __init__(self, client: docker.DockerClient) -> None:
        self.name = f"pi-test-neighbour-{secrets.token_hex(4)}"
        self._network = client.networks.create(f"{self.name}-net", internal=True)
        self._container = client.containers.create(
            ensure_probe(client), ["sleep", "86400"], name=self.name, network=f"{self.name}-net", init=True
        )
        self._container.start()

    def remove(self) -> None:
        """End and remove it."""
        self._container.remove(force=True)
        self._network.remove()


@dataclass
class Worker:
    """One worker process."""

    process: "subprocess.Popen[bytes]"
    log_path: Path

    @property
    def log(self) -> str:
        """What it has logged so far."""
        return self.log_path.read_text(errors="replace")

    def events(self, name: str) -> list[dict[str, Any]]:
        """Its log events of this name."""
        found = []
        for line in self.log.splitlines():
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict) and event.get("event") == name:
                    found.append(event)
        return found

    def await_event(self, name: str, seconds: float = 30, count: int = 1) -> dict[str, Any]:
        """Wait for the `count`th event of this name."""

        def found() -> list[dict[str, Any]] | None:
            events = self.events(name)
            if len(events) >= count:
                return events
            assert self.process.poll() is None, f"the worker ended before {name}: {self.log[-3000:]}"
            return None

        return until(found, f"{name}; the worker says {self.log[-1500:]}", seconds)[count - 1]

    def kill(self) -> None:
        """End it as a machine that loses power would."""
        self.process.kill()
        self.process.wait(10)

    def stop(self, how: signal.Signals = signal.SIGTERM, seconds: float = 30) -> int:
        """Ask it to stop; its exit code."""
        self.process.send_signal(how)
        return self.process.wait(seconds)

    def await_end(self, seconds: float = 30) -> int:
        """Wait until it ends by itself; its exit code."""
        return self.process.wait(seconds)


class Post:
    """One deployment. Everything of it is gone at its end."""

    def __init__(self, client: docker.DockerClient, image: str, neighbour: str, server: OwnServer | None) -> None:
        # Short, because the path of a unix socket is bounded.
        self.folder = Path(tempfile.mkdtemp(prefix="pi-q-", dir="/tmp"))
        self.client = client
        self.server = server
        self.image = image
        self.neighbour = neighbour
        self.limits = Limits(**QUICK)
        self.workers: list[Worker] = []
        self.starts = Starts(client)
        self.prefix = f"t{secrets.token_hex(4)}:"

    def environment(self, name: str = "w1", **changes: str | None) -> dict[str, str]:
        """The closed environment of a program of this deployment."""
        given: dict[str, str | None] = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "DOCKER_HOST": os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock"),
            "PI_JOBS_DIR": str(self.folder / name / "jobs"),
            "PI_STATE_DIR": str(self.folder / name),
            "PI_LOGS_DIR": str(self.folder / "logs"),
            "PI_JOB_IMAGE": self.image,
            "PI_EGRESS_PROXY": self.neighbour,
            "PI_KEY_PREFIX": self.prefix,
            "PI_WORKER_NAME": name,
            "ANTHROPIC_API_KEY": "k",
            # Every window counts, and none of them is ever full.
            "PI_DAILY_CAP": "100000",
            "PI_WEEKLY_CAP": "100000",
            "PI_MONTHLY_CAP": "100000",
            "PI_DAILY_TOKEN_CAP": "100000000",
            "VALKEY_URL": self.server.url if self.server else None,
        }
        # Not measured: tracing can break a thread that starts while another one does, and with it what is tested.
        return {name: value for name, value in (given | changes).items() if value is not None}

    def settings(self, name: str = "w1") -> Settings:
        """The settings that its programs have."""
        return settings_of(self.environment(name))

    def worker(
        self,
        name: str = "w1",
        *,
        limits: dict[str, Any] | None = None,
        engine: str | None = None,
        kill: str | None = None,
        told: dict[str, Any] | None = None,
        ready: bool = True,
        command: list[str] | None = None,
        cwd: Path = ROOT,
        **changes: str | None,
    ) -> Worker:
        """Start a worker and wait until it consumes. `told`: what else `worker_app` understands."""
        small = {**QUICK, **(limits or {})}
        told = {**(told or {}), "limits": small, "engine": engine or f"{self.prefix}{name}", "kill": kill}
        log_path = self.folder / f"{name}-{len(self.workers)}.log"
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                command or [sys.executable, "-m", "tests.support.worker_app"],
                env=self.environment(name, **{VARIABLE: json.dumps(told)}, **changes),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        worker = Worker(process, log_path)
        self.workers.append(worker)
        if ready:
            worker.await_event("worker_started")
        return worker

    @property
    def address(self) -> Address:
        """Where the server of this deployment is; without one that is named, the embedded one of `w1`."""
        return Address.of(self.settings())

    @cached_property
    def store(self) -> JobStore:
        """The store, as the product opens it."""
        return JobStore(connect(self.address), self.prefix, self.limits)

    def producer(self) -> Celery:
        """The Celery application of one who submits, or who sends control commands as Flower does."""
        return producer(self.settings(), self.address, self.limits)

    def repository(self, name: str | None = None) -> Path:
        """A fresh folder to work in."""
        return make_repository(self.folder / "repos" / (name or secrets.token_hex(4))).path

    def job(self, model: str = "ok", folder: Path | None = None, **fields: Any) -> LocalJob:
        """A job that the stub image understands."""
        return LocalJob(
            id=fields.pop("id", f"local-{secrets.token_hex(8)}"),
            folder=folder or self.repository(),
            task="Do as scripted.",
            model=model,
            allow_dirty=True,
            **fields,
        )

    def submit(self, job: LocalJob, name: str = "w1", *, queue: str | None = None, announce: bool = True) -> str:
        """Hand in a job and publish its ticket; its id."""
        submitted = self.store.submit(job, queue=queue or route(job, self.settings(name)))
        assert submitted.ticket is not None, submitted
        if announce:
            publish(self.producer(), submitted.ticket)
        return job.id

    def submit_and_await(self, job: LocalJob, name: str = "w1") -> str:
        """Hand in a job and wait until it has ended; its id."""
        self.await_end(self.submit(job, name))
        return job.id

    def hold(self, job: LocalJob, seconds: float, name: str = "w1", *, queue: str | None = None) -> str:
        """Hand in a job that a gate put to sleep for `seconds`, as the worker does it; its id."""
        store = self.store
        self.submit(job, name, queue=queue, announce=False)
        acquired = store.acquire(job.id, 0, f"gate##{secrets.token_hex(8)}")
        assert isinstance(acquired, Acquired), acquired
        told = store.defer(acquired.lease, round(seconds * 1000), Why.HOST_BUSY)
        assert isinstance(told, Deferred), told
        publish(self.producer(), self.row(job.id).ticket, datetime.now(UTC) + timedelta(milliseconds=told.delay_ms))
        return job.id

    def await_starts(self, job_id: str, count: int = 1, seconds: float = 40) -> None:
        """Wait until the engine has started a container of the job `count` times."""
        until(lambda: self.starts.of(job_id) >= count, f"{count} starts of {job_id}; {self.said()}", seconds)

    def tickets(self, queue: str) -> list[str]:
        """The ids of the jobs whose tickets lie in a queue, the next one first."""
        with closing(connect(self.address)) as client:
            found = client.lrange(f"{self.prefix}{queue}", 0, -1)
        return [ticket for one in reversed(found) if (ticket := _ticket_of(json.loads(one)))]

    def fetched(self) -> list[str]:
        """The ids of the jobs whose tickets a worker has fetched and not acknowledged."""
        with closing(connect(self.address)) as client:
            found = client.hvals(f"{self.prefix}unacked")
        return [ticket for one in found if (ticket := _ticket_of(json.loads(one)[0]))]

    def row(self, job_id: str) -> Row:
        """The job's row."""
        row = self.store.row(job_id)
        assert row is not None, f"{job_id} is gone"
        return row

    def await_state(self, job_id: str, *states: JobState, seconds: float = 40) -> Row:
        """Wait until the job is in one of these states."""

        def found() -> Row | None:
            row = self.row(job_id)
            return row if row.state in states else None

        try:
            return until(found, f"{job_id} to be {states}", seconds)
        except TimeoutError as error:
            raise AssertionError(f"{error}; it is {self.row(job_id)!r}; the workers say {self.said()}") from None

    def said(self) -> str:
        """The last lines of every worker."""
        return "\n".join(worker.log[-1500:] for worker in self.workers)

    def await_end(self, job_id: str, seconds: float = 40) -> Row:
        """Wait until the job has ended and its record is written."""
        self.await_state(job_id, JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED, seconds=seconds)
        until(lambda: self.row(job_id).recorded, f"the record of {job_id}", seconds)
        return self.row(job_id)

    def record(self, job_id: str) -> dict[str, Any]:
        """The record file of a job."""
        found: dict[str, Any] = json.loads((self.folder / "logs" / f"{sanitise(job_id)}.json").read_text())
        return found

    def records(self) -> list[str]:
        """The ids that have a record file."""
        logs = self.folder / "logs"
        return sorted(str(json.loads(path.read_text())["jobId"]) for path in logs.glob("*.json"))

    def left(self) -> list[str]:
        """Job containers and networks of this deployment that are there."""
        label = f"pi.dispatch.deployment={self.store.open(None)}"
        # Not by objects, of which each is asked for again: one may be gone by then.
        containers = self.client.api.containers(all=True, filters={"label": label})
        networks = self.client.api.networks(filters={"label": label})
        return [*(one["Names"][0].removeprefix("/") for one in containers), *(one["Name"] for one in networks)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.kill()
        self.starts.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        # The locks of engines that there never were.
        for path in Path("/run/lock").glob(f"pi-dispatch-{self.prefix.replace(':', '_')}*.lock"):
            path.unlink(missing_ok=True)


def _ticket_of(message: dict[str, Any]) -> str | None:
    """The id of the job that a message announces; `None` for a tick of a worker's."""
    headers = message["headers"]
    return str(headers["id"]) if headers.get("task") == TASK else None


def let_pass(seconds: float) -> None:
    """Let time pass where its length is what is tested, as that of an outage. Nothing is waited for by it."""
    threading.Event().wait(seconds)


def stub_image(client: docker.DockerClient, folder: Path) -> str:
    """The image whose containers answer as the runner does."""
    return program_image(client, folder, STUB)

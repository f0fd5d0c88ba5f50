"""Runs of the real program, as a user would start it, against the scripted model."""

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import docker

from pidispatch.box.engine import Engine
from pidispatch.config.clock import SystemClock
from pidispatch.config.settings import Settings
from pidispatch.runs.attempt import Attempt
from pidispatch.values.limits import Limits
from tests.fakes.model.log import Request
from tests.support.model import ModelContainer, write_overlay
from tests.support.server import SERVER_S, end_embedded, until
from tests.support.worker_app import VARIABLE

#: Seconds a run of the program may take before a test gives it up.
RUN_S = 120
PROGRAM = str(Path(sys.executable).parent / "pi-dispatch")
CELERY = str(Path(sys.executable).parent / "celery")
ROOT = Path(__file__).resolve().parents[2]
#: A worker by the verb, as a user starts it, with the limits that it has then.
REAL = (PROGRAM, "worker")
HASTY_WORKER = (sys.executable, "-m", "tests.support.worker_app")
#: Pauses that a test cannot wait for: before the next attempt, a busy folder's next look, what is told of progress.
HASTY: dict[str, float] = {"retry_base_ms": 200, "scope_busy_recheck_ms": 200, "cancel_poll_s": 0.2}


def await_line(process: "subprocess.Popen[str]", words: str) -> str:
    """Read the program's progress up to the line with `words`, which is returned."""
    assert process.stderr is not None
    seen = []
    patience = threading.Timer(RUN_S, process.kill)
    patience.start()
    try:
        for line in process.stderr:
            seen.append(line)
            if words in line:
                return line
    finally:
        patience.cancel()
    raise AssertionError(f"{words!r} never came: {seen}")


def await_id(process: "subprocess.Popen[str]") -> str:
    """The id under which `run` has handed its job in."""
    return await_line(process, "note: job ").split()[2]


@dataclass(frozen=True)
class Ran:
    """A run of the program that ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """What `--json` printed."""
        document: dict[str, Any] = json.loads(self.out)
        return document


@dataclass
class WorkerRun:
    """A worker process and what it has logged."""

    process: "subprocess.Popen[bytes]"
    path: Path

    @property
    def log(self) -> str:
        """Everything so far."""
        return self.path.read_text(errors="replace")

    def events(self, name: str) -> list[dict[str, Any]]:
        """What it has logged under this name."""
        whole = self.log.rpartition("\n")[0].splitlines()
        found = (json.loads(line) for line in whole if line.startswith("{"))
        return [event for event in found if event["event"] == name]

    def await_ready(self) -> None:
        """Wait until it takes jobs, or has ended, as one that was refused does."""
        until(lambda: "worker_started" in self.log or self.process.poll() is not None, "the worker", RUN_S)

    def attended(self, waiting: "subprocess.Popen[str]") -> Ran:
        """The end of a program that waits for a job of this worker; one that has ended leaves it little time."""
        began = time.monotonic()
        while True:
            try:
                out, err = waiting.communicate(timeout=0.5)
            except subprocess.TimeoutExpired:
                if time.monotonic() - began < (RUN_S if self.process.poll() is None else SERVER_S):
                    continue
                waiting.kill()
                out, err = waiting.communicate()
                raise AssertionError(f"nobody ends the wait: {out}{err}; the worker: {self.log[-3000:]}") from None
            return Ran(waiting.returncode, out, err)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to stop; its exit code."""
        self.process.send_signal(how)
        return self.process.wait(RUN_S)

    def kill(self) -> None:
        """End it as a machine that loses power would."""
        self.process.kill()
        self.process.wait(RUN_S)

    def end(self) -> None:
        """Have it stop as it should, and be sure that it is gone."""
        try:
            # One that is stopped while it starts would leave its server behind.
            self.await_ready()
            if self.process.poll() is None:
                self.stop()
        finally:
            self.kill()


@dataclass(frozen=True)
class How:
    """How a worker is started: by default the real one with the limits of `HASTY` and `limits`."""

    #: `REAL` is the verb, which knows the real limits alone.
    command: tuple[str, ...] = HASTY_WORKER
    cwd: Path = ROOT
    limits: Mapping[str, float] = field(default_factory=dict)
    #: A name by which the engine looks like another one, for a worker beside another one of it.
    engine: str | None = None


@dataclass
class Program:
    """The program with a home of its own; `variables` are its environment beside what every program has."""

    home: Path
    variables: dict[str, str] = field(default_factory=dict)
    at_work: list[WorkerRun] = field(default_factory=list, init=False)

    def environment(self, **changes: str | None) -> dict[str, str]:
        """The closed environment of the program; `None` takes a variable away."""
        given: dict[str, str | None] = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PI_JOBS_DIR": str(self.home / "jobs"),
            "PI_STATE_DIR": str(self.home / "state"),
            "ANTHROPIC_API_KEY": "k",
            **self.variables,
        }
        # Measuring coverage of the program started here is asked for by variables.
        given |= {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
        return {name: value for name, value in (given | changes).items() if value is not None}

    def start(self, *arguments: str, **changes: str | None) -> "subprocess.Popen[str]":
        """Start the program and return at once."""
        return subprocess.Popen(
            [PROGRAM, *arguments],
            env=self.environment(**changes),
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def start_job(
        self, folder: Path, model: str = "m", *arguments: str, **changes: str | None
    ) -> "subprocess.Popen[str]":
        """`pi-dispatch run FOLDER --wait --json`, without waiting for its end, and without a worker."""
        return self.start("run", str(folder), *job(model), "--wait", "--json", *arguments, **changes)

    @contextmanager
    def waiting(
        self, folder: Path, model: str = "m", *arguments: str, **changes: str | None
    ) -> Iterator["subprocess.Popen[str]"]:
        """`start_job`, whose process is gone with the block, however that ends."""
        with self.start_job(folder, model, *arguments, **changes) as process:
            try:
                yield process
            finally:
                process.kill()

    def run(self, *arguments: str, **changes: str | None) -> Ran:
        """Start the program and wait for its end."""
        with self.start(*arguments, **changes) as process:
            out, err = process.communicate(timeout=RUN_S)
        return Ran(process.returncode, out, err)

    @contextmanager
    def worker(self, how: How | None = None, /, **changes: str | None) -> Iterator[WorkerRun]:
        """A worker of this program, which takes its jobs for as long as the block goes on; its log stays."""
        with self._worker(how or How(), changes) as worker:
            worker.await_ready()
            yield worker

    @contextmanager
    def _worker(self, how: How, changes: Mapping[str, str | None]) -> Iterator[WorkerRun]:
        told = json.dumps({"limits": {**HASTY, **how.limits}} | ({"engine": how.engine} if how.engine else {}))
        path = self.home / f"worker-{secrets.token_hex(4)}.log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                how.command,
                env=self.environment(**{VARIABLE: told, **changes}),
                cwd=how.cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        worker = WorkerRun(process, path)
        self.at_work.append(worker)
        try:
            yield worker
        except Exception as error:
            error.add_note(f"the worker says: {worker.log[-3000:]}")
            raise
        finally:
            self.at_work.remove(worker)
            worker.end()

    def run_job(self, folder: Path, model: str = "m", *arguments: str, **changes: str | None) -> Ran:
        """`pi-dispatch run FOLDER --wait --json` with the scripted model `model`, by the worker that is at work.

        Where none is, one of its own takes the job. What it logs meanwhile stands behind what was told to the waiting.
        """
        if not self.at_work:
            with self._worker(How(), changes) as worker:
                ran = self._run_job(worker, folder, model, *arguments, **changes)
                worker.await_ready()
            return replace(ran, err=ran.err + worker.log)
        worker = self.at_work[-1]
        before = len(worker.log)
        ran = self._run_job(worker, folder, model, *arguments, **changes)
        return replace(ran, err=ran.err + worker.log[before:])

    def _run_job(self, worker: WorkerRun, folder: Path, model: str, *arguments: str, **changes: str | None) -> Ran:
        with self.waiting(folder, model, *arguments, **changes) as process:
            return worker.attended(process)

    def close(self) -> None:
        """End the server that a killed worker left."""
        for state in (self.home / "state", self.home / ".pi-dispatch"):
            end_embedded(state)


def job(model: str) -> tuple[str, ...]:
    """Options of a job for the scripted model; another one each time, as it would be the same within one minute."""
    return ("--task", f"Do as scripted, {secrets.token_hex(4)}.", "--model", model)


@dataclass
class Stage(Program):
    """Everything a run needs besides its folder: engine, image, model and folders of its own."""

    image: str = field(kw_only=True)
    model: ModelContainer = field(kw_only=True)
    docker_host: str = field(kw_only=True)
    #: A key of this stage's own, so that its requests can be told from others' in the model's log.
    key: str = field(default_factory=lambda: f"key-{secrets.token_hex(6)}")
    #: Requests that are counted no more.
    forgotten: int = 0

    def __post_init__(self) -> None:
        self.overlay = write_overlay(self.home / "overlay")
        self.variables = {
            "DOCKER_HOST": self.docker_host,
            "PI_JOB_IMAGE": self.image,
            # All tests of a file share a server, and so its windows.
            "PI_DAILY_CAP": "1000",
            "PI_GLOBAL_PI_DIR": str(self.overlay),
            "PI_EGRESS_PROXY": self.model.name,
            "ANTHROPIC_API_KEY": self.key,
            "OPENAI_API_KEY": self.key,
            "PI_FORWARD_ENV": "PI_RETRY_BASE_MS",
            # The agent's own retries, without their usual seconds of patience.
            "PI_RETRY_BASE_MS": "20",
        }

    def attempt(self, client: docker.DockerClient, limits: Limits) -> Attempt:
        """What the program runs a job with, inside of this process and with other limits."""
        environ = self.environment()
        settings = Settings.model_validate({name: value for name, value in environ.items() if name.startswith("PI_")})
        return Attempt(settings, lambda: Engine(client), lambda *_: None, limits, SystemClock(), environ)

    def asked(self) -> list[Request]:
        """The requests of this stage that reached the model."""
        return self.model.log.requests(key=self.key)[self.forgotten :]

    def requests(self) -> int:
        """How many: the proof of what was spent."""
        return len(self.asked())

    def forget(self) -> None:
        """Count from here on, for the next test of a stage that several share."""
        self.forgotten += self.requests()


def make_stage(home: Path, image: str, model: ModelContainer) -> Stage:
    """A stage at the engine that `DOCKER_HOST` or the default socket names; whoever makes it closes it."""
    home.mkdir()
    return Stage(
        home, image=image, model=model, docker_host=os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    )

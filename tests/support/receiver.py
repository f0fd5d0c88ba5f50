"""Receivers of a test's own: one inside of the test's process, and real programs; with what forges send them."""

import asyncio
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Self, cast

import redis
from celery import Celery

from pidispatch.config.clock import SystemClock
from pidispatch.config.settings import Settings
from pidispatch.forges.polling import Polling
from pidispatch.forges.protocol import Account, Answer, ForgeModule, Project, Unverified
from pidispatch.forges.registry import MODULES
from pidispatch.jobs.deliveries import Delivered
from pidispatch.jobs.producer import producer, publish_all
from pidispatch.jobs.rows import Ticket
from pidispatch.jobs.sent import SentEvents
from pidispatch.jobs.store import JobStore
from pidispatch.receiver.app import Receiver
from pidispatch.receiver.body import Bodies
from pidispatch.receiver.boot import served_forges
from pidispatch.receiver.desk import Desk
from pidispatch.receiver.hook import Hook
from pidispatch.receiver.lanes import Lane
from pidispatch.receiver.measures import Measures
from pidispatch.server.address import Address
from pidispatch.triggers.file import parse_triggers
from pidispatch.triggers.rules import Rules
from pidispatch.values.clock import Clock
from pidispatch.values.event import Actor, Authority, Event, Identity, Occasion
from pidispatch.values.forge import FORGES, ForgeKind, JobKind
from pidispatch.values.job import ForgeJob, Target
from pidispatch.values.limits import Limits
from tests.fakes.github.payloads import SECRET, encode, headers
from tests.fakes.github.server import GitHubServer
from tests.support.program import WorkerRun
from tests.support.server import OwnServer, free_port, until
from tests.support.settings import settings_of

PROGRAM = str(Path(sys.executable).parent / "pi-dispatch-receiver")
QUEUE = "pi-jobs"
GUID = "11111111-1111-1111-1111-111111111111"


def label(*labels: str, flow: str = "fix", kind: str = "github", **run: Any) -> dict[str, Any]:
    """A label rule."""
    return {"on": {"type": "label", "any": list(labels or ["pi:fix"])}, "run": {"kind": kind, "flow": flow, **run}}


def guid(digit: str) -> str:
    """The id of a delivery."""
    return GUID.replace("1", digit)


@dataclass
class OtherForge:
    """A forge that is none of the real ones: like Azure DevOps it has the delivery's id in the body, and asks always.

    Its requests carry `x-secret: yes`. `says` is what it answers, `who` what it is.
    """

    kind: ForgeKind = JobKind.GITLAB
    says: Callable[[Event], Answer] = lambda _: Answer(Authority.YES)
    who: Callable[[], Identity] = lambda: Identity(id=1)
    lookup_failed: str = "access-lookup-failed"
    sees: Callable[[Any], Event | Unverified] | None = None
    chosen: bool = True

    def __post_init__(self) -> None:
        self.row = FORGES[self.kind]
        self.event: Project = self._seen

    def configured(self, settings: Settings) -> bool:
        """Whether it is `chosen`."""
        return self.chosen

    def wire(self, settings: Settings) -> "OtherForge":
        """It verifies itself."""
        return self

    def account(self, settings: Settings, environ: Mapping[str, str], programs: Any) -> Account:
        """It is its own account, as far as a receiver needs one."""
        return cast(Account, self)

    def polling(self, settings: Settings, environ: Mapping[str, str], programs: Any) -> Polling:
        """It is never polled."""
        raise AssertionError

    def missing(self, headers: Mapping[str, str]) -> Unverified | None:
        """Nothing ever is."""
        return None

    def authentic(self, headers: Mapping[str, str], body: bytes, now: datetime) -> Unverified | None:
        """By its secret."""
        return None if headers.get("x-secret") == "yes" else Unverified(401, "invalid credential")

    def delivery(self, headers: Mapping[str, str]) -> str | None:
        """The body alone has it."""
        return None

    def _seen(self, headers: Mapping[str, str], payload: Any) -> Event | Unverified:
        """An issue with labels, unless `sees` sees something else."""
        if self.sees is not None:
            return self.sees(payload)
        if "id" not in payload:
            return Unverified(400, "missing-delivery-id")
        return Event(
            forge=self.kind,
            delivery=payload["id"],
            event="issue",
            action="update",
            occasions=(Occasion.LABEL,),
            actor=Actor(id=payload.get("by", 42)),
            repo="grp/sub/app",
            target=Target(type="issue", number=5),
            labels=("pi:fix",),
        )

    def identity(self) -> Identity:
        """As `who` says."""
        return self.who()

    def authority(self, event: Event) -> Answer:
        """As `says` says."""
        return self.says(event)


@dataclass(frozen=True)
class Response:
    """What was answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """Its JSON; `None` of an empty one."""
        return json.loads(self.body) if self.body else None

    @property
    def told(self) -> tuple[int, Any]:
        """Status and JSON."""
        return self.status, self.document


async def call(
    app: Any, method: str, path: str, sent: Mapping[str, str], parts: Sequence[bytes | None]
) -> Response | None:
    """One request by ASGI, its body in these parts; `None` among them: the sender is gone. `None`: no answer."""
    coming = list(parts)
    messages: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        if not coming:
            await asyncio.Event().wait()
        part = coming.pop(0)
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": bool(coming) or (part == b"" and len(parts) > 1)}

    async def send(message: MutableMapping[str, Any]) -> None:
        messages.append(message)

    given = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in sent.items()]
    await app({"type": "http", "method": method, "path": path, "headers": given}, receive, send)
    if not messages:
        return None
    start, *rest = messages
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    return Response(start["status"], found, b"".join(one["body"] for one in rest))


def opened() -> threading.Event:
    """A gate that stands open."""
    gate = threading.Event()
    gate.set()
    return gate


@dataclass
class Inbox:
    """A receiver inside of this process, with a real store, and GitHub's module asking a GitHub of the tests'."""

    server: OwnServer
    folder: Path
    github: GitHubServer
    triggers: list[dict[str, Any]]
    limits: Limits = field(default_factory=Limits)
    offset_ms: int = 0
    variables: dict[str, str] = field(default_factory=dict)
    modules: Mapping[JobKind, ForgeModule] = field(default_factory=lambda: MODULES)
    clock: Clock = field(default_factory=SystemClock)
    body_s: float = 10.0
    answer_s: float = 9.0
    threads: int = 4
    waiting: int = 256
    #: Tickets that were published, and what to raise in the place of it.
    published: list[Ticket] = field(default_factory=list)
    unpublished: Exception | None = None
    #: What publishing waits for.
    gate: threading.Event = field(default_factory=opened)
    started_again: int = 0
    #: What to raise in the place of starting the server again.
    unstarted: Exception | None = None
    #: Publish as the program does, and not only into `published`.
    celery: bool = False
    measures: Measures = field(default_factory=Measures)
    environ: dict[str, str] = field(init=False)
    app: Any = field(init=False)
    desk: Desk = field(init=False)

    def __enter__(self) -> Self:
        self._open = ExitStack()
        environ = {
            "PI_STATE_DIR": str(self.folder / "state"),
            "VALKEY_URL": self.server.url,
            "WEBHOOK_SECRET": SECRET,
            "GITHUB_AUTH_SOURCE": "pat",
            "GITHUB_PAT": "pat-secret",
            "GITHUB_API_URL": self.github.url,
            **self.variables,
        }
        self.environ = environ
        self.settings: Settings = settings_of(environ)
        self.client: redis.Redis = self._open.enter_context(self.server.client())
        self.rules = self._parsed()
        served = served_forges(self.settings, environ, self.rules, self.modules, self.clock, lambda _: None)
        self._app: Celery | None = producer(self.settings, Address.of(self.settings)) if self.celery else None
        self._events = SentEvents(self._app) if self._app is not None else None
        if self._events is not None:
            self._open.callback(self._events.close)
        self.lookups = Lane("lookup", 2, 2)
        self.store = self.store_at(self.offset_ms)
        self.desk = Desk(self.store, self._publish, self.settings, self._ensure, self.threads, self.waiting)
        self._open.callback(self.desk.close, 5.0)
        self._open.callback(self.lookups.close, 5.0)
        bodies = Bodies(self.body_s)
        hooks: dict[JobKind, Hook] = {
            one.module.row.kind: Hook(
                one,
                lambda: self.rules,
                self.desk,
                self.lookups,
                bodies,
                self.clock,
                self.measures.count,
                self.answer_s,
            )
            for one in served
        }
        self.app = Receiver(hooks)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def store_at(self, offset_ms: int) -> JobStore:
        """The store as it is so many milliseconds later."""
        return JobStore(self.client, self.settings.key_prefix, self.limits, offset_ms)

    def edit(self, triggers: list[dict[str, Any]]) -> None:
        """Put other rules in force."""
        self.triggers = triggers
        self.rules = self._parsed()

    def post(
        self,
        payload: Any,
        event: str = "issues",
        delivery: str = GUID,
        path: str = "/",
        **changed: str | None,
    ) -> Response:
        """Send a delivery as GitHub does; `changed` are headers, `_` for `-`; `None` takes one away."""
        body = payload if isinstance(payload, bytes) else encode(payload)
        sent: dict[str, str | None] = {**headers(event, body, delivery)}
        sent |= {name.replace("_", "-").title().replace("Github", "GitHub"): value for name, value in changed.items()}
        answered = self.send(path, {name: value for name, value in sent.items() if value is not None}, [body])
        assert answered is not None
        return answered

    def send(
        self, path: str, sent: Mapping[str, str], parts: Sequence[bytes | None], method: str = "POST"
    ) -> Response | None:
        """One request."""
        return asyncio.run(call(self.app, method, path, sent, parts))

    def jobs(self) -> list[str]:
        """Ids of all jobs."""
        return job_ids(self.client, self.settings.key_prefix)

    def job(self, job_id: str) -> ForgeJob:
        """A job that there is."""
        row = self.store.row(job_id)
        assert row is not None, job_id
        assert isinstance(row.job, ForgeJob)
        return row.job

    def deliveries(self, count: int, forge: JobKind = JobKind.GITHUB) -> list[Delivered]:
        """The log of deliveries, once it has so many entries."""
        return until(lambda: _enough(self.store.deliveries(forge, 100), count), f"{count} deliveries to be logged")

    def _parsed(self) -> Rules:
        path = self.folder / "triggers.json"
        return Rules(parse_triggers(json.dumps({"triggers": self.triggers}), path))

    def _publish(self, tickets: Sequence[Ticket]) -> None:
        self.gate.wait(30)
        if self.unpublished is not None:
            raise self.unpublished
        if self._app is not None and self._events is not None:
            publish_all(self._app, tickets, self._events)
        self.published += tickets

    def _ensure(self) -> None:
        self.started_again += 1
        if self.unstarted is not None:
            raise self.unstarted


def _enough(found: list[Delivered], count: int) -> list[Delivered] | None:
    return found if len(found) >= count else None


def job_ids(client: redis.Redis, prefix: str = "pi:") -> list[str]:
    """Ids of all jobs in a store."""
    names: list[str] = [str(name).removeprefix(f"{prefix}job:") for name in client.scan_iter(f"{prefix}job:*")]
    return sorted(name for name in names if not name.startswith(("lock:", "told:", "progress:")))


@dataclass
class ReceiverProgram:
    """`pi-dispatch-receiver` with a home of its own, hearing a GitHub of the tests'."""

    home: Path
    github: GitHubServer
    url: str
    triggers: list[dict[str, Any]]
    variables: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    #: What it is called by.
    command: tuple[str, ...] = (PROGRAM,)
    runs: list[WorkerRun] = field(default_factory=list)

    @property
    def file(self) -> Path:
        """Its triggers file."""
        return self.home / "triggers.json"

    def write(self, triggers: list[dict[str, Any]]) -> None:
        """Put another triggers file in the place of the one there is."""
        new = self.home / "new.json"
        new.write_text(json.dumps({"triggers": triggers}))
        new.replace(self.file)

    def environment(self, **changes: str | None) -> dict[str, str]:
        """The closed environment; `None` takes a variable away."""
        given: dict[str, str | None] = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PI_STATE_DIR": str(self.home / "state"),
            "VALKEY_URL": self.url,
            "PI_TRIGGERS_FILE": str(self.file),
            "RECEIVER_BIND": "127.0.0.1",
            "RECEIVER_PORT": str(self.port),
            "WEBHOOK_SECRET": SECRET,
            "GITHUB_AUTH_SOURCE": "pat",
            "GITHUB_PAT": "pat-secret",
            "GITHUB_API_URL": self.github.url,
            **self.variables,
        }
        given |= {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
        return {name: value for name, value in (given | changes).items() if value is not None}

    def launch(self, *arguments: str, **changes: str | None) -> WorkerRun:
        """Start it and return at once."""
        if not self.file.exists() and "PI_TRIGGERS_FILE" not in changes:
            self.write(self.triggers)
        path = self.home / f"receiver-{len(self.runs)}.log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                [*self.command, *arguments],
                env=self.environment(**changes),
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        run = WorkerRun(process, path)
        self.runs.append(run)
        return run

    def start(self, *arguments: str, **changes: str | None) -> WorkerRun:
        """Start it and wait until it hears."""
        run = self.launch(*arguments, **changes)
        until(lambda: run.events("receiver_started") or run.process.poll() is not None, "the receiver", 30)
        assert run.process.poll() is None, run.log
        return run

    def refused(self, **changes: str | None) -> tuple[int, str]:
        """Start it where it does not come up: exit code, and the reason of its one line."""
        run = self.launch(**changes)
        code = run.process.wait(30)
        [told] = run.events("receiver_start_failed")
        assert run.events("receiver_started") == []
        return code, told["reason"]

    def post(
        self, payload: Any, event: str = "issues", delivery: str = GUID, timeout_s: float = 30, **changed: str
    ) -> Response:
        """Send it a delivery."""
        body = payload if isinstance(payload, bytes) else encode(payload)
        return self.ask("POST", "/", {**headers(event, body, delivery), **changed}, body, timeout_s)

    def ask(
        self, method: str, path: str, sent: Mapping[str, str], body: bytes = b"", timeout_s: float = 30, port: int = 0
    ) -> Response:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=timeout_s)
        try:
            connection.request(method, path, body, dict(sent))
            answer = connection.getresponse()
            return Response(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def close(self) -> None:
        """End all that runs."""
        for run in self.runs:
            if run.process.poll() is None:
                run.process.send_signal(signal.SIGCONT)
                run.stop()


class Between:
    """A proxy between a program and the server of its queue that can keep an answer back."""

    def __init__(self, server: OwnServer) -> None:
        self._server = server
        self._marker: bytes | None = None
        #: Set once an answer is kept back.
        self.held = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"
        self._open: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self, marker: bytes) -> None:
        """Let no answer through any more on a connection on which a script was called with `marker`."""
        self._marker = marker

    def close(self) -> None:
        """End it."""
        for one in self._open:
            # A thread that still waits in it would take what comes for whoever gets its number next.
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(str(self._server.socket))
            self._open += [near, far]
            holding = threading.Event()
            for args in ((near, far, holding, True), (far, near, holding, False)):
                threading.Thread(target=self._pass, args=args, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, holding: threading.Event, asking: bool) -> None:
        try:
            while data := source.recv(1 << 20):
                if asking and self._marker is not None and self._marker in data and b"EVALSHA" in data:
                    holding.set()
                if not asking and holding.is_set():
                    self.held.set()
                    continue
                target.sendall(data)
            target.close()
        except OSError:
            return

"""From a signed webhook to the container that is made for it, and where the time goes: a small repository, and 200 MB.

Receiver, worker, its own server, the engine and the edge are the real ones. The agent is not: its container says its
end and ends. The worker is at a terminal, where it says each rung of the ladder as it is passed.
"""

import http.client
import json
import os
import random
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

import docker

from benchmarks.deployment import end
from benchmarks.measure import Figure, figure
from benchmarks.scratch import scratch
from pidispatch.config.settings import Settings
from pidispatch.jobs.producer import producer, publish
from pidispatch.jobs.route import route
from pidispatch.jobs.rows import Row
from pidispatch.jobs.store import JobStore
from pidispatch.runs.prepare import container_name
from pidispatch.runs.records import RecordStore
from pidispatch.server.address import Address
from pidispatch.server.client import connect
from pidispatch.values.job import LocalJob
from pidispatch.values.limits import Limits
from tests.fakes.github.edge import Edge
from tests.fakes.github.git import GitRepository, environment
from tests.fakes.github.payloads import SECRET, encode, headers
from tests.fakes.github.state import Happening
from tests.fakes.github.webhooks import payload
from tests.support.box import program_image
from tests.support.forge import FILES, INSTALLATION, label_rule, receiving
from tests.support.post import Neighbour
from tests.support.program import PROGRAM, Program
from tests.support.repository import make_repository
from tests.support.server import free_port, until
from tests.support.settings import settings_of
from tests.support.terminal import at_terminal

SMALL_JOBS, LARGE_JOBS = 20, 10
#: 200 MB of what no compression makes smaller.
LARGE_FILES, LARGE_FILE_BYTES = 2_000, 100_000
#: What a job's way to its container is made of, in order, each with where it begins and ends.
PARTS: Final = {
    "receive": "signed webhook sent to its answer",
    "queue": "the answer to the worker's lease",
    "checks": "gates, and the rungs that ask nothing of the forge",
    "look-ups": "the token and the default branch, asked of the edge",
    "clone": "the commit fetched and checked out, and handed to the job's user",
    "host git": "the state before the run, `.pi`, the inputs",
    "container": "the count for the caps, the network, the container",
}
_LABEL: Final = "pi:bench"
_TAKE_S = 60.0
_STEP = re.compile(r"\[(?P<job>[^\]]+)\] checked (?P<name>\w+)")
_ENTRY = '#!/bin/sh\necho "{\\"event\\":\\"exit\\",\\"jobId\\":\\"$PI_JOB_ID\\",\\"code\\":0}"\n'


def forge_jobs(client: docker.DockerClient) -> Iterator[Figure]:
    """The way of a job on a small repository, beside one on a folder, and on a large one; clones beside git's own."""
    with _scene(client) as scene:
        small, large = scene.repository("small"), scene.repository("large")
        _fill(scene.edge.state.repository(large).git)
        for warm_up in (small, large):
            scene.from_webhook(warm_up)
        scene.from_folder()
        ways, clones, folders = [], [], []
        for _ in range(SMALL_JOBS):
            ways.append(scene.from_webhook(small))
            clones.append(scene.bare_clone(small))
            folders.append(scene.from_folder())
        yield from _figures("small", ways, clones, folders)
        ways, clones = [], []
        for number in range(LARGE_JOBS):
            ways.append(scene.from_webhook(large))
            # Half as often, as it takes seconds.
            if number % 2:
                clones.append(scene.bare_clone(large))
        yield from _figures("200 MB", ways, clones)


def _figures(
    size: str, ways: list[dict[str, float]], clones: list[float], folders: list[float] | None = None
) -> Iterator[Figure]:
    whole = [sum(way.values()) for way in ways]
    what = "signed webhook sent to container made"
    yield figure(f"{size}: webhook to container", what, whole, folders, None)
    for part, what in PARTS.items():
        yield figure(f"{size}: {part}", what, [way[part] for way in ways], clones if part == "clone" else None, None)


def _fill(repository: GitRepository) -> None:
    """Commit 200 MB more, at once: the edge's own way to commit copies them once for each file."""
    made = random.Random(LARGE_FILES)
    parts = [b"commit refs/heads/main\ncommitter Sample <sample@example.invalid> 1767225600 +0000\ndata 4\nMore\n"]
    parts.append(b"from refs/heads/main^0\n")
    for number in range(LARGE_FILES):
        parts.append(b"M 100644 inline d%d/f%d.bin\ndata %d\n" % (number // 50, number, LARGE_FILE_BYTES))
        parts += made.randbytes(LARGE_FILE_BYTES), b"\n"
    repository.run("-c", "core.compression=0", "fast-import", "--quiet", stdin=b"".join(parts))


class _Terminal:
    """What the worker says at its terminal, and when; instants are seconds since 1970."""

    def __init__(self, controller: int, jobs_dir: Path) -> None:
        self.said = ""
        #: By job and by rung.
        self.passed: dict[str, dict[str, float]] = {}
        #: By job: when its clone was there, as its git directory of the host says.
        self.cloned: dict[str, float] = {}
        self._jobs_dir = jobs_dir
        threading.Thread(target=self._read, args=(controller,), daemon=True).start()

    def _read(self, controller: int) -> None:
        with open(controller, encoding="utf-8", errors="replace") as terminal:
            try:
                for line in terminal:
                    self._line(line, time.time())
            except OSError:
                # Nobody is at the other side any more.
                return

    def _line(self, line: str, now: float) -> None:
        self.said += line
        if found := _STEP.match(line):
            self.passed.setdefault(found["job"], {})[found["name"]] = now
            if found["name"] == "workspace" and not found["job"].startswith("local-"):
                [directory] = self._jobs_dir.glob("job-*")
                self.cloned[found["job"]] = (directory / "git" / "HEAD").stat().st_mtime


class _Created:
    """When the engine made which container, in its own words."""

    def __init__(self, client: docker.DockerClient) -> None:
        self.at: dict[str, float] = {}
        self._events = client.events(decode=True, filters={"type": "container", "event": "create"})
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        for event in self._events:
            self.at[event["Actor"]["Attributes"].get("name", "")] = event["timeNano"] / 1e9

    def close(self) -> None:
        """Stop following."""
        self._events.close()


@dataclass
class _Scene:
    """A deployment whose worker and receiver run, with its edge."""

    edge: Edge
    settings: Settings
    #: Holds the folder `site`, on which jobs work.
    folder: Path
    worker: _Terminal
    created: _Created
    store: JobStore
    seen: list[Happening] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.edge.state.listeners.append(self.seen.append)
        self._records = RecordStore(self.settings.logs_dir)
        self._app = producer(self.settings, Address.of(self.settings))

    def repository(self, name: str) -> str:
        """A small repository on which the App is installed; its whole name."""
        made = self.edge.repository(f"acme/{name}", FILES)
        self.edge.state.installations[INSTALLATION].repositories.add(made.full_name)
        return made.full_name

    def from_webhook(self, repo: str) -> dict[str, float]:
        """Seconds of each part of the way of a job that a label starts; it has ended afterwards."""
        number = self.edge.issue(repo).number
        self.edge.label(number, _LABEL, repo)
        body, known = encode(payload(self.seen[-1], self.edge.shapes)), set(self.worker.passed)
        sent = time.time()
        self._post(body, f"bench-{repo.partition('/')[2]}-{number}")
        answered = time.time()
        [job_id] = until(lambda: set(self.worker.passed) - known, "the job to be taken", _TAKE_S)
        row, passed = self._ended(job_id), self.worker.passed[job_id]
        assert row.acquired_ms is not None, "it was taken"
        marks = (
            sent,
            answered,
            # Told in whole milliseconds: half of one is added.
            (row.acquired_ms + 0.5) / 1000,
            passed["egress"],
            passed["branch"],
            self.worker.cloned[job_id],
            passed["workspace"],
            self.created.at[container_name(job_id)],
        )
        took = (after - before for before, after in pairwise(marks))
        return dict(zip(PARTS, took, strict=True))

    def from_folder(self) -> float:
        """Seconds of a job on a folder from before it is handed in to its container; it has ended afterwards."""
        job = LocalJob(id=f"local-{os.urandom(8).hex()}", folder=self.folder / "site", task="Do nothing.", flow="fix")
        began = time.time()
        submitted = self.store.submit(job, queue=route(job, self.settings))
        assert submitted.ticket is not None, submitted
        publish(self._app, submitted.ticket)
        self._ended(job.id)
        return self.created.at[container_name(job.id)] - began

    def bare_clone(self, repo: str) -> float:
        """Seconds of git's own clone of depth 1, with the token of the last job."""
        url, clone, asked = f"{self.edge.git_url}/{repo}.git", self.folder / "clone", self.folder / "askpass"
        if not asked.exists():
            asked.write_text('#!/bin/sh\ncase "$1" in User*) echo x-access-token ;; *) echo "$TOKEN" ;; esac\n')
            asked.chmod(0o700)
        credential = {"GIT_ASKPASS": str(asked), "TOKEN": list(self.edge.state.tokens)[-1]}
        command = ["git", "clone", "--quiet", "--depth=1", url, str(clone)]
        began = time.perf_counter()
        subprocess.run(command, check=True, env={**environment(), **credential})
        took = time.perf_counter() - began
        # As a worker does with its own.
        shutil.rmtree(clone)
        return took

    def _post(self, body: bytes, guid: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.settings.receiver_port, timeout=_TAKE_S)
        connection.request("POST", "/", body, headers("issues", body, guid, SECRET))
        status = connection.getresponse().status
        connection.close()
        if status != 202:
            raise RuntimeError(f"the benchmark's own webhook was answered {status}")

    def _ended(self, job_id: str) -> Row:
        def ended() -> Row | None:
            row = self.store.row(job_id)
            return row if row is not None and row.recorded else None

        row = until(ended, f"the end of {job_id}; the worker says {self.worker.said[-2000:]}", _TAKE_S)
        # It may be there after the record; the next one is to begin when all of it is gone.
        until(lambda: not any(self.settings.jobs_dir.glob("*job-*")), f"the end of {job_id}", _TAKE_S)
        record = self._records.find(job_id)
        if record is None or record.outcome != "completed":
            raise RuntimeError(f"the benchmark's own job did not complete: {record}; {self.worker.said[-2000:]}")
        return row


@contextmanager
def _scene(client: docker.DockerClient) -> Iterator[_Scene]:
    with ExitStack() as open_:
        place = Path(open_.enter_context(scratch()))
        image = program_image(client, place, _ENTRY)
        open_.callback(lambda: client.images.remove(image, force=True))
        neighbour = Neighbour(client)
        open_.callback(neighbour.remove)
        edge = open_.enter_context(Edge(place / "edge"))
        edge.repository("acme/first")
        edge.install("acme/first", installation=INSTALLATION)
        program = Program(place, _variables(place, edge, image, neighbour.name))
        open_.callback(program.close)
        settings = settings_of(program.environment())
        process, controller = at_terminal([PROGRAM, "worker"], program.environment(), place)
        open_.callback(end, process)
        worker = _Terminal(controller, settings.jobs_dir)
        until(lambda: "worker_started" in worker.said or process.poll() is not None, "the worker", _TAKE_S)
        if process.poll() is not None:
            raise RuntimeError(f"the benchmark's own worker ended: {worker.said[-2000:]}")
        open_.enter_context(receiving(program, {}))
        created = _Created(client)
        open_.callback(created.close)
        server = connect(Address.of(settings))
        open_.callback(server.close)
        make_repository(place / "site", FILES)
        yield _Scene(edge, settings, place, worker, created, JobStore(server, settings.key_prefix, Limits()))


def _variables(place: Path, edge: Edge, image: str, neighbour: str) -> dict[str, str]:
    triggers = place / "triggers.json"
    triggers.write_text(json.dumps({"triggers": [label_rule(_LABEL, "m")]}))
    return {
        **edge.app_variables(place, INSTALLATION),
        "DOCKER_HOST": os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock"),
        "NO_COLOR": "1",
        "PI_LOGS_DIR": str(place / "logs"),
        "PI_JOB_IMAGE": image,
        "PI_EGRESS_PROXY": neighbour,
        "PI_DAILY_CAP": "1000",
        # None of them changes anything.
        "PI_BREAKER_RUNS": "0",
        "PI_TRIGGERS_FILE": str(triggers),
        "WEBHOOK_SECRET": SECRET,
        "RECEIVER_BIND": "127.0.0.1",
        "RECEIVER_PORT": str(free_port()),
    }

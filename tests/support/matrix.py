"""One cell of the kill matrix: a deployment of its own, a worker that kills itself at a point, and the next one's work.

Whatever the point, the same must hold in the end: every accepted job has one true record, no attempt was started twice,
nothing is left, and the deployment takes the next job.
"""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import redis

from pidispatch.jobs.rows import JobState, Row
from pidispatch.runs.note import read_note
from pidispatch.values.names import JOB_PREFIX
from pidispatch.workspace.jobdir import NOTE, sanitise
from tests.support.post import ROOT, Post, Worker
from tests.support.rows import local_of
from tests.support.server import OwnServer, until
from tests.support.worker_app import VARIABLE

#: Cells that are played at the same time; each waits for leases and time-outs most of its time.
AT_A_TIME = 6
#: Seconds until something must have happened.
PATIENCE_S = 60
#: What is said of a cell whose job was never accepted.
NOTHING = "nothing 0"


@dataclass(frozen=True)
class Held:
    """What the store and the engine said of a job when its worker was dead."""

    attempt: int
    lost: int
    #: It may have been paid for. A container that the engine calls `created` proves that it was not, and so does a
    #: directory in which no container was about to be made.
    spent: bool


class Scene:
    """What a scenario plays with: one deployment and one death."""

    def __init__(self, post: Post, kill: str) -> None:
        self.post = post
        self.kill = kill
        #: The job that the cell is about; `None` where there is only one.
        self.main: str | None = None
        self.held: dict[str, Held] = {}
        self._trigger = post.folder / "armed"
        #: Containers that the engine called `created` when a worker was dead; the next one may have removed them.
        self._unstarted: set[str] = set()

    def arm(self) -> None:
        """From now on the point kills."""
        self._trigger.touch()

    def doomed(self, name: str = "w1", *, booting: bool = False, **options: Any) -> Worker:
        """The worker that will be killed: once `arm` was called, or already while it is `booting`."""
        if booting:
            self.arm()
        told = {"armed": str(self._trigger)}
        return self.post.worker(name, kill=self.kill, told=told, ready=not booting, **options)

    def verb(self, *arguments: str) -> None:
        """Call the real program, which is killed at the point."""
        told = {"kill": self.kill, "engine": None}
        environ = self.post.environment(**{VARIABLE: json.dumps(told)})
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.verb_app", *arguments],
            env=environ,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, f"{self.kill} was not reached: {done}"

    def submit(self, model: str, folder: Path | None = None, **how: Any) -> str:
        """Hand in a job; the last one is what the cell is about."""
        self.main = self.post.submit(self.post.job(model, folder), **how)
        return self.main

    def await_death(self, worker: Worker, seconds: float = PATIENCE_S) -> None:
        """Wait until the worker is dead by its own hand, and look at what it left."""
        try:
            code = worker.await_end(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.kill} was not reached: {worker.log[-3000:]}") from None
        assert code == -signal.SIGKILL, f"the worker ended by itself ({code}): {worker.log[-3000:]}"
        self._unstarted |= {one.name for one in self.containers("created")}
        for job_id in self.ids():
            row = self.post.row(job_id)
            unstarted = f"{JOB_PREFIX}{sanitise(job_id)}" in self._unstarted or self._unmade(job_id)
            spent = row.spend_ms is not None and not unstarted
            self.held[job_id] = Held(row.attempt, row.lost, spent)

    def _unmade(self, job_id: str) -> bool:
        """Whether the job's directory is there and proves that no container was about to be made."""
        for path in self.post.folder.glob("w*/jobs/job-*"):
            note = read_note(path / NOTE) if path.is_dir() else None
            if note is not None and note.job.id == job_id:
                return not (path / "making").exists()
        return False

    def await_idle(self) -> None:
        """Wait until every container has ended by itself."""
        until(lambda: not self.containers("running"), "the containers to end", PATIENCE_S)

    def containers(self, status: str) -> list[Any]:
        """Containers of this deployment in this state."""
        label = f"pi.dispatch.deployment={self.post.store.open(None)}"
        return list(self.post.client.containers.list(all=True, filters={"label": label, "status": status}))

    def lease_is_over(self) -> bool:
        """Whether the lease of the job has run out, and the sweeps have gone on for long enough to take it as lost."""
        with closing(self.redis()) as client:
            over: Any = client.zscore(f"{self.post.prefix}jobs:active", self.main or "")
            since: Any = client.hget(f"{self.post.prefix}swept", "since")
            seconds: Any = client.time()[0]
        rested = since is not None and seconds * 1000 - int(since) > self.post.limits.lease_s * 1000
        return rested and over is not None and seconds * 1000 > over

    def ids(self) -> list[str]:
        """Every job that the store knows."""
        with closing(self.redis()) as client:
            return sorted(rows_of(client, self.post.prefix))

    def redis(self) -> redis.Redis:
        """A client of the deployment's server."""
        assert self.post.server is not None
        return self.post.server.client()


@dataclass(frozen=True)
class Cell:
    """A point, how it is reached, and how its job has to end: outcome, reason, and number of started containers."""

    #: `before` or `after`.
    when: str
    point: str
    play: Callable[[Scene], None]
    end: str

    @property
    def title(self) -> str:
        """Its point and its scenario."""
        return f"{self.when + ' ' + self.point:<36} {self.play.__name__.replace('_', ' '):<26}"


@dataclass(frozen=True)
class Line:
    """What a cell came to."""

    cell: Cell
    end: str
    records: int
    fault: str | None = None

    @property
    def text(self) -> str:
        """Its line in the table."""
        outcome, _, starts = self.end.rpartition(" ")
        return f"{self.cell.title} {outcome:<24} {starts:>6} {self.records:>7}{'  FAILED' if self.fault else ''}"


def play_all(cells: Iterable[Cell], image: str, neighbour: str, server: OwnServer) -> list[Line]:
    """Play the cells, some at a time. Never raises for what a cell finds."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return list(pool.map(lambda cell: _line(cell, image, neighbour, server), cells))


def table(lines: Iterable[Line]) -> str:
    """The matrix as a person reads it."""
    head = f"{'point':<36} {'scenario':<26} {'outcome':<24} {'starts':>6} {'records':>7}"
    return "\n".join((head, *(line.text for line in lines)))


def _line(cell: Cell, image: str, neighbour: str, server: OwnServer) -> Line:
    # A client of its own: each of them follows the engine's events by it.
    with (
        closing(docker.from_env(version="auto", timeout=PATIENCE_S)) as client,
        Post(client, image, neighbour, server) as post,
    ):
        scene = Scene(post, f"{cell.when}:{cell.point}")
        try:
            cell.play(scene)
            end, records = conclude(scene)
            assert end == cell.end, f"it ended as {end!r}, not as {cell.end!r}"
        except Exception as error:
            return Line(cell, "-", 0, f"{cell.title}: {type(error).__name__}: {error}\n{post.said()}")
    return Line(cell, end, records)


def conclude(scene: Scene) -> tuple[str, int]:
    """Let the next worker put everything in order, prove that it did; how the job ended, and the number of records."""
    post = scene.post
    # With one slot the further job proves that it is free.
    post.worker(PI_CONCURRENCY="1")
    ids = scene.ids()
    rows = {job_id: post.await_end(job_id, PATIENCE_S) for job_id in ids}
    main = scene.main or (ids[0] if ids else None)
    further = post.submit(post.job("ok", local_of(rows[main]).folder if main else None))
    assert post.await_end(further, PATIENCE_S).state is JobState.COMPLETED
    # The engine tells its events in their order: with this one every earlier one has come.
    post.await_starts(further)
    _await_quiet(scene, [*ids, further])
    for job_id, row in rows.items():
        _check_job(scene, job_id, row)
    assert post.records() == sorted([*ids, further])
    with closing(scene.redis()) as client:
        check_indexes(client, post.prefix)
        check_money(client, post.prefix, [post.record(job_id) for job_id in (*ids, further)])
    return (_end(post, main) if main else NOTHING), len(ids)


def _end(post: Post, job_id: str) -> str:
    record = post.record(job_id)
    words = (record["outcome"], record["reason"], str(post.starts.of(job_id)))
    return " ".join(word for word in words if word)


def _check_job(scene: Scene, job_id: str, row: Row) -> None:
    record, starts = scene.post.record(job_id), scene.post.starts.attempts_of(job_id)
    listed = [*(one["attempt"] for one in record["attempts"]), record["attempt"]]
    assert listed == sorted(set(listed)), f"attempts are listed twice: {listed}"
    assert record["attempt"] == row.record_attempt == row.attempt, (record, row)
    assert record["outcome"] == ("failed" if row.state is JobState.FAILED else record["outcome"])
    assert len(starts) == len(set(starts)), f"an attempt was started twice: {starts}"
    assert set(starts) <= set(listed), f"a start without a record: {starts} of {listed}"
    assert record["budgetReserved"] or record["attempt"] not in starts, f"paid for, and not said so: {record}"
    assert bool(record["charged"]) == bool(record["budgetReserved"]), f"counted, and not said so: {record}"
    held = scene.held.get(job_id)
    if held is not None and held.spent:
        assert (row.attempt, row.lost) == (held.attempt, held.lost), f"taken up again once it was paid for: {row}"


def _await_quiet(scene: Scene, ids: list[str]) -> None:
    """Wait until the dead worker's tickets have come back and were dropped, and nothing is left of any run."""
    post = scene.post

    def tickets(client: Any) -> list[str]:
        waiting = [client.lrange(f"{post.prefix}{queue}", 0, -1) for queue in ("pi-jobs", "pi-jobs@w1")]
        messages = [json.loads(raw)[0] for raw in client.hvals(f"{post.prefix}unacked")]
        messages += [json.loads(raw) for queue in waiting for raw in queue]
        return [found for one in messages if (found := one["headers"]["id"]) in ids]

    def left() -> list[str]:
        # The engine is asked last: it is the slowest.
        with closing(scene.redis()) as client:
            return tickets(client) or [path.name for path in post.folder.glob("w*/jobs/*job-*")] or post.left()

    try:
        until(lambda: not left(), "everything to be tidied up", PATIENCE_S)
    except TimeoutError as error:
        raise AssertionError(f"{error}; there is still {left()}") from None


def check_money(client: Any, prefix: str, records: Iterable[dict[str, Any]]) -> None:
    """The counters are the sum of what the records say, and an attempt is in a window once."""
    head = f"{prefix}budget:"
    counted = {str(name).removeprefix(prefix): int(client.get(name)) for name in client.scan_iter(f"{head}*")}
    charged: Counter[str] = Counter()
    for record in records:
        for one in (record, *record["attempts"]):
            charged.update(one["charged"] or {})
            assert {amount for key, amount in (one["charged"] or {}).items() if ":t:" not in key} <= {1}, one
    assert {key: amount for key, amount in counted.items() if amount} == dict(charged), (counted, charged)


def rows_of(client: Any, prefix: str) -> dict[str, dict[str, str]]:
    """Every row by its job's id, found by a full scan."""
    head = f"{prefix}job:"
    other = tuple(f"{head}{kind}:" for kind in ("lock", "progress", "told"))
    names = [name for name in client.scan_iter(f"{head}*", count=1000) if not name.startswith(other)]
    rows: dict[str, Any] = {name.removeprefix(head): client.hgetall(name) for name in names}
    return rows


def check_indexes(client: Any, prefix: str) -> None:
    """Where every job has ended and is recorded, the indexes hold the failed ones and nothing else."""
    rows = rows_of(client, prefix)
    assert all(JobState(row["state"]).terminal and row["recorded"] == "1" for row in rows.values()), rows
    failed = {job_id: float(row["finishedAt"]) for job_id, row in rows.items() if row["state"] == "failed"}
    found = {name: dict(client.zrange(name, 0, -1, withscores=True)) for name in client.scan_iter(f"{prefix}jobs:*")}
    assert found == ({f"{prefix}jobs:failed": failed} if failed else {})
    assert not list(client.scan_iter(f"{prefix}job:lock:*"))

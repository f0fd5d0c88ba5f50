"""What shares a server: two workers of one deployment, and another Celery application beside them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from celery import Celery

from pidispatch.jobs.producer import TASK
from pidispatch.jobs.rows import JobState
from tests.support.post import QUICK, ROOT, Post
from tests.support.server import OwnServer, until


class Foreign:
    """Another application's worker, and the means to give it work."""

    def __init__(self, broker: str, folder: Path) -> None:
        self._starts = folder / "starts"
        self._log = folder / "log"
        self.app = Celery("foreign", broker=broker, set_as_current=False)
        self.app.conf.task_default_queue = "pi-jobs"
        told = {"FOREIGN_BROKER": broker, "FOREIGN_STARTS": str(self._starts), "HOME": str(folder)}
        command = [
            sys.executable,
            "-m",
            "celery",
            "-A",
            "tests.support.foreign_app",
            "worker",
            "-P",
            "threads",
            "-c",
            "2",
        ]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "-n", "foreign@x", "-l", "INFO"],
                env={"PATH": os.environ["PATH"], **told},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def await_ready(self) -> None:
        """Wait until its worker consumes."""
        until(lambda: b"foreign@x ready" in self._log.read_bytes(), "the other application's worker", 40)

    def send(self, name: str, seconds: float = 0.0) -> None:
        """Have its task started."""
        self.app.send_task(TASK, args=(name, seconds))

    def starts(self, name: str) -> int:
        """How often it was."""
        return self._starts.read_text().splitlines().count(name) if self._starts.exists() else 0

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait(10)
        self.app.close()


@pytest.fixture
def foreign(server: OwnServer, tmp_path: Path) -> Iterator[Foreign]:
    """The other application on the same server."""
    with closing(Foreign(f"redis+socket://{server.socket}", tmp_path)) as own:
        own.await_ready()
        yield own


def answering(app: Celery) -> list[str]:
    """The names of all workers that an application's control commands reach."""
    answers = app.control.ping(timeout=3) or []
    return [name.partition("@")[0] for answer in answers for name in answer]


@pytest.mark.example("ch5 s9 another application", "Two applications with one queue and task name stay apart.")
def test_another_application_on_the_same_server(post: Post, server: OwnServer, foreign: Foreign) -> None:
    worker = post.worker()
    # Twice our visibility timeout; it runs all the while that ours comes and goes.
    seconds = 2 * QUICK["visibility_s"]
    foreign.send("long", seconds)
    until(lambda: foreign.starts("long") == 1, "its task to start", 30)
    jobs = [post.submit(post.job(), queue=queue) for queue in ("pi-jobs", "pi-jobs@w1") * 3]
    for number in range(6):
        foreign.send(f"short-{number}")
    for job_id in jobs:
        assert post.await_end(job_id).state is JobState.COMPLETED
        assert post.starts.of(job_id) == 1
        assert foreign.starts(job_id) == 0
    for number in range(6):
        until(lambda number=number: foreign.starts(f"short-{number}") == 1, "its short tasks", 30)  # type: ignore[misc]
    with closing(server.client()) as client:
        until(lambda: not client.exists("unacked"), "its long task to end", 30)
        # Everything of ours lies under our prefix, and nothing of theirs.
        names = [str(name) for name in client.scan_iter("*", count=1000)]
    assert [name for name in names if name.startswith("job")] == []
    assert foreign.starts("long") == 1
    assert worker.events("delivery_ignored") == []
    # The one application's control commands do not reach the other.
    assert answering(foreign.app) == ["foreign"]
    assert answering(post.producer()) == ["w1"]


@pytest.mark.example("ch5 s9 named queues", "A host's own jobs are run by it alone, shared ones by whoever is free.")
def test_two_workers_share_one_queue(post: Post) -> None:
    first, second = post.worker("w1", PI_CONCURRENCY="1"), post.worker("w2", PI_CONCURRENCY="1")
    own = [post.submit(post.job("sleep-1"), name) for name in ("w1", "w2", "w1", "w2")]
    shared = [post.submit(post.job("sleep-1"), queue="pi-jobs") for _ in range(6)]
    for job_id in (*own, *shared):
        assert post.await_end(job_id, 60).state is JobState.COMPLETED
        assert post.starts.of(job_id) == 1
    assert [post.record(job_id)["host"] for job_id in own] == ["w1", "w2", "w1", "w2"]
    assert {post.record(job_id)["host"] for job_id in shared} == {"w1", "w2"}
    assert [*first.events("host_busy_deferred"), *second.events("host_busy_deferred")] == []


def test_a_hosts_own_job_waits_for_it(post: Post) -> None:
    second = post.worker("w2")
    job_id = post.submit(post.job(), "w1")
    # The other one is there, and free, all the time.
    for _ in range(3):
        assert post.record(post.submit_and_await(post.job(), "w2"))["host"] == "w2"
    assert (post.row(job_id).state, post.tickets("pi-jobs@w1")) == (JobState.QUEUED, [job_id])
    post.worker("w1")
    post.await_end(job_id)
    assert post.record(job_id)["host"] == "w1"
    assert second.events("delivery_ignored") == []


@pytest.mark.example("ch5 s9 idle host", "What falls due on a full host is run by an idle one, from the shared queue.")
def test_an_idle_host_takes_what_a_full_one_defers(post: Post) -> None:
    full, idle = post.worker("w1", PI_CONCURRENCY="1"), post.worker("w2", PI_CONCURRENCY="1")
    # While the second one is busy only the first fetches what is to be held.
    busy = post.submit(post.job("sleep-5"), "w2")
    post.await_starts(busy)
    held = post.hold(post.job(), 9, queue="pi-jobs")
    until(lambda: held in post.fetched(), "the first worker to hold it")
    long = post.submit(post.job("sleep-25"), "w1")
    post.await_starts(long)
    post.await_end(busy)
    event = full.await_event("host_busy_deferred")
    assert event["jobId"] == held
    assert post.await_end(held).state is JobState.COMPLETED
    assert post.record(held)["host"] == "w2"
    # The first one was full all the time.
    assert post.row(long).state is JobState.ACTIVE
    assert idle.events("host_busy_deferred") == []
    assert post.starts.of(held) == 1

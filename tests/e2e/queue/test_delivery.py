"""Tickets that come late, twice, or broken: with real workers on a real server, each job's container starts once."""

import json
from collections.abc import Callable
from contextlib import closing
from threading import Event, Thread
from typing import Any

import pytest

from pidispatch.jobs.producer import TASK, publish
from pidispatch.jobs.rows import JobState, Row
from tests.support.post import QUICK, Post
from tests.support.server import OwnServer, until

VISIBILITY_S: float = QUICK["visibility_s"]


class Tags:
    """The scores of what workers have fetched, as the server shows them: when each ticket was last renewed."""

    def __init__(self, post: Post, server: OwnServer, job_id: str) -> None:
        self._end = Event()
        self._thread = Thread(target=self._follow, args=(post.prefix, server, job_id), daemon=True)
        #: Instants at which the job's ticket was renewed, in seconds, and its greatest age when looked at.
        self.renewed: set[float] = set()
        self.oldest = 0.0
        self._thread.start()

    def _follow(self, prefix: str, server: OwnServer, job_id: str) -> None:
        with closing(server.client()) as client:
            while not self._end.wait(0.1):
                held = {tag for tag, raw in client.hgetall(f"{prefix}unacked").items() if job_id in raw}
                seconds, micros = client.time()
                for tag in held:
                    # One that was acknowledged between the two questions has none.
                    if (score := client.zscore(f"{prefix}unacked_index", tag)) is not None:
                        self.renewed.add(float(score))
                        self.oldest = max(self.oldest, seconds + micros / 1e6 - float(score))

    def __enter__(self) -> "Tags":
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(5)


def two_workers(post: Post) -> Callable[[str], list[dict[str, Any]]]:
    """Start two workers of one deployment; what both have logged under a name."""
    both = post.worker("w1"), post.worker("w2")
    return lambda name: [event for one in both for event in one.events(name)]


def once_and_long(post: Post, tags: Tags, row: Row, visibilities: int) -> None:
    """The job stood for so many visibility timeouts and came once: its ticket was never old enough to come again."""
    assert row.state is JobState.COMPLETED
    assert row.finished_ms is not None
    assert row.finished_ms - row.created_ms > 1000 * visibilities * VISIBILITY_S
    assert post.starts.of(row.id) == 1
    assert tags.oldest < VISIBILITY_S
    assert len(tags.renewed) > 4


@pytest.mark.example("ch5 s9 long ETA", "A job held for several visibility timeouts is started once, by one worker.")
def test_an_eta_longer_than_the_visibility_timeout_is_one_start(post: Post, server: OwnServer) -> None:
    logged = two_workers(post)
    job_id = post.hold(post.job(), 4 * VISIBILITY_S, queue="pi-jobs")
    until(lambda: post.fetched() == [job_id], "a worker to hold it")
    with Tags(post, server, job_id) as tags:
        row = post.await_end(job_id)
    once_and_long(post, tags, row, 4)
    # The fence had nothing to do.
    assert logged("delivery_ignored") == []


@pytest.mark.example("ch5 s9 long run", "A job that runs for several visibility timeouts is started once.")
def test_a_run_longer_than_the_visibility_timeout_is_one_start(post: Post, server: OwnServer) -> None:
    logged = two_workers(post)
    job_id = post.submit(post.job("sleep-14"), queue="pi-jobs")
    post.await_state(job_id, JobState.ACTIVE)
    with Tags(post, server, job_id) as tags:
        row = post.await_end(job_id)
    once_and_long(post, tags, row, 3)
    assert logged("delivery_ignored") == []


@pytest.mark.example("ch5 s9 three copies", "Of three copies of one ticket one is taken by a worker, two are ignored.")
@pytest.mark.example("ch2 EX-37", "One ticket that two workers get three times is one container.")
def test_three_copies_of_one_ticket_are_one_start(post: Post) -> None:
    logged = two_workers(post)
    job = post.job("sleep-2")
    job_id = post.submit(job, queue="pi-jobs", announce=False)
    app, ticket = post.producer(), post.row(job_id).ticket
    for _ in range(3):
        publish(app, ticket)
    assert post.await_end(job_id).state is JobState.COMPLETED
    until(lambda: len(logged("delivery_ignored")) == 2, "two copies to be ignored")
    until(lambda: post.fetched() == [], "all copies to be acknowledged")
    assert {event["jobId"] for event in logged("delivery_ignored")} == {job_id}
    assert {event["state"] for event in logged("delivery_ignored")} <= {"active", "finished"}
    assert post.starts.of(job_id) == 1
    assert post.tickets("pi-jobs") == []


def _no_arguments(message: dict[str, Any]) -> None:
    message["body"] = json.dumps([[], {}, {}])
    message["properties"]["body_encoding"] = "utf-8"


def _no_generation(message: dict[str, Any]) -> None:
    del message["headers"]["gen"]


def _foreign_task(message: dict[str, Any]) -> None:
    message["headers"]["task"] = "somebody.elses"


def _no_json(message: dict[str, Any]) -> None:
    message.update(body="{", properties={**message["properties"], "body_encoding": "utf-8"})


def _pickled(message: dict[str, Any]) -> None:
    message["content-type"] = "application/x-python-serialize"


def _no_headers(message: dict[str, Any]) -> None:
    message["headers"] = {}


@pytest.mark.example("ch5 s9 broken ticket", "A ticket that cannot be read is dropped, and the worker goes on.")
@pytest.mark.parametrize("spoil", [_no_arguments, _no_generation, _foreign_task, _no_json, _pickled, _no_headers])
def test_a_ticket_that_cannot_be_read_does_not_loop(
    post: Post, server: OwnServer, spoil: Callable[[dict[str, Any]], None]
) -> None:
    job_id = post.submit(post.job(), queue="pi-jobs")
    queue = f"{post.prefix}pi-jobs"
    with closing(server.client()) as client:
        message = json.loads(str(client.rpop(queue)))
        assert message["headers"]["task"] == TASK
        spoil(message)
        client.lpush(queue, json.dumps(message))
    # The store finds that the ticket is missing and publishes it again.
    worker = post.worker()
    assert post.await_end(job_id).state is JobState.COMPLETED
    until(lambda: post.fetched() == [], "the broken ticket to be given up")
    assert post.tickets("pi-jobs") == []
    assert post.starts.of(job_id) == 1
    assert worker.stop() == 0


@pytest.mark.example("ch5 s9 raising handler", "A delivery whose code raises is a failed attempt, and no loop.")
@pytest.mark.parametrize(("broken", "attempts"), [("gate", 2), ("attempt", 1)])
def test_a_delivery_whose_handler_raises_does_not_loop(post: Post, broken: str, attempts: int) -> None:
    worker = post.worker(told={"broken": broken})
    job_id = post.submit(post.job("poison"))
    row = post.await_end(job_id)
    assert row.state is JobState.FAILED
    assert (post.record(job_id)["cause"], post.record(job_id)["attempt"]) == ("internal-error", attempts)
    until(lambda: post.fetched() == [], "its ticket to be acknowledged")
    assert post.tickets(row.queue) == []
    assert post.starts.of(job_id) == 0
    # All slots and all folders are free.
    others = [post.submit(post.job("sleep-1")) for _ in range(3)]
    assert [post.await_end(one).state for one in others] == [JobState.COMPLETED] * 3
    assert worker.events("host_busy_deferred") == []

"""A worker that is told to stop: seconds, a record for each job that ran, and nothing of what waits is lost."""

import signal
import time
from collections.abc import Callable

import pytest

from pidispatch.jobs.rows import JobState
from tests.support.post import Post
from tests.support.server import OwnServer, until

#: Seconds in which a worker that was told to stop is gone.
STOP_S = 15
Note = Callable[[str, object], None]


def aborted(post: Post, job_id: str) -> None:
    """The job's run was ended by the stop of its worker, and stays so."""
    row = post.row(job_id)
    assert (row.state, row.reason, row.recorded) == (JobState.COMPLETED, "worker-abort", True)
    record = post.record(job_id)
    assert (record["outcome"], record["reason"], record["cause"]) == ("policy", "worker-abort", "shutdown")
    assert record["budgetReserved"] is True


@pytest.mark.example("ch5 s9 stop", "A worker with three running jobs stops in seconds, with three records.")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_three_running_jobs_end_with_their_worker(post: Post, how: signal.Signals, note: Note) -> None:
    worker = post.worker()
    held = post.hold(post.job(), 600)
    until(lambda: post.fetched() == [held], "the worker to hold one")
    running = [post.submit(post.job("sleep-60")) for _ in range(3)]
    for job_id in running:
        post.await_starts(job_id)
    waiting = post.submit(post.job())
    begun = time.monotonic()
    assert worker.stop(how) == 0
    took = time.monotonic() - begun
    note("stopped_s", round(took, 2))
    assert took < STOP_S
    for job_id in running:
        aborted(post, job_id)
    assert post.left() == []
    assert post.records() == sorted(running)
    assert (post.row(waiting).state, post.row(held).state) == (JobState.QUEUED, JobState.DEFERRED)
    assert post.fetched() == []
    assert sorted(post.tickets("pi-jobs@w1")) == sorted([waiting, held])
    # The next one goes on with what waited, and with nothing else.
    post.worker()
    post.await_end(waiting)
    until(lambda: post.fetched() == [held], "the next worker to hold it")
    for job_id in running:
        aborted(post, job_id)
        assert post.starts.of(job_id) == 1
    assert post.starts.of(held) == 0


@pytest.mark.example("ch5 s9 ticket while stopping", "A ticket that a worker fetches while it stops goes back.")
@pytest.mark.parametrize("point", ["before:deliver", "before:acquire", "after:acquire"])
def test_a_ticket_fetched_while_stopping_is_not_lost(post: Post, point: str) -> None:
    """The worker is told to stop at that point of its first delivery: before or after the store was asked."""
    worker = post.worker(told={"act": {point: "stop"}})
    job_id = post.submit(post.job("sleep-3"), announce=True)
    assert worker.await_end(STOP_S) == 0
    assert post.starts.of(job_id) == 0
    assert post.row(job_id).state in (JobState.QUEUED, JobState.DEFERRED)
    assert (post.records(), post.fetched()) == ([], [])
    post.worker()
    assert post.await_end(job_id).state is JobState.COMPLETED
    assert post.record(job_id)["outcome"] == "completed"
    assert post.starts.of(job_id) == 1


@pytest.mark.example("ch5 s9 burst while stopping", "Of a burst that meets a stop no job is lost and none runs twice.")
def test_a_burst_that_meets_a_stop_is_not_lost(post: Post) -> None:
    worker = post.worker()
    first = [post.submit(post.job()) for _ in range(3)]
    worker.process.send_signal(signal.SIGTERM)
    jobs = first + [post.submit(post.job()) for _ in range(9)]
    assert worker.await_end(STOP_S) == 0
    post.worker()
    for job_id in jobs:
        assert post.await_end(job_id).state is JobState.COMPLETED
        assert post.starts.of(job_id) <= 1
    until(lambda: post.fetched() == [], "all tickets to be acknowledged")
    assert post.tickets("pi-jobs@w1") == []
    assert post.records() == sorted(jobs)


@pytest.mark.example("ch5 s9 stop without server", "Told to stop while its server is away, a worker leaves its record.")
def test_a_stop_while_the_server_is_away(post: Post, server: OwnServer, note: Note) -> None:
    worker = post.worker()
    running = [post.submit(post.job("sleep-60")) for _ in range(2)]
    held = post.hold(post.job(), 20)
    for job_id in running:
        post.await_starts(job_id)
    until(lambda: held in post.fetched(), "the worker to hold one")
    server.stop(signal.SIGKILL)
    begun = time.monotonic()
    # The real patience of a worker that stops: 5 s.
    assert worker.stop() == 0, worker.log[-3000:]
    took = time.monotonic() - begun
    note("stopped_s", round(took, 2))
    assert took < STOP_S
    assert post.records() == sorted(running)
    for job_id in running:
        assert post.record(job_id)["reason"] == "worker-abort"
    server.start()
    assert post.left() == []
    assert post.row(running[0]).state is JobState.ACTIVE
    post.worker()
    for job_id in running:
        post.await_end(job_id)
        aborted(post, job_id)
    # The ticket it held comes back once nobody renews it.
    assert post.await_end(held).state is JobState.COMPLETED
    assert [post.starts.of(job_id) for job_id in (*running, held)] == [1, 1, 1]


@pytest.mark.example("ch5 s9 shutdown", "A worker that Flower shuts down ends its runs instead of waiting for them.")
def test_a_shutdown_by_control_ends_the_jobs_that_run(post: Post) -> None:
    worker = post.worker()
    job_id = post.submit(post.job("sleep-60"))
    post.await_starts(job_id)
    post.producer().control.shutdown()
    assert worker.await_end(STOP_S) == 0
    aborted(post, job_id)
    assert post.left() == []

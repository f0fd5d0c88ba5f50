"""The kill switch with real workers: what it keeps from starting, what goes on, and that nothing is lost by it."""

from contextlib import closing

import pytest

from pidispatch.jobs.pausing import EVERY
from pidispatch.jobs.rows import JobState
from tests.support.post import Post, let_pass
from tests.support.server import until

SHARED, OWN = "pi-jobs", "pi-jobs@w1"


def test_a_paused_queue_keeps_its_jobs_and_the_other_goes_on(post: Post) -> None:
    worker = post.worker(limits={"pause_poll_s": 0.2})
    post.store.pause([SHARED])
    assert worker.await_event("queues_paused")["queues"] == [SHARED]
    # What was asked of the server before is answered by this one.
    assert post.await_end(post.submit(post.job(), queue=OWN)).state is JobState.COMPLETED
    waiting = [post.submit(post.job(), queue=SHARED) for _ in range(2)]
    # The worker is alive and fetches, and has fetched none of those.
    assert post.await_end(post.submit(post.job(), queue=OWN)).state is JobState.COMPLETED
    assert post.tickets(SHARED) == waiting
    assert {post.row(job_id).state for job_id in waiting} == {JobState.QUEUED}
    assert worker.events("paused_deferred") == []
    post.store.resume([SHARED])
    for job_id in waiting:
        assert post.await_end(job_id).state is JobState.COMPLETED
        assert post.starts.of(job_id) == 1


@pytest.mark.example("ch5 s6 paused queue", "A held job that falls due in a paused queue sleeps on.")
def test_a_held_job_that_falls_due_sleeps_again_until_the_pause_ends(post: Post) -> None:
    worker = post.worker(limits={"pause_poll_s": 0.2, "paused_recheck_ms": 700})
    held = post.hold(post.job(), 2, queue=OWN)
    running = post.submit(post.job("sleep-4"))
    post.await_starts(running)
    until(lambda: held in post.fetched(), "the worker to hold it")
    post.store.pause([EVERY])
    event = worker.await_event("paused_deferred")
    assert (event["jobId"], event["queue"], event["delayMs"]) == (held, OWN, 700)
    # What ran when the pause came has its own end.
    assert post.await_end(running).state is JobState.COMPLETED
    # Its new ticket lies in the queue, of which nothing is fetched.
    until(lambda: post.tickets(OWN) == [held], "its ticket to be back")
    assert (post.row(held).attempt, post.starts.of(held)) == (1, 0)
    post.store.resume([EVERY])
    assert post.await_end(held).state is JobState.COMPLETED
    assert (post.starts.of(held), post.record(held)["attempt"]) == (1, 1)


def test_a_pause_outlives_worker_and_server_and_a_paused_worker_is_not_taken_for_deaf(post: Post) -> None:
    limits = {"pause_poll_s": 0.2, "deaf_s": 1.0, "tick_every_s": 0.3}
    post.worker(limits=limits)
    post.store.pause([EVERY])
    assert post.workers[0].stop() == 0
    assert post.server is not None
    post.server.stop()
    post.server.start()
    again = post.worker(limits=limits)
    waiting = post.submit(post.job(), queue=OWN)
    # So long that one which hears nothing would have ended itself.
    let_pass(3)
    assert again.process.poll() is None
    assert again.events("consumer_deaf") == []
    assert post.tickets(OWN) == [waiting]
    post.store.resume([EVERY])
    assert post.await_end(waiting).state is JobState.COMPLETED


def test_a_cancel_reaches_a_job_of_a_paused_queue(post: Post) -> None:
    post.worker()
    post.store.pause([EVERY])
    job_id = post.submit(post.job())
    with closing(post.producer()) as producer:
        producer.control.revoke(job_id)
    row = post.await_end(job_id)
    assert (row.state, row.reason, post.starts.of(job_id)) == (JobState.CANCELLED, "operator-cancel", 0)

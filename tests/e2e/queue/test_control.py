"""Jobs that an operator ends: by Celery's control commands, as Flower sends them, and by `pi-dispatch cancel`."""

import subprocess
from typing import Any

import pytest

from pidispatch.jobs.rows import JobState
from tests.support.post import Post, let_pass
from tests.support.program import PROGRAM
from tests.support.server import until


def revoke(post: Post, job_id: str, *, terminate: bool) -> None:
    """What Flower sends for its buttons Terminate and Revoke, and `celery control` for the commands."""
    app = post.producer()
    if terminate:
        app.control.revoke(job_id, terminate=True, signal="SIGTERM")
    else:
        app.control.revoke(job_id)


def cancel(post: Post, job_id: str) -> int:
    """`pi-dispatch cancel`; its exit code."""
    command = [PROGRAM, "cancel", job_id]
    environ = post.environment()
    return subprocess.run(command, env=environ, capture_output=True, timeout=60, check=False).returncode


def cancelled_run(post: Post, job_id: str) -> dict[str, Any]:
    """The record of a job that ran and was ended by an operator."""
    row = post.await_end(job_id)
    assert (row.state, row.reason) == (JobState.COMPLETED, "operator-cancel")
    record = post.record(job_id)
    assert (record["outcome"], record["reason"], record["budgetReserved"]) == ("policy", "operator-cancel", True)
    return record


def cancelled_wait(post: Post, job_id: str) -> dict[str, Any]:
    """The record of a job that was cancelled while it waited."""
    row = post.await_end(job_id)
    assert (row.state, row.reason) == (JobState.CANCELLED, "operator-cancel")
    record = post.record(job_id)
    assert (record["outcome"], record["reason"]) == ("policy", "operator-cancel")
    assert (record["exitCode"], record["budgetReserved"]) == (None, False)
    return record


def settled(post: Post) -> None:
    """No ticket is left anywhere, and nothing on the engine."""
    until(lambda: post.fetched() == [], "all tickets to be acknowledged", 30)
    assert post.tickets("pi-jobs@w1") == []
    assert post.left() == []


@pytest.mark.example("ch5 s9 terminate", "A running job that Flower terminates ends as cancelled, its container gone.")
def test_terminate_ends_a_running_job(post: Post) -> None:
    worker = post.worker()
    job_id = post.submit(post.job("sleep-60"))
    post.await_starts(job_id)
    revoke(post, job_id, terminate=True)
    cancelled_run(post, job_id)
    settled(post)
    assert post.starts.of(job_id) == 1
    # It alone: the worker goes on.
    post.await_end(post.submit(post.job()))
    assert worker.stop() == 0


@pytest.mark.example("ch5 s9 revoke held", "A held job that is revoked is cancelled at once, has a record, never runs.")
@pytest.mark.parametrize("terminate", [False, True])
def test_revoke_ends_a_held_job(post: Post, terminate: bool) -> None:
    post.worker()
    job_id = post.hold(post.job(), 6)
    until(lambda: post.fetched() == [job_id], "the worker to hold it")
    revoke(post, job_id, terminate=terminate)
    # Long before its instant.
    cancelled_wait(post, job_id)
    assert post.fetched() == [job_id]
    settled(post)
    let_pass(2)
    assert post.starts.of(job_id) == 0


@pytest.mark.example("ch5 s9 revoke waiting", "A waiting job that is revoked has a record; no worker runs it later.")
def test_a_revoked_job_never_runs_later(post: Post) -> None:
    # Its ticket waits behind the one job that this worker runs at a time, which ends with it.
    worker = post.worker(PI_CONCURRENCY="1")
    running = post.submit(post.job("sleep-60"))
    post.await_starts(running)
    job_id = post.submit(post.job())
    revoke(post, job_id, terminate=False)
    cancelled_wait(post, job_id)
    assert worker.stop() == 0
    # The next one knows nothing of the revoke, and has the ticket.
    assert post.tickets("pi-jobs@w1") == [job_id]
    post.worker()
    settled(post)
    assert post.starts.of(job_id) == 0
    assert post.row(job_id).state is JobState.CANCELLED


@pytest.mark.example("ch5 s9 revoke running", "A running job that is revoked without terminate runs to its end.")
def test_revoke_lets_a_running_job_end(post: Post) -> None:
    post.worker()
    job_id = post.submit(post.job("sleep-4"))
    post.await_starts(job_id)
    revoke(post, job_id, terminate=False)
    assert post.await_end(job_id).state is JobState.COMPLETED
    assert post.record(job_id)["outcome"] == "completed"
    settled(post)


def test_no_attempt_follows_that_of_a_revoked_job(post: Post) -> None:
    worker = post.worker(limits={"retry_base_ms": 3000})
    job_id = post.submit(post.job("fail"))
    post.await_starts(job_id)
    post.await_state(job_id, JobState.DEFERRED)
    revoke(post, job_id, terminate=False)
    record = cancelled_wait(post, job_id)
    assert [one["reason"] for one in record["attempts"]] == ["infra"]
    settled(post)
    assert post.starts.of(job_id) == 1
    assert worker.process.poll() is None


class TestCancel:
    """Whatever a job is at, `pi-dispatch cancel` tells the truth about it."""

    @pytest.mark.example("ch5 s9 cancel waiting", "A job whose ticket waits is cancelled, and its ticket ignored.")
    def test_a_job_that_waits(self, post: Post) -> None:
        job_id = post.submit(post.job())
        assert cancel(post, job_id) == 0
        worker = post.worker()
        cancelled_wait(post, job_id)
        settled(post)
        assert [event["state"] for event in worker.events("delivery_ignored")] == ["finished"]
        assert post.starts.of(job_id) == 0
        assert cancel(post, job_id) == 1

    @pytest.mark.example("ch5 s9 cancel held", "A job that a worker holds for later is cancelled, and never runs.")
    def test_a_job_that_is_held(self, post: Post) -> None:
        post.worker()
        job_id = post.hold(post.job(), 6)
        until(lambda: post.fetched() == [job_id], "the worker to hold it")
        assert cancel(post, job_id) == 0
        cancelled_wait(post, job_id)
        settled(post)
        assert post.starts.of(job_id) == 0

    @pytest.mark.example("ch5 s9 cancel running", "A running job's worker says that it ends it, and does.")
    def test_a_job_that_runs(self, post: Post) -> None:
        worker = post.worker()
        job_id = post.submit(post.job("sleep-60"))
        post.await_starts(job_id)
        assert cancel(post, job_id) == 0
        assert post.store.cancel_answer(job_id) == "w1"
        cancelled_run(post, job_id)
        settled(post)
        assert [event["jobId"] for event in worker.events("cancel_acknowledged")] == [job_id]

    @pytest.mark.example("ch2 EX-42", "A job that is cancelled while its retry is decided is not run again.")
    def test_a_job_whose_retry_is_decided(self, post: Post) -> None:
        post.worker(told={"act": {"before:fail": "cancel"}})
        job_id = post.submit(post.job("fail"))
        record = cancelled_run(post, job_id)
        assert (record["exitCode"], record["attempt"], record["attempts"]) == (1, 1, [])
        settled(post)
        # Longer than the pause before an attempt that would follow.
        let_pass(2 * post.limits.retry_base_ms / 1000)
        assert post.starts.of(job_id) == 1
        assert post.row(job_id).state is JobState.COMPLETED

    @pytest.mark.example("ch5 s9 cancel between attempts", "A job that waits for its next attempt is cancelled.")
    def test_a_job_between_two_attempts(self, post: Post) -> None:
        post.worker(limits={"retry_base_ms": 4000})
        job_id = post.submit(post.job("fail"))
        post.await_state(job_id, JobState.DEFERRED)
        assert cancel(post, job_id) == 0
        record = cancelled_wait(post, job_id)
        assert [one["exitCode"] for one in record["attempts"]] == [1]
        settled(post)
        assert post.starts.of(job_id) == 1

    @pytest.mark.example("ch5 s9 cancel after the end", "A job that has ended is left as it is, and the asker told.")
    def test_a_job_that_has_ended(self, post: Post) -> None:
        post.worker()
        job_id = post.submit(post.job())
        row = post.await_end(job_id)
        assert cancel(post, job_id) == 1
        assert post.row(job_id) == row
        assert post.record(job_id)["outcome"] == "completed"

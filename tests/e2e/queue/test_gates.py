"""Gates and retries with real workers: slots, folders, leases, and an engine or a consumer that is not there."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import pytest

from pidispatch.jobs.rows import JobState
from tests.support.post import Post, let_pass
from tests.support.rows import local_of
from tests.support.server import OwnServer, until


@pytest.mark.example("ch2 EX-25", "Two other spellings of a folder in use wait; the log never names the folder.")
def test_one_job_at_a_time_in_a_folder(post: Post) -> None:
    worker = post.worker()
    folder = post.repository("site-of-a-customer")
    running = post.submit(post.job("sleep-5", folder))
    post.await_starts(running)
    (folder.parent / "x").mkdir()
    others = [
        post.submit(post.job("ok", Path(spelt))) for spelt in (f"{folder}/", f"{folder.parent}/x/../{folder.name}")
    ]
    for job_id in others:
        until(
            lambda job_id=job_id: job_id in [event["jobId"] for event in worker.events("scope_busy_deferred")],  # type: ignore[misc]
            f"{job_id} to be deferred",
        )
        assert post.starts.of(job_id) == 0
    assert {event["kind"] for event in worker.events("scope_busy_deferred")} == {"local"}
    for job_id in (running, *others):
        assert post.await_end(job_id).state is JobState.COMPLETED
        assert post.starts.of(job_id) == 1
        assert post.record(job_id)["attempt"] == 1
    # They ran one after the other.
    spans = sorted((post.record(one)["startedAt"], post.record(one)["endedAt"]) for one in (running, *others))
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert folder.name not in worker.log


@pytest.mark.example("ch2 EX-28", "Of six jobs for three slots three run and three wait in the list; none is deferred.")
def test_a_full_machine_fetches_nothing(post: Post) -> None:
    worker = post.worker()
    # Beyond the time that the six need to be there.
    held = [post.hold(post.job(), 7, queue=queue) for queue in ("pi-jobs", "pi-jobs@w1", "pi-jobs")]
    until(lambda: sorted(post.fetched()) == sorted(held), "the worker to hold three")
    fresh = [post.submit(post.job("sleep-12"), queue=queue) for queue in ("pi-jobs", "pi-jobs@w1") * 3]
    until(lambda: sum(post.starts.of(one) for one in fresh) == 3, "three of them to run", 30)
    waiting = [one for one in fresh if post.row(one).state is JobState.QUEUED]
    assert len(waiting) == 3
    assert sorted([*post.tickets("pi-jobs"), *post.tickets("pi-jobs@w1")]) == sorted(waiting)
    assert worker.events("host_busy_deferred") == []
    # Each of those it holds comes to the full machine once, and then waits in the list like the others.
    worker.await_event("host_busy_deferred", count=3)
    until(lambda: len(post.tickets("pi-jobs")) + len(post.tickets("pi-jobs@w1")) == 6, "their tickets to be back")
    deferred = worker.events("host_busy_deferred")
    assert sorted(event["jobId"] for event in deferred) == sorted(held)
    assert {event["delayMs"] for event in deferred} == {post.limits.scope_busy_recheck_ms}
    for job_id in (*fresh, *held):
        assert post.await_end(job_id, 60).state is JobState.COMPLETED
        assert post.starts.of(job_id) == 1


@pytest.mark.example("ch5 s9 own queue again", "A deferred job goes back to the queue it came from.")
@pytest.mark.parametrize("queue", ["pi-jobs", "pi-jobs@w1"])
def test_a_deferral_goes_back_to_its_queue(post: Post, queue: str) -> None:
    worker = post.worker(limits={"scope_busy_recheck_ms": 3000})
    folder = post.repository()
    post.await_starts(post.submit(post.job("sleep-60", folder)))
    job_id = post.submit(post.job("ok", folder), queue=queue)
    worker.await_event("scope_busy_deferred")
    # What a worker held for later lies in its queue again once that worker is gone.
    assert worker.stop() == 0
    (other,) = {"pi-jobs", "pi-jobs@w1"} - {queue}
    assert (post.tickets(queue), post.tickets(other)) == ([job_id], [])
    assert (post.row(job_id).queue, post.row(job_id).attempt) == (queue, 1)


@pytest.mark.example("ch2 EX-10", "A job whose container exits with 1 twice is two containers and a final failure.")
def test_a_job_that_fails_twice_has_failed(post: Post) -> None:
    post.worker()
    job_id = post.submit(post.job("fail"))
    row = post.await_state(job_id, JobState.FAILED)
    assert (row.reason, row.attempt) == ("infra", 2)
    post.await_end(job_id)
    record = post.record(job_id)
    assert (record["outcome"], record["exitCode"], record["attempt"]) == ("failed", 1, 2)
    (first,) = record["attempts"]
    assert (first["attempt"], first["reason"], first["exitCode"], first["budgetReserved"]) == (1, "infra", 1, True)
    until(lambda: post.fetched() == [], "its ticket to be acknowledged")
    assert post.starts.of(job_id) == 2


def test_a_job_that_fails_once_is_completed(post: Post) -> None:
    post.worker()
    job_id = post.submit(post.job("flaky"))
    assert post.await_end(job_id).state is JobState.COMPLETED
    assert post.starts.of(job_id) == 2
    assert [one["exitCode"] for one in post.record(job_id)["attempts"]] == [1]


class TestExit137:
    """EX-11: killed by us, or by somebody else."""

    @pytest.mark.example("ch2 EX-11 aborted", "A run that is killed for its worker's stop is an abort, and no retry.")
    def test_aborted(self, post: Post) -> None:
        worker = post.worker()
        job_id = post.submit(post.job("stubborn-60"))
        post.await_starts(job_id)
        assert worker.stop() == 0
        record = post.record(job_id)
        assert (record["outcome"], record["reason"], record["exitCode"]) == ("policy", "worker-abort", 137)
        post.worker()
        # The next worker goes on with what comes, and not with this one.
        post.await_end(post.submit(post.job()))
        assert post.row(job_id).state is JobState.COMPLETED
        assert post.starts.of(job_id) == 1

    @pytest.mark.example("ch2 EX-11 not aborted", "A run that somebody else killed is tried again.")
    def test_not_aborted(self, post: Post) -> None:
        post.worker()
        job_id = post.submit(post.job("killed"))
        post.await_state(job_id, JobState.FAILED)
        post.await_end(job_id)
        record = post.record(job_id)
        assert (record["outcome"], record["reason"], record["exitCode"]) == ("failed", "infra", 137)
        assert [one["exitCode"] for one in record["attempts"]] == [137]
        assert post.starts.of(job_id) == 2


@pytest.mark.example("ch5 s9 policy", "A run that ended by policy is not tried again.")
def test_policy_is_not_tried_again(post: Post) -> None:
    post.worker()
    job_id = post.submit(post.job("policy"))
    assert post.await_end(job_id).state is JobState.COMPLETED
    record = post.record(job_id)
    assert (record["outcome"], record["exitCode"], record["attempts"]) == ("policy", 2, [])
    let_pass(2 * post.limits.retry_base_ms / 1000)
    assert post.starts.of(job_id) == 1
    assert post.tickets("pi-jobs@w1") == []


class TestLease:
    """A lease is lost only when its key holds another's nonce."""

    @pytest.mark.example("ch5 s9 lease lost", "Who lost its lease to another stops its container and writes nothing.")
    def test_another_has_it(self, post: Post, server: OwnServer) -> None:
        worker = post.worker()
        job_id = post.submit(post.job("sleep-60"))
        post.await_starts(job_id)
        row = post.row(job_id)
        with closing(server.client()) as client:
            client.set(f"{post.prefix}job:lock:{job_id}", "w9#engine#nonce", px=60_000)
            # What the other would have, so that no sweep takes the job for lost.
            client.zadd(f"{post.prefix}jobs:active", {job_id: 32_503_680_000_000})
        worker.await_event("lease_lost")
        until(lambda: post.left() == [], "its container to be gone")
        until(lambda: post.fetched() == [], "its ticket to be acknowledged")
        assert post.records() == []
        assert post.row(job_id) == row
        # Its slot and its folder are free.
        post.await_end(post.submit(post.job("ok", local_of(row).folder)))
        assert worker.stop() == 0
        assert (job_id in post.records(), post.starts.of(job_id)) == (False, 1)

    @pytest.mark.example("ch5 s9 lease gone", "A lease whose key is gone is taken again by the one whom the row names.")
    def test_nobody_has_it(self, post: Post, server: OwnServer) -> None:
        worker = post.worker()
        job_id = post.submit(post.job("sleep-5"))
        post.await_starts(job_id)
        key = f"{post.prefix}job:lock:{job_id}"
        with closing(server.client()) as client:
            client.delete(key)
            until(lambda: client.get(key) == post.row(job_id).owner, "the lease to be taken again")
        assert post.await_end(job_id).state is JobState.COMPLETED
        assert post.record(job_id)["outcome"] == "completed"
        assert (post.starts.of(job_id), worker.events("lease_lost")) == (1, [])


class TestSurroundings:
    """What the ladder is told when something around it is missing: bounded tries, and nothing is held afterwards."""

    @pytest.mark.example("ch8 F6 engine", "Twenty jobs without an engine fail after bounded tries; all slots are free.")
    def test_an_engine_that_is_not_there(self, post: Post) -> None:
        door = post.folder / "engine.sock"
        real = post.environment()["DOCKER_HOST"].removeprefix("unix://")
        worker = post.worker(DOCKER_HOST=f"unix://{door}")
        assert len(worker.events("reaper_skipped")) == 1
        jobs = [post.submit(post.job()) for _ in range(20)]
        for job_id in jobs:
            post.await_state(job_id, JobState.FAILED)
            row = post.await_end(job_id)
            assert (row.state, row.attempt) == (JobState.FAILED, 2)
            record = post.record(job_id)
            assert (record["outcome"], record["reason"]) == ("failed", "container-never-started")
            assert record["exitCode"] is None
            assert record["budgetReserved"] is False
        assert len(worker.events("job_failed")) == 40
        assert sum(post.starts.of(job_id) for job_id in jobs) == 0
        # The engine is back: three run at the same time, in the folders of those that failed.
        door.symlink_to(real)
        again = [post.submit(post.job("sleep-4", local_of(post.row(one)).folder)) for one in jobs[:3]]
        until(lambda: all(post.row(one).state is JobState.ACTIVE for one in again), "three to run at once", 30)
        for job_id in again:
            assert post.await_end(job_id).state is JobState.COMPLETED

    @pytest.mark.example("ch8 F6 key", "A job without the model's key is refused, and not tried again.")
    def test_a_key_that_is_not_set(self, post: Post) -> None:
        worker = post.worker(ANTHROPIC_API_KEY=None)
        jobs = [post.submit(post.job()) for _ in range(20)]
        for job_id in jobs:
            row = post.await_end(job_id)
            assert (row.state, row.attempt) == (JobState.COMPLETED, 1)
            record = post.record(job_id)
            assert (record["outcome"], record["reason"]) == ("policy", "provider-unconfigured")
            assert record["budgetReserved"] is False
        assert worker.events("host_busy_deferred") == []
        assert sum(post.starts.of(job_id) for job_id in jobs) == 0


class TestLiveness:
    """A worker that lives and hears nothing."""

    DEAF: ClassVar = {"deaf_s": 4.0, "tick_every_s": 1.0}

    @pytest.fixture
    def switch(self, tmp_path: Path) -> Iterator[Path]:
        """The file whose presence makes the worker deaf."""
        yield tmp_path / "deaf"
        shutil.rmtree(tmp_path, ignore_errors=True)

    @pytest.mark.example("ch5 s9 deaf", "A worker that hears nothing, though it has free slots, ends with exit code 1.")
    def test_a_deaf_worker_ends(self, post: Post, switch: Path) -> None:
        worker = post.worker(limits=self.DEAF, told={"deaf": str(switch)})
        post.await_end(post.submit(post.job()))
        switch.touch()
        assert worker.await_end() == 1
        (event,) = worker.events("consumer_deaf")
        assert event["ageS"] >= self.DEAF["deaf_s"]
        # What came meanwhile is for the next one.
        job_id = post.submit(post.job())
        switch.unlink()
        post.worker()
        assert post.await_end(job_id).state is JobState.COMPLETED

    @pytest.mark.example("ch5 s9 deaf with a job", "A worker that hears nothing goes on while it runs a job.")
    def test_a_deaf_worker_with_a_job_goes_on(self, post: Post, switch: Path) -> None:
        worker = post.worker(limits=self.DEAF, told={"deaf": str(switch)})
        job_id = post.submit(post.job("sleep-12"))
        post.await_starts(job_id)
        switch.touch()
        # Three times as long as an idle one would stay.
        assert post.await_end(job_id).state is JobState.COMPLETED
        assert post.record(job_id)["outcome"] == "completed"
        ended = next(event for event in worker.events("job_completed") if event["jobId"] == job_id)
        assert worker.await_end() == 1
        (deaf,) = worker.events("consumer_deaf")
        assert deaf["timestamp"] > ended["timestamp"]

    def test_a_full_worker_is_not_deaf(self, post: Post) -> None:
        worker = post.worker(limits=self.DEAF, PI_CONCURRENCY="1")
        job_id = post.submit(post.job("sleep-8"))
        post.await_end(job_id)
        post.await_end(post.submit(post.job()))
        assert worker.events("consumer_deaf") == []
        assert worker.stop() == 0

"""Workers and servers that are gone from one moment to the next: nothing is lost, and nothing is paid for twice."""

import shutil
import signal
import time
from collections.abc import Callable
from contextlib import closing

import pytest

from pidispatch.jobs.rows import JobState
from tests.support.deaths import LONG, a_busy_folder, a_submitting_program, an_ordinary_run
from tests.support.matrix import Scene, conclude
from tests.support.post import QUICK, Post
from tests.support.server import OwnServer, until

VISIBILITY_S: float = QUICK["visibility_s"]
#: Seconds after its visibility timeout by which everything that a dead worker held must have come back.
GRACE_S = 30.0
#: Seconds that a killed worker's held jobs still have to sleep; long enough to set the stage.
HELD_S = 10.0
LOST = ("failed", "worker-lost")


def how(post: Post, job_id: str) -> tuple[str, str | None]:
    """Outcome and reason of a job's record."""
    record = post.record(job_id)
    return record["outcome"], record["reason"]


def killed_during(post: Post, model: str) -> str:
    """A job in whose container its worker was killed; its id."""
    worker = post.worker()
    job_id = post.submit(post.job(model))
    post.await_starts(job_id)
    worker.kill()
    return job_id


@pytest.mark.example("ch5 s9 kill", "Of a killed worker's jobs the running one is lost; the others run once.")
def test_a_killed_workers_jobs_come_back_but_for_the_one_that_ran(post: Post) -> None:
    worker = post.worker("w1", PI_CONCURRENCY="1")
    deaf = post.folder / "deaf"
    deaf.touch()
    post.worker("w2", told={"deaf": str(deaf)})
    others = [post.hold(post.job(), HELD_S, queue="pi-jobs") for _ in range(2)]
    until(lambda: sorted(post.fetched()) == sorted(others), "both to be held")
    running = post.submit(post.job(LONG), queue="pi-jobs")
    post.await_starts(running)
    others.append(post.submit(post.job(), queue="pi-jobs"))
    assert post.tickets("pi-jobs") == others[-1:]

    worker.kill()
    deaf.unlink()
    deadline = time.monotonic() + VISIBILITY_S + GRACE_S
    for job_id in (running, *others):
        post.await_end(job_id, deadline - time.monotonic())
    # Its machine comes back later, and ends the container that nobody watched.
    post.worker("w1")
    until(lambda: not post.left(), "nothing to be left")

    assert how(post, running) == LOST
    assert [how(post, job_id) for job_id in others] == [("completed", None)] * 3
    assert [post.starts.of(job_id) for job_id in (running, *others)] == [1, 1, 1, 1]


@pytest.mark.example("ch5 s9 between two steps", "Killed between two steps that belong together: not lost, not twice.")
@pytest.mark.parametrize(
    ("play", "point"),
    [
        pytest.param(a_submitting_program, "after:submit", id="submit and publish"),
        pytest.param(a_busy_folder, "after:defer", id="defer and publish"),
        pytest.param(an_ordinary_run, "after:recorded", id="record and acknowledgement"),
    ],
)
def test_killed_between_two_steps(post: Post, play: Callable[[Scene], None], point: str) -> None:
    scene = Scene(post, point)
    play(scene)
    end, _ = conclude(scene)
    assert end == "completed 1"


@pytest.mark.example("ch5 s9 kill in a look", "Killed as it looks for lost tickets, a worker holds up no other.")
def test_a_worker_that_is_killed_as_it_looks_for_lost_tickets_holds_up_nobody(post: Post) -> None:
    # Without the sweep's help, which would publish another ticket.
    patient = {"overdue_s": 3600.0}
    first = post.worker("w1", limits=patient)
    job_id = post.hold(post.job(), HELD_S, queue="pi-jobs")
    until(lambda: post.fetched() == [job_id], "it to be held")
    first.kill()
    second = post.worker("w2", limits=patient, kill="before:QoS.restore_by_tag")
    assert second.await_end() == -signal.SIGKILL
    deadline = time.monotonic() + VISIBILITY_S + GRACE_S
    post.worker("w3", limits=patient)
    assert post.await_end(job_id, deadline - time.monotonic()).state is JobState.COMPLETED
    assert post.starts.of(job_id) == 1


class TestWipedServer:
    """What the server forgets, the record files on the machine still know."""

    @pytest.mark.example("ch5 s9 wiped", "A job that has run is not paid for again when a server forgets it.")
    @pytest.mark.parametrize("restarted", [False, True])
    @pytest.mark.parametrize("model", ["ok", "flaky"])
    def test_a_job_that_completed_is_not_paid_again(
        self, post: Post, server: OwnServer, model: str, restarted: bool
    ) -> None:
        worker = post.worker()
        job = post.job(model)
        post.submit(job)
        post.await_end(job.id)
        known, starts = post.record(job.id), post.starts.of(job.id)
        wipe(server, restarted=restarted)
        assert post.store.row(job.id) is None

        post.submit(job)
        row = post.await_end(job.id)

        assert row.state is JobState.COMPLETED
        assert worker.await_event("job_lost_lock_after_completion")["jobId"] == job.id
        assert post.record(job.id) == known
        assert [one["attempt"] for one in known["attempts"]] == ([1] if model == "flaky" else [])
        post.await_starts(post.submit(post.job()))
        assert post.starts.of(job.id) == starts == (2 if model == "flaky" else 1)

    @pytest.mark.example("ch5 s9 wiped meanwhile", "Handed in anew while it runs, a job is one container.")
    def test_a_job_that_runs_is_not_run_beside_itself(self, post: Post, server: OwnServer) -> None:
        post.worker()
        job = post.job("sleep-6")
        post.submit(job)
        post.await_starts(job.id)
        wipe(server, restarted=False)

        post.submit(job)
        row = post.await_end(job.id)

        assert row.state is JobState.COMPLETED
        assert how(post, job.id) == ("completed", None)
        assert post.record(job.id)["exitCode"] == 0
        post.await_starts(post.submit(post.job()))
        assert post.starts.of(job.id) == 1


def wipe(server: OwnServer, *, restarted: bool) -> None:
    """Take everything from the server: by a command, or as a machine does that comes back with an empty disk."""
    if not restarted:
        with closing(server.client()) as client:
            client.flushall()
        return
    server.stop(signal.SIGKILL)
    shutil.rmtree(server.folder / "appendonlydir")
    server.start()


@pytest.mark.example("ch2 EX-38", "Its worker killed during its container, a job is lost, paid for, never run again.")
def test_a_job_whose_worker_is_killed_during_its_container_is_lost_for_good(post: Post) -> None:
    job_id = killed_during(post, LONG)
    post.worker()
    # Before anything is consumed: the place at the engine is clean.
    assert post.left() == []
    row = post.await_end(job_id)
    assert (row.state, how(post, job_id), row.attempt) == (JobState.FAILED, LOST, 1)
    assert post.record(job_id)["budgetReserved"] is True
    post.await_end(post.submit(post.job()))
    assert post.starts.of(job_id) == 1


@pytest.mark.example("ch2 EX-39", "Killed in a gate, a worker's job waits again, unrecorded; the third time it fails.")
def test_a_job_whose_worker_is_killed_inside_a_gate_waits_again_but_not_for_ever(post: Post) -> None:
    job_id = post.submit(post.job())
    for before in range(3):
        worker = post.worker(kill="before:FolderMutex.check")
        assert worker.await_end(60) == -signal.SIGKILL
        row = post.row(job_id)
        assert (row.state, row.attempt, row.lost, row.spend_ms) == (JobState.ACTIVE, 1, before, None)
        assert post.records() == []
    post.worker()
    row = post.await_end(job_id)
    record = post.record(job_id)
    assert (row.state, row.attempt, how(post, job_id)) == (JobState.FAILED, 1, LOST)
    assert (record["cause"], record["budgetReserved"]) == ("before-spending", False)
    post.await_starts(post.submit(post.job()))
    assert post.starts.of(job_id) == 0


class TestLeftovers:
    """What a killed worker leaves at its engine."""

    @pytest.mark.example("ch5 s9 true end", "A container that ends after its worker was killed has its true record.")
    def test_a_container_that_ended_by_itself_has_its_true_record(self, post: Post) -> None:
        job_id = killed_during(post, "sleep-1")
        until(lambda: not running(post), "the container to end")
        post.worker()
        row, record = post.await_end(job_id), post.record(job_id)
        assert (row.state, how(post, job_id)) == (JobState.COMPLETED, ("completed", None))
        assert (record["exitCode"], record["turns"], record["budgetReserved"]) == (0, 1, True)
        assert post.left() == []
        assert post.starts.of(job_id) == 1

    @pytest.mark.example("ch5 s9 other engine", "What was left at another engine is left alone till that is back.")
    def test_what_was_left_at_another_engine_is_left_alone(self, post: Post) -> None:
        job_id = killed_during(post, "sleep-1")
        until(lambda: not running(post), "the container to end")
        left = post.left()
        elsewhere = post.worker(engine=f"{post.prefix}other")
        assert post.await_end(job_id).reason == "worker-lost"
        assert post.left() == left
        assert elsewhere.events("job_settled") == []
        lost = post.record(job_id)
        elsewhere.stop()

        post.worker()
        assert post.left() == []
        until(lambda: post.record(job_id)["turns"] == 1, "what was used to be told")
        assert post.record(job_id) == {**lost, **{name: post.record(job_id)[name] for name in LATE}}
        assert how(post, job_id) == LOST
        assert post.starts.of(job_id) == 1

    @pytest.mark.example("ch5 s9 stray", "A container that nothing on the disk explains is settled at boot.")
    @pytest.mark.parametrize(
        ("point", "model", "end"),
        [
            pytest.param("before:Engine.remove", "ok", ("completed", None), id="exited"),
            pytest.param("after:Engine.start", LONG, LOST, id="running"),
            pytest.param("before:Engine.start", "ok", ("completed", None), id="created"),
        ],
    )
    def test_a_stray_container_is_settled_at_boot(
        self, post: Post, point: str, model: str, end: tuple[str, str | None]
    ) -> None:
        worker = post.worker(kill=point)
        job_id = post.submit(post.job(model))
        assert worker.await_end() == -signal.SIGKILL
        if model != LONG:
            until(lambda: not running(post), "the container to end")
        shutil.rmtree(post.folder / "w1/jobs")

        again = post.worker()
        assert [event["jobId"] for event in again.events("reaped_container")] == [job_id]
        post.await_end(job_id)

        assert how(post, job_id) == end
        assert post.record(job_id)["exitCode"] == (143 if model == LONG else 0)
        until(lambda: not post.left(), "nothing to be left")
        post.await_starts(post.submit(post.job()))
        assert post.starts.of(job_id) == 1


#: What a record of a lost run is told later, from what its container had said.
LATE = ("exitCode", "turns", "tokens", "usage", "context", "imageDigest", "provider", "model")


def running(post: Post) -> list[object]:
    """Containers of this deployment that run."""
    label = f"pi.dispatch.deployment={post.store.open(None)}"
    return list(post.client.containers.list(filters={"label": label}))

"""The server goes away while jobs run, and comes back: every run ends once, with its own record, and work goes on.

The lease of these workers is 3 s and their visibility timeout 4 s (`QUICK`), so an outage of 10 s is to them what more
than three minutes are to real ones.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator

import docker
import pytest

from pidispatch.jobs.rows import JobState
from pidispatch.server.client import check_server, connect
from tests.support.post import QUICK, Post, Worker, let_pass
from tests.support.server import OwnServer, until

OUTAGE_S = 10.0
#: Beyond the lease: what the sweep waits before it takes a job for lost.
REST = {"sweep_rest_s": 3.0}
#: More than three times lease and rest, where the contract's two minutes are a third more than theirs.
LONG_S = 21.0
assert 3 * (QUICK["lease_s"] + REST["sweep_rest_s"]) < LONG_S

Note = Callable[[str, object], None]


def ended_by_itself(post: Post, job_id: str) -> None:
    """The job ran once, to its end, and its record says so."""
    record = post.record(job_id)
    assert (record["outcome"], record["reason"], record["exitCode"]) == ("completed", None, 0)
    # Told by the run itself.
    assert (record["turns"], record["tokens"]["total"]) == (1, 7)
    assert post.starts.of(job_id) == 1


def lives(worker: Worker) -> None:
    """It is the same process still, and none of its threads broke."""
    assert worker.process.poll() is None, worker.log[-3000:]
    assert len(worker.events("worker_started")) == 1
    for name in ("tick_broke", "attempt_broke", "job_lost", "lease_lost"):
        assert worker.events(name) == []


def seconds_to_run(post: Post, since: float) -> float:
    """Seconds from `since` until a job that is handed in now has started."""
    post.await_starts(post.submit(post.job()))
    return time.monotonic() - since


@pytest.mark.example("ch5 s9 server stopped", "A run outlives a server that is stopped; its worker consumes again.")
@pytest.mark.parametrize("server", [("valkey",), ("redis",)], indirect=True)
@pytest.mark.parametrize("model", ["sleep-14", "sleep-4"])
def test_a_run_outlives_a_server_that_is_stopped(post: Post, server: OwnServer, model: str) -> None:
    """With `sleep-14` it ends after the outage, with `sleep-4` in the midst of it."""
    worker = post.worker()
    job_id = post.submit(post.job(model))
    post.await_starts(job_id)
    server.stop()
    let_pass(OUTAGE_S)
    server.start()
    assert post.await_end(job_id).state is JobState.COMPLETED
    ended_by_itself(post, job_id)
    post.await_end(post.submit(post.job()))
    lives(worker)
    until(lambda: post.fetched() == [], "all tickets to be acknowledged")


@pytest.mark.example("ch5 s9 server killed", "A worker with a run, a held job and a slot outlives a killed server.")
def test_a_worker_outlives_a_killed_server(post: Post, server: OwnServer, note: Note) -> None:
    worker = post.worker()
    running = post.submit(post.job("sleep-14"))
    held = post.hold(post.job(), OUTAGE_S + 3)
    post.await_starts(running)
    until(lambda: sorted(post.fetched()) == sorted([running, held]), "both to be held")
    server.stop(signal.SIGKILL)
    let_pass(OUTAGE_S)
    server.start()
    took = seconds_to_run(post, time.monotonic())
    note("recovered_s", round(took, 2))
    assert took < 5
    for job_id in (running, held):
        assert post.await_end(job_id).state is JobState.COMPLETED
        ended_by_itself(post, job_id)
    lives(worker)


@pytest.mark.example("ch5 s9 long outage", "An outage much longer than lease and rest loses no run, and no record.")
def test_an_outage_longer_than_lease_and_rest_loses_no_run(post: Post, server: OwnServer, note: Note) -> None:
    # The second one sweeps as soon as the server is back.
    workers = post.worker("w1", limits=REST), post.worker("w2", limits=REST)
    within, beyond = (post.submit(post.job(model)) for model in ("sleep-8", "sleep-28"))
    post.await_starts(within)
    post.await_starts(beyond)
    server.stop(signal.SIGKILL)
    let_pass(LONG_S)
    server.start()
    took = seconds_to_run(post, time.monotonic())
    note("recovered_s", round(took, 2))
    assert took < 30
    for job_id in (within, beyond):
        assert post.await_end(job_id).state is JobState.COMPLETED
        ended_by_itself(post, job_id)
    for worker in workers:
        lives(worker)


@pytest.mark.example("ch5 s9 server hangs", "A server that answers nobody for several leases costs no run its record.")
def test_a_server_that_hangs_loses_no_run(post: Post, server: OwnServer) -> None:
    # Its uptime tells nothing then, and the sweep of the second worker waits in its socket.
    workers = post.worker("w1", limits=REST), post.worker("w2", limits=REST)
    job_id = post.submit(post.job("sleep-16"))
    post.await_starts(job_id)
    server.freeze()
    let_pass(OUTAGE_S)
    server.thaw()
    assert post.await_end(job_id).state is JobState.COMPLETED
    ended_by_itself(post, job_id)
    for worker in workers:
        lives(worker)


@pytest.mark.example("ch5 s9 server forgets", "A run whose server lost all data gets its record; the worker goes on.")
@pytest.mark.parametrize("server", [("valkey", "--appendonly", "no")], indirect=True)
def test_a_run_outlives_a_server_without_its_data(post: Post, server: OwnServer) -> None:
    worker = post.worker()
    job_id = post.submit(post.job("sleep-6"))
    post.await_starts(job_id)
    server.stop(signal.SIGKILL)
    server.start()
    assert post.store.row(job_id) is None
    until(lambda: post.records() == [job_id], "its record", 40)
    ended_by_itself(post, job_id)
    post.await_end(post.submit(post.job()))
    lives(worker)


@pytest.mark.example("ch5 s9 submitted anew", "Handed in anew after the server lost its data, a paid job is one run.")
@pytest.mark.parametrize("server", [("valkey", "--appendonly", "no")], indirect=True)
@pytest.mark.parametrize("while_it_runs", [True, False])
def test_a_job_handed_in_anew_to_a_server_without_its_data_is_one_run(
    post: Post, server: OwnServer, while_it_runs: bool
) -> None:
    worker = post.worker()
    job = post.job("sleep-8")
    post.submit(job)
    post.await_starts(job.id)
    server.stop(signal.SIGKILL)
    server.start()
    if not while_it_runs:
        until(lambda: post.records() == [job.id], "its record", 40)
    post.submit(job)
    row = post.await_end(job.id)
    assert row.state is JobState.COMPLETED
    ended_by_itself(post, job.id)
    lives(worker)


@pytest.fixture
def alone(engine: docker.DockerClient, stub: str, neighbour: str) -> Iterator[Post]:
    """A deployment that names no server."""
    with Post(engine, stub, neighbour, None) as own:
        yield own


def kill_embedded(post: Post) -> int:
    """Kill the server that the deployment started itself; the pid it had."""
    client = connect(post.address)
    pid = check_server(client, post.address).pid
    client.close()
    os.kill(pid, signal.SIGKILL)
    return pid


def embedded_pid(post: Post) -> int:
    """Pid of the embedded server; 0 while it does not answer."""
    client = connect(post.address)
    try:
        return check_server(client, post.address).pid
    except Exception:
        return 0
    finally:
        client.close()


@pytest.mark.example("ch5 s9 embedded killed", "A worker starts its own server again that was killed during a run.")
@pytest.mark.parametrize("model", ["sleep-10", None], ids=["running", "idle"])
def test_an_embedded_server_that_was_killed_comes_back(alone: Post, model: str | None, note: Note) -> None:
    worker = alone.worker()
    jobs = []
    if model is not None:
        jobs.append(alone.submit(alone.job(model)))
        alone.await_starts(jobs[0])
    killed, since = kill_embedded(alone), time.monotonic()
    until(lambda: embedded_pid(alone) not in (0, killed), "the server to be started again", 40)
    note("server_back_s", round(time.monotonic() - since, 2))
    took = seconds_to_run(alone, time.monotonic())
    note("recovered_s", round(took, 2))
    assert took < 30
    for job_id in jobs:
        assert alone.await_end(job_id).state is JobState.COMPLETED
        ended_by_itself(alone, job_id)
    lives(worker)
    assert worker.stop() == 0
    until(lambda: embedded_pid(alone) == 0, "the server to end with its last user")


@pytest.mark.example("ch5 s9 after a blip", "After an outage a busy worker fetches nothing; its run can be ended.")
def test_what_runs_is_not_forgotten_by_an_outage(post: Post, server: OwnServer) -> None:
    """Celery itself forgets it with its connection: the run held a slot, and nobody would have found it."""
    worker = post.worker(PI_CONCURRENCY="1")
    job_id = post.submit(post.job("sleep-60"))
    post.await_starts(job_id)
    waiting = [post.submit(post.job()) for _ in range(5)]
    server.stop(signal.SIGKILL)
    server.start()
    let_pass(6)
    assert {*waiting} <= {*post.tickets("pi-jobs@w1")}
    assert worker.events("host_busy_deferred") == []
    post.producer().control.revoke(job_id, terminate=True, signal="SIGTERM")
    assert post.await_end(job_id).reason == "operator-cancel"
    for one in waiting:
        assert post.await_end(one).state is JobState.COMPLETED
    lives(worker)

"""How workers die in the tests: each scenario brings a deployment to the point of its scene, and leaves it there."""

import json
import secrets
import shutil
import signal
from contextlib import closing
from datetime import UTC, datetime, timedelta

from pidispatch.jobs.endings import cancelled_record
from pidispatch.jobs.producer import publish
from pidispatch.jobs.store import JobStore
from pidispatch.values.limits import Limits
from tests.support.matrix import PATIENCE_S, Scene
from tests.support.post import QUICK, Worker
from tests.support.rows import local_of
from tests.support.server import until

#: A job that does not end while a test looks at it.
LONG = "sleep-60"
#: The same, and its container has to be killed: so that a stop takes its time.
STUBBORN = "stubborn-60"


def an_ordinary_run(scene: Scene) -> None:
    """A job that completes at once."""
    worker = scene.doomed()
    scene.arm()
    scene.submit("ok")
    scene.await_death(worker)
    # So that what is found does not depend on who is faster.
    scene.await_idle()


def a_schedule(scene: Scene) -> None:
    """A job that falls due; each look of the scheduler ends with a note of it."""
    run = {"kind": "local", "folder": str(scene.post.repository()), "flow": "tidy", "task": "tidy up", "model": "ok"}
    # Of its own: cells run side by side, and an engine knows the jobs of all of them by their ids.
    name = f"often-{secrets.token_hex(4)}"
    on = {"type": "cron", "id": name, "pattern": "* * * * * *"}
    file = scene.post.folder / "triggers.json"
    file.write_text(json.dumps({"triggers": [{"on": on, "run": run}]}))
    worker = scene.doomed(PI_TRIGGERS_FILE=str(file))
    # The first look begins a new schedule; the next one makes its first job.
    until(lambda: scene.post.store.dealt_with([name])[name], "the first look")
    scene.arm()
    scene.await_death(worker)
    scene.await_idle()


def a_long_run(scene: Scene) -> None:
    """A job whose container outlives its worker."""
    worker = _running(scene)
    scene.await_death(worker)


def a_start_of_a_long_run(scene: Scene) -> None:
    """The same, killed on the way to its start."""
    worker = scene.doomed()
    scene.arm()
    scene.submit(LONG)
    scene.await_death(worker)


def a_run_that_is_cancelled(scene: Scene) -> None:
    """An operator asks to cancel a running job."""
    worker = _running(scene, STUBBORN)
    _cancel(scene)
    scene.await_death(worker)


def a_worker_that_stops(scene: Scene) -> None:
    """A worker that was told to stop, and ends its running job."""
    worker = _running(scene)
    worker.process.send_signal(signal.SIGTERM)
    scene.await_death(worker)


def a_run_that_comes_again(scene: Scene) -> None:
    """A job whose first attempt fails."""
    worker = scene.doomed()
    scene.arm()
    scene.submit("flaky")
    scene.await_death(worker)


def a_run_that_fails_twice(scene: Scene) -> None:
    """A job whose last attempt fails."""
    worker = scene.doomed()
    job_id = scene.submit("fail")
    until(lambda: scene.post.row(job_id).attempt == 2, "the second attempt to come")
    scene.arm()
    scene.await_death(worker)


def a_busy_folder(scene: Scene) -> None:
    """A job that is put to sleep while another one works in its folder."""
    worker = _running(scene)
    assert scene.main is not None
    scene.submit("ok", local_of(scene.post.row(scene.main)).folder)
    scene.await_death(worker)


def a_boot(scene: Scene) -> None:
    """A worker that begins while a job waits."""
    scene.submit("ok")
    scene.await_death(scene.doomed(booting=True))


def a_leftover_that_ended(scene: Scene) -> None:
    """A worker that settles what another one left: a container that ended, and its directory."""
    _leave(scene, "before:Engine.remove", "ok")
    scene.await_idle()
    scene.await_death(scene.doomed(booting=True))


def a_leftover_that_runs(scene: Scene) -> None:
    """The same with a container that runs."""
    _leave(scene, "after:Engine.start", LONG)
    scene.await_death(scene.doomed(booting=True))


def a_leftover_unstarted(scene: Scene) -> None:
    """The same with a container that was only created."""
    _leave(scene, "before:Engine.start", "ok")
    scene.await_death(scene.doomed(booting=True))


def a_stray(scene: Scene) -> None:
    """The same with a container that ended and that no directory explains any more."""
    _leave(scene, "before:Engine.remove", "ok")
    scene.await_idle()
    for path in (scene.post.folder / "w1/jobs").glob("job-*"):
        shutil.rmtree(path)
    scene.await_death(scene.doomed(booting=True))


def a_lost_ticket(scene: Scene) -> None:
    """A worker whose sweep finds a job that has no ticket."""
    scene.submit("ok", announce=False)
    scene.await_death(scene.doomed(booting=True, limits={"unclaimed_s": 0.2}))


def a_lost_machine(scene: Scene) -> None:
    """A worker elsewhere whose first sweep finds a run whose lease ran out."""
    _leave(scene, "after:Engine.start", LONG)
    # Somebody keeps sweeping, or the worker would rest first; it finds nothing itself.
    limits = Limits(**{**QUICK, "sweep_rest_s": 3600})
    with closing(scene.redis()) as client:
        resting = JobStore(client, scene.post.prefix, limits)
        until(lambda: resting.sweep() and scene.lease_is_over(), "the lease to run out")
        worker = scene.doomed("w2", booting=True)
        until(lambda: resting.sweep() and worker.process.poll() is not None, "its end", PATIENCE_S)
    scene.await_death(worker)


def a_submitting_program(scene: Scene) -> None:
    """`pi-dispatch run`, killed."""
    scene.verb("run", str(scene.post.repository()), "--task", "Do as scripted.", "--model", "ok")


def a_cancelling_program(scene: Scene) -> None:
    """`pi-dispatch cancel` of a job that waits, killed."""
    scene.verb("cancel", scene.submit("ok"))


def a_revoked_ticket(scene: Scene) -> None:
    """A worker that is told by Flower to revoke a ticket which it holds for later."""
    worker = scene.doomed(limits={"unclaimed_s": 3600})
    scene.arm()
    job_id = scene.submit("ok", announce=False)
    publish(scene.post.producer(), scene.post.row(job_id).ticket, datetime.now(UTC) + timedelta(seconds=20))
    until(lambda: scene.post.fetched() == [job_id], "the worker to hold it")
    scene.post.producer().control.revoke(job_id)
    scene.await_death(worker)


def _running(scene: Scene, model: str = LONG) -> Worker:
    """The doomed worker, armed once its long job runs."""
    worker = scene.doomed()
    scene.post.await_starts(scene.submit(model))
    scene.arm()
    return worker


def _cancel(scene: Scene) -> None:
    assert scene.main is not None
    row = scene.post.row(scene.main)
    told = scene.post.store.cancel(row.id, cancelled_record(row.job, row, datetime.now(UTC), "operator"))
    assert told.status == "requested"


def _leave(scene: Scene, point: str, model: str) -> None:
    """An earlier worker is killed at `point`."""
    worker = scene.post.worker(kill=point)
    scene.submit(model)
    scene.await_death(worker)

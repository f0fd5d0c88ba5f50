"""Workers that are killed: what they left is settled by the next start, and nothing that was paid for is forgotten."""

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import docker
import pytest

from pidispatch.server.embedded import Embedded, Look
from pidispatch.workspace.atomic import TEMPORARY
from tests.support.box import OwnEngine, program_image
from tests.support.engine import await_running, left_of
from tests.support.program import RUN_S, How, Program, Ran, Stage, await_id, await_line
from tests.support.repository import Repository, git, make_repository
from tests.support.server import until


def record_of(stage: Stage, job_id: str) -> dict[str, Any]:
    """The one record that there is. Beside it may lie the place that a killed worker had kept for it."""
    logs = stage.home / ".pi-dispatch" / "logs"
    assert [name for name in os.listdir(logs) if not TEMPORARY.fullmatch(name)] == [f"{job_id}.json"]
    document: dict[str, Any] = json.loads((logs / f"{job_id}.json").read_text())
    return document


def test_a_killed_run_is_settled_by_the_next_worker(
    stage: Stage, repository: Repository, engine: docker.DockerClient
) -> None:
    with stage.worker() as killed, stage.waiting(repository.path, "sleepy") as process:
        job_id = await_id(process)
        await_line(process, "turn 1:")
        killed.kill()
        assert engine.containers.get(f"pi-job-{job_id}").attrs["State"]["Running"]
        with stage.worker() as worker:
            ran = worker.attended(process)

    assert (ran.code, ran.document["reason"]) == (1, "worker-lost"), ran
    [swept] = worker.events("swept_job")
    assert (swept["jobId"], swept["replaced"]) == (job_id, False)
    assert left_of(engine, f"pi-job-{job_id}") == []
    assert os.listdir(stage.home / "jobs") == [".gate"]
    record = record_of(stage, job_id)
    assert (record["outcome"], record["reason"], record["budgetReserved"]) == ("failed", "worker-lost", True)
    # What may have been paid for is not run again.
    assert (record["attempt"], stage.requests()) == (1, 1)
    assert stage.run_job(repository.path, "edit").code == 0
    assert stage.requests() == 1 + 3


def test_a_run_that_ended_while_nobody_watched_gets_its_true_record(
    stage: Stage, repository: Repository, engine: docker.DockerClient
) -> None:
    with stage.worker() as killed, stage.waiting(repository.path, "edit") as process:
        job_id = await_id(process)
        container = await_running(engine, f"pi-job-{job_id}")
        killed.kill()
        engine.containers.get(container).wait(timeout=60)
        with stage.worker() as worker:
            ran = worker.attended(process)

    assert (ran.code, ran.document["outcome"]) == (0, "completed"), ran
    record = record_of(stage, job_id)
    assert (record["outcome"], record["reason"], record["turns"]) == ("completed", None, 3), record
    assert left_of(engine, f"pi-job-{job_id}") == []
    assert stage.requests() == 3


def test_a_record_that_cannot_be_written_is_written_later(
    stage: Stage, repository: Repository, engine: docker.DockerClient
) -> None:
    """An agent can fill the disk, and an operator move a folder; a run that was paid for keeps its true end."""
    logs = stage.home / ".pi-dispatch" / "logs"
    with stage.worker() as worker, stage.waiting(repository.path, "sleepy") as process:
        job_id = await_id(process)
        await_line(process, "turn 1:")
        logs.rename(stage.home / "moved")
        logs.touch()
        assert worker.stop() == 0
        assert [event["jobId"] for event in worker.events("run_record_due")] == [job_id]
        out, err = process.communicate(timeout=RUN_S)
        ran = Ran(process.returncode, out, err)

    assert (ran.code, ran.document["reason"], ran.document["record"]) == (2, "worker-abort", None), ran
    assert "the record of this run is not written yet; a worker does so within minutes" in ran.err
    assert left_of(engine, f"pi-job-{job_id}") == []
    assert os.listdir(stage.home / "jobs") == [".gate"]
    logs.unlink()
    (stage.home / "moved").rename(logs)
    with stage.worker(How(limits={"sweep_every_s": 0.5, "unrecorded_s": 1.0})):
        until(lambda: (logs / f"{job_id}.json").exists(), "the record", RUN_S)
    record = record_of(stage, job_id)
    assert record == {key: ran.document[key] for key in record}


def test_the_folders_of_an_account_that_names_none(stage: Stage, repository: Repository) -> None:
    ran = stage.run_job(repository.path, "edit", PI_JOBS_DIR=None, PI_STATE_DIR=None)

    assert ran.code == 0, ran
    own = stage.home / ".pi-dispatch"
    assert sorted(os.listdir(own)) == ["deployment", "index.lock", "index.sqlite", "jobs", "locks", "logs", "server"]
    assert os.listdir(own / "jobs") == [".gate"]
    assert {oct(path.stat().st_mode & 0o777) for path in (own, *own.iterdir()) if path.is_dir()} == {"0o700"}
    # Whoever left last has ended it.
    assert Embedded(own).look() == Look(lives=False, used=False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_that_go_on_cost_no_record(stage: Stage, repository: Repository, number: signal.Signals) -> None:
    with stage.worker() as worker, stage.waiting(repository.path, "sleepy") as process:
        job_id = await_id(process)
        await_line(process, "turn 1:")
        ended = False
        while not ended:
            worker.process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.wait(0.01)
                ended = True
        process.communicate(timeout=30)

    assert record_of(stage, job_id)["reason"] == "worker-abort", worker.log
    assert os.listdir(stage.home / "jobs") == [".gate"]


#: Works until it is ended where the folder says so, and otherwise ends at once by itself.
STUB = """#!/bin/sh
echo at work
[ -e /workspace/long ] && sleep 600
echo '{"event":"exit","jobId":"x","code":0,"reason":"stop","turns":1}'
"""


def test_an_engine_that_stops_under_a_run(tmp_path: Path) -> None:
    """The run ends with a true word and a record; the folder waits until the engine is back and all is settled."""
    own = OwnEngine(tmp_path)
    with own as (client, holder):
        image = program_image(client, tmp_path, STUB)
        client.networks.create("out", internal=True)
        gate = client.containers.create(image, ["600"], name="gate", network="out", entrypoint="sleep")
        gate.start()
        repository = make_repository(tmp_path / "site", {"long": ""})
        home = tmp_path / "home"
        home.mkdir()
        program = Program(home, {"DOCKER_HOST": own.host, "PI_EGRESS_PROXY": "gate", "PI_JOB_IMAGE": image})
        with program.worker() as worker, program.waiting(repository.path) as process:
            await_running(client, f"pi-job-{await_id(process)}")
            os.kill(holder, signal.SIGKILL)
            lost = worker.attended(process)
        waiting = program.run_job(repository.path)
        own.stop()
        client, _holder = own.start()
        client.containers.get("gate").start()
        git(repository.path, "rm", "-q", "long")
        repository.commit()
        with program.worker() as next_worker:
            settled = program.run_job(repository.path)

        # Its second attempt finds the folder in the hands of the first, of which nobody knows whether it goes on.
        broken_off = lost.document["jobId"]
        [first] = lost.document["attempts"]
        assert (first["reason"], first["budgetReserved"]) == ("container-detached", True), lost
        assert (lost.code, lost.document["reason"], lost.document["cause"]) == (1, "infra", "unsettled"), lost
        assert (waiting.code, waiting.document["cause"]) == (1, "unsettled"), waiting
        assert f"the run {broken_off} in 'site' was broken off and is not settled" in waiting.document["why"]
        assert "start the worker anew" in waiting.document["remedy"]
        assert '"reaper_skipped"' in waiting.err
        assert (settled.code, settled.document["turns"]) == (0, 1), settled
        assert [event["jobId"] for event in next_worker.events("swept_job")] == [broken_off]
        assert left_of(client, "pi-job-") == []
        assert json.loads(Path(lost.document["record"]).read_text())["attempts"] == lost.document["attempts"]
        program.close()

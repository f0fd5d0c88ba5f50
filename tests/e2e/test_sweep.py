"""A program that is killed: what it left is settled by the next run, and nothing that was paid for is forgotten."""

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path

import docker

from tests.support.box import OwnEngine, program_image
from tests.support.engine import left_of
from tests.support.program import Program, Ran, Stage, await_line
from tests.support.repository import Repository, git, make_repository


def only_record(stage: Stage, but: str) -> dict[str, object]:
    """The one record beside that of the run `but`."""
    logs = stage.home / ".pi-dispatch" / "logs"
    [name] = [name for name in os.listdir(logs) if name != f"{but}.json"]
    document: dict[str, object] = json.loads((logs / name).read_text())
    return document


def test_a_killed_run_is_settled_by_the_next(
    stage: Stage, repository: Repository, engine: docker.DockerClient, tmp_path: Path
) -> None:
    killed = stage.start_job(repository.path, "sleepy")
    await_line(killed, "turn 1:")
    killed.kill()
    killed.communicate(timeout=30)
    [left] = [name for name in left_of(engine, "pi-job-local-") if not name.endswith("-net") and runs(engine, name)]

    ran = stage.run_job(repository.path, "edit")

    assert ran.code == 0, ran
    job_id = left.removeprefix("pi-job-")
    assert f"the earlier run {job_id} (local:site) was broken off; it is settled now" in ran.err
    assert left_of(engine, left) == []
    assert os.listdir(stage.home / "jobs") == [".gate"]
    record = only_record(stage, ran.document["jobId"])
    assert (record["jobId"], record["outcome"], record["reason"]) == (job_id, "failed", "worker-lost")
    assert record["budgetReserved"] is True
    assert stage.requests() == 1 + 3


def runs(engine: docker.DockerClient, name: str) -> bool:
    return bool(engine.containers.get(name).attrs["State"]["Running"])


def test_a_run_that_ended_while_nobody_watched_gets_its_true_record(
    stage: Stage, repository: Repository, engine: docker.DockerClient
) -> None:
    killed = stage.start_job(repository.path, "edit")
    await_line(killed, "turn 1:")
    killed.kill()
    killed.communicate(timeout=30)
    [left] = [one for one in left_of(engine, "pi-job-local-") if not one.endswith("-net")]
    engine.containers.get(left).wait(timeout=60)

    ran = stage.run_job(repository.path, "done", "--force")

    record = only_record(stage, ran.document["jobId"])
    assert (record["outcome"], record["reason"], record["turns"]) == ("completed", None, 3), record
    assert left_of(engine, left) == []


def test_a_record_that_cannot_be_written_is_written_by_the_next_start(
    stage: Stage, repository: Repository, engine: docker.DockerClient
) -> None:
    """An agent can fill the disk, and an operator move a folder; a run that was paid for keeps its true end."""
    logs = stage.home / ".pi-dispatch" / "logs"
    process = stage.start_job(repository.path, "sleepy")
    await_line(process, "turn 1:")
    logs.rename(stage.home / "moved")
    logs.touch()
    process.terminate()
    out, err = process.communicate(timeout=60)
    ran = Ran(process.returncode, out, err)

    assert (ran.code, ran.document["reason"], ran.document["record"]) == (2, "worker-abort", None), ran
    assert "the record of this run could not be written" in ran.err
    assert left_of(engine, f"pi-job-{ran.document['jobId']}") == []
    logs.unlink()
    (stage.home / "moved").rename(logs)
    other = stage.run_job(make_repository(stage.home / "other").path, "edit")
    assert other.code == 0, other
    record = only_record(stage, other.document["jobId"])
    known = {key: ran.document[key] for key in record}
    assert record | {"endedAt": None, "changed": None} == known | {"endedAt": None, "changed": None}
    assert os.listdir(stage.home / "jobs") == [".gate"]


def test_the_folders_of_an_account_that_names_none(stage: Stage, repository: Repository) -> None:
    ran = stage.run_job(repository.path, "edit", PI_JOBS_DIR=None, PI_STATE_DIR=None)

    assert ran.code == 0, ran
    own = stage.home / ".pi-dispatch"
    assert sorted(os.listdir(own)) == ["deployment", "jobs", "locks", "logs"]
    assert os.listdir(own / "jobs") == [".gate"]
    assert {oct(path.stat().st_mode & 0o777) for path in (own, *own.iterdir()) if path.is_dir()} == {"0o700"}


def test_signals_that_go_on_cost_no_record(stage: Stage, repository: Repository) -> None:
    process = stage.start_job(repository.path, "sleepy")
    await_line(process, "turn 1:")
    ended = False
    while not ended:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.01)
            ended = True
    process.communicate(timeout=30)

    [record] = (stage.home / ".pi-dispatch" / "logs").iterdir()
    assert json.loads(record.read_text())["reason"] == "worker-abort"
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
        process = program.start_job(repository.path)
        await_line(process, "started")
        os.kill(holder, signal.SIGKILL)
        out, err = process.communicate(timeout=60)
        lost = Ran(process.returncode, out, err)
        waiting = program.run_job(repository.path)
        own.stop()
        client, _holder = own.start()
        client.containers.get("gate").start()
        git(repository.path, "rm", "-q", "long")
        repository.commit()
        settled = program.run_job(repository.path)

        assert (lost.code, lost.document["reason"]) == (1, "container-detached"), lost
        assert "the next pi-dispatch run settles" in lost.document["remedy"]
        assert json.loads(Path(lost.document["record"]).read_text())["budgetReserved"] is True
        assert (waiting.code, waiting.document["cause"]) == (1, "unsettled"), waiting
        assert "was broken off and is not settled" in waiting.document["why"]
        assert f"the earlier run {lost.document['jobId']} was broken off and could not be settled" in waiting.err
        assert (settled.code, settled.document["turns"]) == (0, 1), settled
        assert f"the earlier run {lost.document['jobId']} (local:site) was broken off" in settled.err
        assert left_of(client, "pi-job-") == []
        assert json.loads(Path(lost.document["record"]).read_text())["reason"] == "container-detached"

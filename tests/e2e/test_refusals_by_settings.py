"""What a worker refuses before anything is spent, for its own settings, its engine, and what came meanwhile."""

import os

import docker
import pytest

from tests.support.program import Stage, await_line
from tests.support.refused import assert_refused
from tests.support.repository import Repository


def test_changes_that_come_while_the_job_waits(stage: Stage, repository: Repository) -> None:
    with stage.waiting(repository.path, "edit") as process:
        await_line(process, "waiting in pi-jobs")
        repository.write("notes.txt", "mine\n")
        with stage.worker() as worker:
            ran = worker.attended(process)
    record = assert_refused(stage, ran, "config-refused", "dirty-tree", "1 uncommitted", "notes.txt", "--force")
    assert os.listdir(stage.home / ".pi-dispatch" / "logs") == [f"{record['jobId']}.json"]


def test_a_logs_folder_that_is_none(stage: Stage, repository: Repository) -> None:
    """No run without a record: exit 1 before any container, and the one who waits is told that there is none."""
    (stage.home / "logs").write_text("")
    ran = stage.run_job(repository.path, "edit", PI_LOGS_DIR=str(stage.home / "logs"))
    assert (ran.code, ran.document["reason"], ran.document["cause"]) == (1, "infra", "logs-dir"), ran
    assert "PI_LOGS_DIR" in ran.document["why"]
    assert "with PI_LOGS_DIR" in ran.document["remedy"]
    assert ran.document["record"] is None
    assert "the record of this run is not written yet" in ran.err
    assert ran.document["exitCode"] is None
    assert stage.requests() == 0


def test_a_folder_around_what_steers_the_run(stage: Stage, repository: Repository) -> None:
    ran = stage.run_job(repository.path, "edit", PI_EGRESS_DIR=str(repository.path / "egress"))
    assert_refused(stage, ran, "config-refused", "folder-overlap", "'site' and PI_EGRESS_DIR=")


def test_no_credential(stage: Stage, repository: Repository) -> None:
    ran = stage.run_job(repository.path, "edit", ANTHROPIC_API_KEY=None)
    assert_refused(stage, ran, "provider-unconfigured", None, "anthropic", "export ANTHROPIC_API_KEY")


def test_no_proxy(stage: Stage, repository: Repository) -> None:
    ran = stage.run_job(repository.path, "edit", PI_EGRESS_PROXY="nobody")
    assert_refused(stage, ran, "egress-proxy-missing", None, "'nobody'", "PI_EGRESS_PROXY")


def test_a_stopped_proxy(stage: Stage, repository: Repository, engine: docker.DockerClient, probe_image: str) -> None:
    stopped = engine.containers.create(probe_image, name="pi-test-stopped-proxy", network="none")
    try:
        ran = stage.run_job(repository.path, "edit", PI_EGRESS_PROXY="pi-test-stopped-proxy")
    finally:
        stopped.remove(force=True)
    assert_refused(stage, ran, "egress-proxy-stopped", None, "docker start pi-test-stopped-proxy")


def test_an_overlay_with_more_than_a_model_list(stage: Stage, repository: Repository) -> None:
    (stage.overlay / "extensions").mkdir()
    ran = stage.run_job(repository.path, "edit")
    assert_refused(stage, ran, "config-refused", "overlay-not-served", "'extensions'")


@pytest.mark.example("ch3 E5", "an engine that does not answer is a fault and no refusal; nothing is reserved")
def test_an_engine_that_does_not_answer(stage: Stage, repository: Repository) -> None:
    ran = stage.run_job(repository.path, "edit", DOCKER_HOST=f"unix://{stage.home}/nowhere.sock")
    assert_refused(stage, ran, "container-never-started", None, "nowhere.sock", "docker info", code=1)

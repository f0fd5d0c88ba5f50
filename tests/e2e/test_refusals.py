"""What is refused before anything is spent: reason, remedy, exit code, and no request at the model."""

import os
from pathlib import Path

import docker
import pytest

from tests.support.program import Ran, Stage
from tests.support.repository import Repository, git, give


def assert_refused(stage: Stage, ran: Ran, reason: str, cause: str | None, *words: str, code: int = 2) -> None:
    document = ran.document
    assert (ran.code, document["reason"], document["cause"]) == (code, reason, cause), ran
    said = f"{document['why']} {document['remedy']}"
    assert all(word in said for word in words), said
    assert document["exitCode"] is None
    assert document["tokens"] is None
    assert stage.requests() == 0
    assert "started" not in ran.err


def test_a_missing_folder(stage: Stage) -> None:
    ran = stage.run_job(stage.home / "nowhere", "edit")
    assert_refused(stage, ran, "config-refused", "folder-missing", "nowhere", "does not exist")
    assert str(stage.home) not in ran.document["why"]


def test_a_folder_without_git(stage: Stage) -> None:
    ran = stage.run_job(stage.home, "edit")
    assert_refused(stage, ran, "config-refused", "folder-not-git", "git init")


def test_a_repository_without_a_commit(stage: Stage, tmp_path: Path) -> None:
    folder = tmp_path / "unborn"
    folder.mkdir()
    git(folder, "init", "-q")
    give(folder)
    assert_refused(stage, stage.run_job(folder, "edit"), "local-folder-no-commit", "no-commit", "git commit")


def test_a_linked_worktree(stage: Stage, repository: Repository, tmp_path: Path) -> None:
    git(repository.path, "worktree", "add", "-q", str(tmp_path / "linked"))
    give(tmp_path / "linked")
    assert_refused(stage, stage.run_job(tmp_path / "linked", "edit"), "config-refused", "worktree", "git clone")


def test_a_folder_that_belongs_to_root(stage: Stage, repository: Repository) -> None:
    if os.geteuid() != 0:
        pytest.fail("this row needs root: run the tests as root, as CI does")
    os.chown(repository.path, 0, 0)
    ran = stage.run_job(repository.path, "edit")
    assert_refused(stage, ran, "job-user-unmappable", "folder-owned-by-root", "chown")


def test_an_image_that_is_not_there(stage: Stage, repository: Repository) -> None:
    ran = stage.run_job(repository.path, "edit", "--image", "pi-job:nowhere")
    assert_refused(stage, ran, "job-image-missing", None, "pi-job:nowhere", "pi-dispatch image build")


def test_an_image_that_runs_as_its_own_user_only(stage: Stage, repository: Repository, probe_image: str) -> None:
    ran = stage.run_job(repository.path, "edit", "--image", probe_image)
    assert_refused(stage, ran, "job-image-any-uid-unsupported", None, "anyUid")


def test_no_credential(stage: Stage, repository: Repository) -> None:
    ran = stage.run_job(repository.path, "edit", ANTHROPIC_API_KEY=None)
    assert_refused(stage, ran, "provider-unconfigured", None, "anthropic", "export ANTHROPIC_API_KEY")


def test_a_provider_nobody_knows(stage: Stage, repository: Repository) -> None:
    ran = stage.run_job(repository.path, "edit", "--provider", "acme")
    assert_refused(stage, ran, "provider-unconfigured", None, "'acme'", "use one of")


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


def test_an_engine_that_does_not_answer(stage: Stage, repository: Repository) -> None:
    ran = stage.run_job(repository.path, "edit", DOCKER_HOST=f"unix://{stage.home}/nowhere.sock")

    assert_refused(stage, ran, "container-never-started", None, "nowhere.sock", "docker info", code=1)
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PI_MAX_TURNS", "03"),
        ("PI_MAX_TOKENS", "0"),
        ("PI_EGRESS", "yes"),
        ("PI_JOBS_DIR", ""),
        ("PI_GLOBAL_PI_DIR", "/nowhere/at/all"),
        ("PI_FORWARD_ENV", "HTTPS_PROXY"),
    ],
)
def test_a_malformed_setting_names_itself(stage: Stage, repository: Repository, variable: str, value: str) -> None:
    ran = stage.run_job(repository.path, "edit", **{variable: value})

    assert ran.code == 2
    assert variable in ran.err
    assert value in ran.err
    assert "Traceback" not in ran.err
    assert stage.requests() == 0


@pytest.mark.parametrize("arguments", [(), ("--task", " "), ("--task", "x", "--max-turns", "0x3"), ("--tusk", "x")])
def test_a_wrong_call_is_a_usage_error(stage: Stage, repository: Repository, arguments: tuple[str, ...]) -> None:
    ran = stage.run("run", str(repository.path), *arguments)

    assert ran.code == 1
    assert "Usage:" in ran.err


def test_a_workspace_that_the_job_may_not_write(stage: Stage, repository: Repository) -> None:
    if os.geteuid() != 0:
        pytest.fail("this row needs root: run the tests as root, as CI does")
    os.chown(repository.path, 1234, 1234)
    os.chmod(repository.path, 0o555)
    ran = stage.run_job(repository.path, "edit")

    assert (ran.code, ran.document["reason"]) == (2, "workspace-not-writable"), ran
    assert stage.requests() == 0

"""What is refused before anything is spent: reason, remedy, exit code, and no request at the model."""

import json
import os
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.support.box import program_image
from tests.support.engine import left_of
from tests.support.program import Ran, Stage, await_line
from tests.support.repository import Repository, git, give


def assert_refused(stage: Stage, ran: Ran, reason: str, cause: str | None, *words: str, code: int = 2) -> None:
    document = ran.document
    assert (ran.code, document["reason"], document["cause"]) == (code, reason, cause), ran
    said = f"{document['why']} {document['remedy']}"
    assert all(word in said for word in words), said
    assert document["exitCode"] is None
    assert document["tokens"] is None
    assert stage.requests() == 0
    assert "container pi-job" not in ran.err
    assert_recorded(stage, document)


def assert_recorded(stage: Stage, document: dict[str, Any]) -> None:
    """The record of the run says what the run said, and nothing was spent."""
    record = json.loads(Path(document["record"]).read_text())
    assert record == {key: document[key] for key in record}
    assert (record["turns"], record["usage"], record["gitRestored"]) == (None, None, None)
    assert record["budgetReserved"] is False
    assert os.listdir(stage.home / ".pi-dispatch" / "logs") == [f"{record['jobId']}.json"]


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


def test_uncommitted_changes(stage: Stage, repository: Repository) -> None:
    repository.write("notes.txt", "mine\n")
    repository.write("README.md", "# Mine\n")
    ran = stage.run_job(repository.path, "edit")
    assert_refused(stage, ran, "config-refused", "dirty-tree", "2 uncommitted", "notes.txt", "README.md", "--force")

    forced = stage.run_job(repository.path, "edit", "--force")
    assert (forced.code, forced.document["outcome"]) == (0, "completed")
    assert forced.document["change"]["dirtyBefore"] is True


def test_a_flow_that_the_commit_does_not_hold(stage: Stage, repository: Repository) -> None:
    repository.write(".pi/skills/tidy/SKILL.md", "---\nname: tidy\ndescription: Tidies.\n---\nTidy.\n")
    repository.commit()
    ran = stage.run_job(repository.path, "edit", "--flow", "fix")
    assert_refused(stage, ran, "config-refused", "flow-missing", ".pi/skills/fix/SKILL.md", "it holds: tidy")


def test_a_pi_folder_that_is_too_much(stage: Stage, repository: Repository) -> None:
    for number in range(257):
        (repository.path / f".pi/skills/s{number // 64}").mkdir(parents=True, exist_ok=True)
        (repository.path / f".pi/skills/s{number // 64}/SKILL.md").write_text("x")
        (repository.path / f".pi/skills/s{number // 64}/f{number}.md").write_text("x")
    repository.commit()
    assert_refused(stage, stage.run_job(repository.path, "edit"), "pi-too-many-files", None, ".pi")


def test_a_logs_folder_that_is_none(stage: Stage, repository: Repository) -> None:
    """No run without a record: exit 1 before any container, and the one place that could tell of it says so."""
    (stage.home / "logs").write_text("")
    ran = stage.run_job(repository.path, "edit", PI_LOGS_DIR=str(stage.home / "logs"))
    assert (ran.code, ran.document["reason"], ran.document["cause"]) == (1, "infra", "logs-dir")
    assert "PI_LOGS_DIR" in ran.document["why"]
    assert "with PI_LOGS_DIR" in ran.document["remedy"]
    assert ran.document["record"] is None
    assert ran.document["exitCode"] is None
    assert "checked" not in ran.err
    assert stage.requests() == 0


def test_a_folder_around_what_steers_the_run(stage: Stage, repository: Repository) -> None:
    ran = stage.run_job(repository.path, "edit", PI_EGRESS_DIR=str(repository.path / "egress"))
    assert_refused(stage, ran, "config-refused", "folder-overlap", "'site' and PI_EGRESS_DIR=")


def test_a_second_run_in_the_same_folder(stage: Stage, repository: Repository) -> None:
    first = stage.start_job(repository.path, "sleepy")
    try:
        await_line(first, "turn 1:")
        second = stage.run_job(repository.path, "edit")
        assert (second.code, second.document["reason"], second.document["cause"]) == (1, "infra", "folder-busy")
        assert "another run works in 'site'" in second.document["why"]
        assert second.document["remedy"] == "Wait for its end, then run again."
        assert stage.requests() == 1
        assert json.loads(Path(second.document["record"]).read_text())["cause"] == "folder-busy"
    finally:
        first.terminate()
        out, err = first.communicate(timeout=30)
    assert json.loads(out)["reason"] == "worker-abort", err
    assert stage.run_job(repository.path, "edit").code == 0


def test_a_cap_that_nothing_enforces(stage: Stage, repository: Repository) -> None:
    ran = stage.run_job(repository.path, "edit", PI_DAILY_CAP="5")
    assert ran.code == 2
    assert "PI_DAILY_CAP is set" in ran.err
    assert "unset PI_DAILY_CAP" in ran.err
    assert stage.requests() == 0


@pytest.mark.example("ch3 E24", "a container that cannot start: infra, nothing counted as spent, network removed")
def test_a_container_that_cannot_start(
    stage: Stage, repository: Repository, engine: docker.DockerClient, tmp_path: Path
) -> None:
    # Nothing may be mounted inside of /proc, which the engine finds out when it starts the container.
    image = program_image(engine, tmp_path, "#!/bin/sh\n", more="RUN rm -rf /tmp && ln -s /proc /tmp")
    try:
        ran = stage.run_job(repository.path, "edit", "--image", image)
    finally:
        engine.images.remove(image, force=True)
    assert_refused(stage, ran, "container-never-started", None, code=1)
    assert left_of(engine, f"pi-job-{ran.document['jobId']}") == []


def test_a_folder_that_belongs_to_root(stage: Stage, repository: Repository) -> None:
    if os.geteuid() != 0:
        pytest.fail("this row needs root: run the tests as root, as CI does")
    os.chown(repository.path, 0, 0)
    ran = stage.run_job(repository.path, "edit")
    assert_refused(stage, ran, "job-user-unmappable", "folder-owned-by-root", "chown")


@pytest.mark.example("ch3 E5", "an absent image is refused before anything is made or spent, and is not pulled")
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


@pytest.mark.example("ch3 E5", "an engine that does not answer is a fault and no refusal; nothing is reserved")
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
    assert "Give the folder to" in ran.document["remedy"]
    assert json.loads(Path(ran.document["record"]).read_text())["reason"] == "workspace-not-writable"
    assert stage.requests() == 0

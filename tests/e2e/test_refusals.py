"""What is refused before anything is spent, for what the folder or the job is: by `run` itself, or by its worker."""

import json
import os
from pathlib import Path

import docker
import pytest

from tests.support.box import program_image
from tests.support.engine import left_of
from tests.support.program import REAL, RUN_S, Stage, await_id, await_line, job
from tests.support.refused import assert_refused, assert_turned_away
from tests.support.repository import Repository, git, give
from tests.support.server import until


@pytest.fixture
def served(staffed: Stage) -> Stage:
    """The stage of this file with its worker; what it asks of the model counts from here on."""
    staffed.forget()
    return staffed


VERBS = pytest.mark.parametrize("verb", [("run", ".", "--task", "x"), REAL[1:]], ids=["run", "worker"])


# Refused by `run`, which needs neither a worker nor a server for it.


def unborn(folder: Path) -> None:
    git(folder, "init", "-q")
    give(folder)


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("folder-missing", ("'site'", "does not exist")),
        ("folder-not-git", ("git init",)),
        ("no-commit", ("git commit",)),
    ],
)
def test_a_folder_that_no_job_can_work_in(stage: Stage, cause: str, words: tuple[str, ...]) -> None:
    folder = stage.home / "site"
    if cause != "folder-missing":
        folder.mkdir()
    if cause == "no-commit":
        unborn(folder)
    ran = stage.run("run", str(folder), *job("edit"), "--json")

    assert_turned_away(stage, ran, cause, *words)
    assert str(stage.home) not in ran.document["why"]


def test_a_linked_worktree(stage: Stage, repository: Repository, tmp_path: Path) -> None:
    git(repository.path, "worktree", "add", "-q", str(tmp_path / "linked"))
    give(tmp_path / "linked")
    ran = stage.run("run", str(tmp_path / "linked"), *job("edit"), "--json")
    assert_turned_away(stage, ran, "worktree", "git clone")


def test_uncommitted_changes(stage: Stage, repository: Repository) -> None:
    repository.write("notes.txt", "mine\n")
    repository.write("README.md", "# Mine\n")
    ran = stage.run("run", str(repository.path), *job("edit"), "--json")
    assert_turned_away(stage, ran, "dirty-tree", "2 uncommitted", "notes.txt", "README.md", "--force")


@VERBS
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
def test_a_setting_that_cannot_be_served_names_itself(
    stage: Stage, verb: tuple[str, ...], variable: str, value: str
) -> None:
    ran = stage.run(*verb, **{variable: value})

    assert ran.code == 2
    assert variable in ran.err
    assert value in ran.err
    assert "Traceback" not in ran.err
    assert stage.requests() == 0


@VERBS
def test_a_cap_that_nothing_enforces(stage: Stage, verb: tuple[str, ...]) -> None:
    ran = stage.run(*verb, PI_DAILY_COST_USD="5")
    assert ran.code == 2
    assert "PI_DAILY_COST_USD is set" in ran.err
    assert "unset PI_DAILY_COST_USD" in ran.err


@pytest.mark.parametrize("arguments", [(), ("--task", " "), ("--task", "x", "--max-turns", "0x3"), ("--tusk", "x")])
def test_a_wrong_call_is_a_usage_error(stage: Stage, repository: Repository, arguments: tuple[str, ...]) -> None:
    ran = stage.run("run", str(repository.path), *arguments)

    assert ran.code == 1
    assert "Usage:" in ran.err


# Refused by the worker that takes the job.


def test_changes_that_are_forced(served: Stage, repository: Repository) -> None:
    repository.write("notes.txt", "mine\n")
    ran = served.run_job(repository.path, "edit", "--force")
    assert (ran.code, ran.document["outcome"]) == (0, "completed")
    assert ran.document["change"]["dirtyBefore"] is True


def test_a_flow_that_the_commit_does_not_hold(served: Stage, repository: Repository) -> None:
    repository.write(".pi/skills/tidy/SKILL.md", "---\nname: tidy\ndescription: Tidies.\n---\nTidy.\n")
    repository.commit()
    ran = served.run_job(repository.path, "edit", "--flow", "fix")
    assert_refused(served, ran, "config-refused", "flow-missing", ".pi/skills/fix/SKILL.md", "it holds: tidy")


def test_a_pi_folder_that_is_too_much(served: Stage, repository: Repository) -> None:
    for number in range(257):
        (repository.path / f".pi/skills/s{number // 64}").mkdir(parents=True, exist_ok=True)
        (repository.path / f".pi/skills/s{number // 64}/SKILL.md").write_text("x")
        (repository.path / f".pi/skills/s{number // 64}/f{number}.md").write_text("x")
    repository.commit()
    assert_refused(served, served.run_job(repository.path, "edit"), "pi-too-many-files", None, ".pi")


def test_a_second_job_in_the_same_folder_waits_for_the_first(served: Stage, repository: Repository) -> None:
    """A busy folder is no failure, however often it is met: nothing is counted, and the job runs once it is free."""
    worker = served.at_work[0]
    with served.waiting(repository.path, "sleepy") as first:
        first_id = await_id(first)
        await_line(first, "turn 1:")
        with served.waiting(repository.path, "edit") as second:
            await_line(second, "another job works in the same folder")
            # More often than Celery would let a task try again by itself.
            until(lambda: len(worker.events("scope_busy_deferred")) > 4, "five looks at the folder", RUN_S)
            assert served.requests() == 1
            assert served.run("cancel", first_id).code == 0
            ended = worker.attended(first)
            ran = worker.attended(second)

    assert (ended.code, ended.document["reason"]) == (2, "operator-cancel"), ended
    assert (ran.code, ran.document["outcome"]) == (0, "completed"), ran
    assert (ran.document["attempt"], ran.document["attempts"]) == (1, [])
    # Nor was a ticket lost and found again.
    assert worker.events("ticket_published_again") == []


@pytest.mark.example("ch3 E24", "a container that cannot start: infra, nothing counted as spent, network removed")
def test_a_container_that_cannot_start(
    served: Stage, repository: Repository, engine: docker.DockerClient, tmp_path: Path
) -> None:
    # Nothing may be mounted inside of /proc, which the engine finds out when it starts the container.
    image = program_image(engine, tmp_path, "#!/bin/sh\n", more="RUN rm -rf /tmp && ln -s /proc /tmp")
    try:
        ran = served.run_job(repository.path, "edit", "--image", image)
    finally:
        engine.images.remove(image, force=True)
    record = assert_refused(served, ran, "container-never-started", None, code=1)
    assert [one["reason"] for one in record["attempts"]] == ["container-never-started"]
    assert left_of(engine, f"pi-job-{record['jobId']}") == []


def test_a_folder_that_belongs_to_root(served: Stage, repository: Repository) -> None:
    if os.geteuid() != 0:
        pytest.fail("this row needs root: run the tests as root, as CI does")
    os.chown(repository.path, 0, 0)
    ran = served.run_job(repository.path, "edit")
    assert_refused(served, ran, "job-user-unmappable", "folder-owned-by-root", "chown")


@pytest.mark.example("ch3 E5", "an absent image is refused before anything is made or spent, and is not pulled")
def test_an_image_that_is_not_there(served: Stage, repository: Repository) -> None:
    ran = served.run_job(repository.path, "edit", "--image", "pi-job:nowhere")
    assert_refused(served, ran, "job-image-missing", None, "pi-job:nowhere", "pi-dispatch image build")


def test_an_image_that_runs_as_its_own_user_only(served: Stage, repository: Repository, probe_image: str) -> None:
    ran = served.run_job(repository.path, "edit", "--image", probe_image)
    assert_refused(served, ran, "job-image-any-uid-unsupported", None, "anyUid")


def test_a_provider_nobody_knows(served: Stage, repository: Repository) -> None:
    ran = served.run_job(repository.path, "edit", "--provider", "acme")
    assert_refused(served, ran, "provider-unconfigured", None, "'acme'", "use one of")


def test_a_workspace_that_the_job_may_not_write(served: Stage, repository: Repository) -> None:
    if os.geteuid() != 0:
        pytest.fail("this row needs root: run the tests as root, as CI does")
    os.chown(repository.path, 1234, 1234)
    os.chmod(repository.path, 0o555)
    ran = served.run_job(repository.path, "edit")

    assert (ran.code, ran.document["reason"]) == (2, "workspace-not-writable"), ran
    assert "Give the folder to" in ran.document["remedy"]
    assert json.loads(Path(ran.document["record"]).read_text())["reason"] == "workspace-not-writable"
    assert served.requests() == 0

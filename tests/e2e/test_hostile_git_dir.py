"""Git directories that lead git elsewhere, and runs that the engine ends: the rows that need a run of their own."""

import json
from pathlib import Path

import docker
import pytest

from tests.support.hostile import Hostile, run_in, start_until
from tests.support.program import Ran, Stage
from tests.support.repository import Repository
from tests.support.terminal import as_user
from tests.support.traps import ALTERNATES, COMMONDIR, DEAD, FILTERS, GITFILE, HOOKS, PROGRAMS, PROMISORS, plant, spring

_TASK = ("--task", "Do as scripted.", "--json")


@pytest.fixture
def hostile(request: pytest.FixtureRequest, repository: Repository) -> Hostile:
    """A folder for the one trap of the test, beside objects that are none of its own."""
    base = repository.path.parent / "hostile"
    made = Hostile.make(base, (request.param,))
    as_user(
        repository.path, f"echo elsewhere | git hash-object -w --stdin; cp -r .git/objects {made.marks}", check=True
    )
    return made


@pytest.mark.parametrize(
    ("hostile", "cause"),
    [
        (COMMONDIR, "worktree"),
        (GITFILE, "worktree"),
        (ALTERNATES, "worktree"),
        (PROMISORS[1], "git-failed"),
        (PROMISORS[2], "git-unusable"),
    ],
    indirect=["hostile"],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_folder_that_leads_git_elsewhere_is_refused_and_runs_nothing(
    hostile: Hostile, cause: str, stage: Stage
) -> None:
    [trap] = hostile.traps
    hostile.plant()

    inside = run_in(hostile.path, stage, "run", ".", "--model", "say", *_TASK)
    pointed_at = run_in(stage.home, stage, "run", str(hostile.path), "--force", "--model", "say", *_TASK)

    assert hostile.fired() == set()
    assert [ran.document["cause"] for ran in (inside, pointed_at)] == [cause, cause], (inside, pointed_at)
    assert stage.requests() == 0
    assert spring(trap, hostile.path, hostile.marks), "the trap would not have sprung for anyone"


@pytest.mark.parametrize("hostile", [DEAD[0], DEAD[3]], indirect=True, ids=lambda trap: trap.name)
def test_a_git_directory_that_an_agent_ends_is_made_good(hostile: Hostile, stage: Stage) -> None:
    [trap] = hostile.traps
    ran = stage.run_job(hostile.path, "plant")

    assert (ran.code, (hostile.path / ".planted").exists()) == (0, True), ran
    assert hostile.fired() == set()
    assert ran.document["restored"] == list(trap.guarded)
    assert not spring(trap, hostile.path, hostile.marks)
    plant(trap, hostile.path, hostile.marks)
    assert spring(trap, hostile.path, hostile.marks), "the trap would not have sprung for anyone"


@pytest.mark.parametrize("hostile", [GITFILE], indirect=True, ids=lambda trap: trap.name)
def test_a_git_file_that_an_agent_leaves_is_taken_away_and_said(hostile: Hostile, stage: Stage) -> None:
    guarded = hostile.guarded()
    ran = stage.run("run", str(hostile.path), "--task", "Go.", "--model", "plant")

    assert hostile.fired() == set()
    assert (ran.code, (hostile.path / ".planted").exists()) == (0, True), ran
    assert "PUT BACK   the run had changed 1 file(s)" in ran.out
    assert "\n           .git\n" in ran.out
    [kept] = (stage.home / "jobs").glob("kept-*")
    assert f"the run's versions are kept in {kept}" in ran.out
    assert (kept / ".git.replaced").read_text() == "gitdir: .other\n"
    assert hostile.guarded() == guarded
    assert not spring(GITFILE, hostile.path, hostile.marks)
    plant(GITFILE, hostile.path, hostile.marks)
    assert spring(GITFILE, hostile.path, hostile.marks), "the trap would not have sprung for anyone"


@pytest.mark.parametrize("hostile", [GITFILE, DEAD[1]], indirect=True, ids=lambda trap: trap.name)
def test_a_git_directory_that_an_agent_took_away_is_made_good_after_kill_9(
    hostile: Hostile, stage: Stage, repository: Repository
) -> None:
    [trap] = hostile.traps
    process, _container = start_until(stage, hostile.path, "plantandsleep", "turn 2:")
    process.kill()
    process.communicate(timeout=30)
    ran = stage.run_job(repository.path, "say")

    assert ran.code == 0, ran
    assert "was broken off; it is settled now; put back in its git directory: " in ran.err
    assert hostile.fired() == set()
    assert not spring(trap, hostile.path, hostile.marks)
    plant(trap, hostile.path, hostile.marks)
    assert spring(trap, hostile.path, hostile.marks), "the trap would not have sprung for anyone"


@pytest.mark.parametrize("hostile", [ALTERNATES], indirect=True, ids=lambda trap: trap.name)
def test_objects_elsewhere_that_an_agent_names_are_not_read(hostile: Hostile, stage: Stage) -> None:
    ran = stage.run_job(hostile.path, "plant")

    assert (ran.code, (hostile.path / ".planted").exists()) == (0, True), ran
    assert hostile.fired() == set()
    assert (ran.document["change"], ran.document["diff"]) == (None, None)
    assert "borrows objects of another" in ran.document["changeError"]
    assert spring(ALTERNATES, hostile.path, hostile.marks), "the trap would not have sprung for anyone"


def test_what_an_agent_planted_is_taken_away_where_the_engine_kills_it(
    stage: Stage, repository: Repository, engine: docker.DockerClient
) -> None:
    chosen = (PROGRAMS[0], *FILTERS[:2], *HOOKS[-4:])
    hostile = Hostile.make(repository.path.parent / "hostile", chosen)
    guarded = hostile.guarded()
    process, container = start_until(stage, hostile.path, "plantandsleep", "turn 2:")
    assert hostile.guarded() != guarded
    engine.containers.get(container).kill("SIGKILL")
    out, err = process.communicate(timeout=60)
    ran = Ran(process.returncode, out, err)

    assert hostile.fired() == set()
    document = ran.document
    assert (ran.code, document["outcome"], document["reason"], document["cause"]) == (1, "failed", "infra", "exit-137")
    assert {name for trap in chosen for name in trap.guarded} <= set(document["restored"])
    assert document["gitRestored"] == len(document["restored"])
    assert json.loads(Path(document["record"]).read_text())["gitRestored"] == document["gitRestored"]
    assert hostile.guarded() == guarded
    assert not any(spring(trap, hostile.path, hostile.marks) for trap in chosen)

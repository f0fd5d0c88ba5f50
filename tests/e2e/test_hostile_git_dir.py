"""Git directories that lead git elsewhere, and runs that the engine ends: the rows that need a run of their own."""

import json
from pathlib import Path

import docker
import pytest

from tests.support.engine import await_running
from tests.support.hostile import Hostile, planted, run_in, worker_in
from tests.support.program import RUN_S, How, Stage, job
from tests.support.repository import Repository
from tests.support.server import until
from tests.support.terminal import as_user
from tests.support.traps import ALTERNATES, COMMONDIR, DEAD, FILTERS, GITFILE, HOOKS, PROGRAMS, PROMISORS, plant, spring


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

    inside = run_in(hostile.path, stage, "run", ".", *job("say"), "--json")
    pointed_at = run_in(stage.home, stage, "run", str(hostile.path), "--force", *job("say"), "--json")

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
    with stage.worker():
        ran = stage.run("run", str(hostile.path), *job("plant"), "--wait")

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
def test_a_git_directory_that_an_agent_took_away_is_made_good_after_kill_9(hostile: Hostile, stage: Stage) -> None:
    [trap] = hostile.traps
    with planted(stage, hostile, How()) as (worker, process, _job_id):
        worker.kill()
        with worker_in(hostile.path, stage) as settling:
            ran = settling.attended(process)

    assert (ran.code, ran.document["reason"]) == (1, "worker-lost"), ran
    assert [event["entries"] for event in settling.events("swept_job")] == [ran.document["gitRestored"]]
    assert ran.document["gitRestored"] > 0
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
    with planted(stage, hostile, How()) as (worker, process, job_id):
        assert hostile.guarded() != guarded
        first = await_running(engine, f"pi-job-{job_id}")
        engine.api.kill(first, "SIGKILL")
        until(lambda: worker.events("git_restored"), "the first attempt's end", RUN_S)
        assert hostile.guarded() == guarded
        # A run that the surroundings end is tried again, and the agent plants again.
        second = until(lambda: running(engine, job_id, but=first), "the second attempt", RUN_S)
        until(lambda: hostile.guarded() != guarded, "the agent to plant again", RUN_S)
        engine.api.kill(second, "SIGKILL")
        ran = worker.attended(process)

    assert hostile.fired() == set()
    document = ran.document
    assert (ran.code, document["outcome"], document["reason"], document["cause"]) == (1, "failed", "infra", "exit-137")
    assert [(one["reason"], one["cause"]) for one in document["attempts"]] == [("infra", "exit-137")]
    assert document["gitRestored"] >= len(document["restored"]) > 0
    assert json.loads(Path(document["record"]).read_text())["gitRestored"] == document["gitRestored"]
    kept = stage.home / "jobs" / f"kept-{job_id}"
    names = {name for trap in chosen for name in trap.guarded}
    assert names <= {str(path.relative_to(kept)) for path in kept.rglob("*") if path.is_file()}
    assert hostile.guarded() == guarded
    assert not any(spring(trap, hostile.path, hostile.marks) for trap in chosen)


def running(engine: docker.DockerClient, job_id: str, but: str) -> str | None:
    """The running container of a job that is not the one of before."""
    found = engine.api.containers(filters={"name": f"^/pi-job-{job_id}$", "status": "running"})
    return next((str(one["Id"]) for one in found if one["Id"] != but), None)

"""Jobs of a forge at their bounds: a cap, no webhook, a worker that is killed, and where credentials are not."""

import os
import secrets as names
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from tests.e2e.forge.conftest import RULES
from tests.fakes.github.apps import private_key
from tests.fakes.github.edge import Edge
from tests.fakes.github.faults import Fault
from tests.support.forge import FILES, Forge, deployed
from tests.support.model import ModelContainer
from tests.support.program import RUN_S, How
from tests.support.repository import make_repository
from tests.support.server import until

#: A job whose worker is gone is taken up again within seconds.
SOON = How(limits={"lease_s": 3, "renew_every_s": 1, "sweep_every_s": 0.5, "sweep_rest_s": 0})


@pytest.fixture
def fresh(tmp_path: Path, edge_job: str, model: ModelContainer) -> Iterator[Forge]:
    """A deployment of this test's own."""
    with deployed(tmp_path, edge_job, model, RULES) as made:
        yield made


def test_over_the_cap_there_is_one_comment_and_no_container(fresh: Forge, engine: docker.DockerClient) -> None:
    repo = fresh.repository()
    with fresh.worker(PI_DAILY_CAP="1"), fresh.receiver():
        for _ in range(2):
            number = fresh.edge.issue(repo).number
            fresh.edge.label(number, "pi:fix", repo)
            record = fresh.record(f"{repo}#{number}")
        requests = fresh.stage.requests()
        said = fresh.comments(repo, number)
    assert (record.outcome, record.reason, record.exit_code) == ("policy", "over-budget", None)
    [told] = said
    assert "All 1 runs of this day are used up" in told
    assert "PI_DAILY_CAP" in told
    # Those of the first job alone.
    assert requests == 2
    assert not engine.containers.list(all=True, filters={"name": f"pi-job-{record.job_id}"})


def test_a_poller_does_what_a_webhook_does_and_goes_on_where_it_was(fresh: Forge) -> None:
    repo = fresh.repository()
    fresh.edge.issue(repo)
    fresh.edge.label(1, "pi:fix", repo)
    poll = {"POLL_REPOS": repo, "POLL_INTERVAL_SECONDS": "30"}
    with fresh.worker():
        with fresh.receiver("poll", **poll) as poller:
            until(lambda: poller.events("poll_began"), "the first look", RUN_S)
        # What was there before is not taken, what comes while nobody polls is.
        fresh.edge.issue(repo)
        fresh.edge.label(2, "pi:fix", repo)
        with fresh.receiver("poll", **poll):
            record = fresh.record(f"{repo}#2")
    assert record.outcome == "completed"
    assert record.job_id.startswith("gh-poll-e")
    assert [pull.head for pull in fresh.edge.pulls(repo)] == ["pi/issue-2"]


def test_a_worker_that_is_killed_while_it_clones_loses_no_job_and_pays_for_none_twice(fresh: Forge) -> None:
    repo = fresh.repository()
    fresh.edge.issue(repo)
    fresh.edge.fault(f"/{repo}.git/", Fault.SLOW)
    with fresh.receiver():
        with fresh.worker(SOON) as doomed:
            fresh.edge.label(1, "pi:fix", repo)
            until(lambda: [path for path in fresh.edge.paths() if f"{repo}.git" in path], "the clone", RUN_S)
            doomed.kill()
        fresh.edge.mend()
        with fresh.worker(SOON):
            record = fresh.record(f"{repo}#1")
    assert (record.outcome, record.attempt, record.attempts) == ("completed", 1, ())
    assert fresh.edge.branches(repo) == ["main", "pi/issue-1"]
    assert not list((fresh.stage.home / "jobs").glob("job-*"))


def test_a_worker_that_is_killed_while_the_agent_works_leaves_one_comment(fresh: Forge) -> None:
    repo = fresh.repository()
    fresh.edge.issue(repo)
    with fresh.receiver():
        with fresh.worker(SOON) as doomed:
            fresh.edge.label(1, "pi:late", repo)
            assert fresh.comments(repo, 1) == ["Waiting"]
            doomed.kill()
        with fresh.worker(SOON):
            record = fresh.record(f"{repo}#1")
            said = fresh.comments(repo, 1, 2)
    assert (record.outcome, record.reason, record.budget_reserved) == ("failed", "worker-lost", True)
    assert "An error stopped this job." in said[1]
    assert fresh.edge.branches(repo) == ["main"]
    assert not list((fresh.stage.home / "jobs").glob("job-*"))


def test_a_schedule_that_says_github_gets_a_persons_credential_and_no_apps(fresh: Forge, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "site", FILES)
    run = {"kind": "local", "folder": str(repository.path), "flow": "fix", "model": "env", "github": True}
    fresh.rules = [
        {"on": {"type": "cron", "id": name, "pattern": "0 0 1 1 *"}, "run": {**run, "task": f"Look, {name}."}}
        for name in ("app", "person")
    ]
    fresh.write()
    person = fresh.edge.pat_variables()
    with fresh.worker():
        refused = fresh.stage.run("run", "--trigger", "app", "--wait", **fresh.environment)
    assert refused.code == 2
    assert "GITHUB_AUTH_SOURCE" in refused.out
    assert not (repository.path / "env.txt").exists()
    with fresh.worker(**person):
        ran = fresh.stage.run("run", "--trigger", "person", "--wait", **fresh.environment)
    assert ran.code == 0
    written = repository.read("env.txt")
    assert f"GITHUB_TOKEN={person['GITHUB_PAT']}\n" in written
    assert f"GH_TOKEN={person['GITHUB_PAT']}\n" in written


def test_no_credential_is_anywhere_but_in_the_box_while_it_works(fresh: Forge, engine: docker.DockerClient) -> None:
    repo = fresh.repository()
    fresh.edge.issue(repo)
    root = Path(engine.info()["DockerRootDir"])
    assert os.access(root, os.R_OK | os.X_OK), f"the engine's data in {root} cannot be read: run the tests as root"
    mark = fresh.folder / f"since-{names.token_hex(4)}"
    mark.touch()
    since = mark.stat().st_mtime
    with fresh.worker() as worker, fresh.receiver() as receiver:
        fresh.edge.label(1, "pi:late", repo)
        fresh.comments(repo, 1)
        argv = b"".join(map(_argv, Path("/proc").glob("[0-9]*")))
        kept = _found(fresh.edge, [fresh.stage.home], since)
        fresh.edge.expire()
        record = fresh.record(f"{repo}#1")
        fresh.stage.run("show", record.job_id)
        status = fresh.stage.run("status", "--json")
    assert record.outcome == "completed"
    assert _values(fresh.edge), "no token was made"
    assert [value for value in _values(fresh.edge) if value in argv] == []
    assert (kept, status.code) == ([], 0)
    logs = (worker.log + receiver.log + status.out + status.err).encode()
    assert [value for value in _values(fresh.edge) if value in logs] == []
    changed = [path for path in root.glob("*/*") if path.lstat().st_ctime >= since]
    # The server's data, logs, records, job directories; the engine's own files, the layers of containers among them.
    assert _found(fresh.edge, [fresh.stage.home, *changed], since) == []
    assert engine.containers.list(all=True, filters={"name": f"pi-job-{record.job_id}"}) == []


def _values(edge: Edge) -> list[bytes]:
    """Every credential that there was; of a key its middle, however its lines are written."""
    key = private_key().splitlines()
    return [*(value.encode() for value in edge.secrets()), key[len(key) // 2].encode()]


def _argv(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def _found(edge: Edge, folders: list[Path], since: float) -> list[tuple[str, int]]:
    """Files below that hold a credential and were written since then, with which one it is."""
    values, found = _values(edge), []
    for folder in folders:
        for path in (Path(top, name) for top, _, files in os.walk(folder) for name in files):
            if not path.is_file() or path.is_symlink() or path.lstat().st_mtime < since:
                continue
            content = path.read_bytes()
            found += [(str(path), number) for number, value in enumerate(values) if value in content]
    return found

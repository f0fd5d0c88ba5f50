"""A folder runs nothing: whoever wrote its files and its git directory, no verb executes any of it.

One test a row. Each row is planted at three times: before any run, by the agent during one, and by an agent whose
worker was ended by kill -9. The real program runs a few times for all rows together, the worker with the folder as its
current one too; each row proves in a copy of the folder that it springs for whoever takes no care
(docs/explanation/host-git.md, "A folder runs nothing").
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import docker
import pytest

from tests.support.baits import BAITS
from tests.support.engine import left_of
from tests.support.hostile import Attacked, Hostile, planted, run_in, worker_in
from tests.support.model import ModelContainer
from tests.support.program import REAL, How, Ran, Stage, job, make_stage
from tests.support.traps import (
    COMMONDIR,
    CORE_WORKTREE,
    DIFFS,
    FILTERS,
    HOOKS,
    MODULES,
    PROGRAMS,
    PROMISORS,
    Trap,
    plant,
    spring,
)

#: Those of a git directory with which a run goes on.
_GIT = (*HOOKS, *FILTERS, *DIFFS, PROMISORS[0], *PROGRAMS, MODULES, CORE_WORKTREE)
#: Those that an agent can add in the middle of one.
_AGENTS = (*_GIT[:-1], COMMONDIR, CORE_WORKTREE)
_WAIT = ("--wait", "--json")
_NO_ENGINE = "unix:///nonexistent/engine.sock"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def stage(base: Path, job_image: str, model: ModelContainer) -> Iterator[Stage]:
    """One for all of this module."""
    made = make_stage(base / "stage", job_image, model)
    yield made
    made.close()


@dataclass
class Looked:
    """What every verb did in, or with, a folder that was hostile before."""

    hostile: Hostile
    stage: Stage
    guarded: dict[str, tuple[int, bytes]]
    codes: dict[str, int] = field(default_factory=dict)
    fired: dict[str, set[str]] = field(default_factory=dict)

    def at(self, title: str, *arguments: str, where: Path | None = None, **changes: str) -> Ran:
        """Run a verb in the folder, or elsewhere, and note what it did."""
        ran = run_in(where or self.hostile.path, self.stage, *arguments, **changes)
        self.codes[title] = ran.code
        self.fired[title] = self.hostile.fired()
        return ran


@pytest.fixture(scope="module")
def before(base: Path, stage: Stage) -> Looked:
    """Everything planted by the folder's earlier history; every verb inside of it, and a run that is pointed at it."""
    hostile = Hostile.make(base / "before", (*_GIT, *BAITS))
    hostile.plant()
    looked = Looked(hostile, stage, hostile.guarded())
    with worker_in(hostile.path, stage) as worker:
        ran = looked.at("run", "run", ".", *job("say"), *_WAIT)
        job_id = ran.document["jobId"]
        flow = ("--flow", "mend", *_WAIT)
        looked.at("run --flow", "run", str(hostile.path), *job("say"), *flow, where=stage.home)
        for trap in _GIT:
            hostile.repository.write(f"{trap.name}.txt", "two\n")
        looked.at("run, dirty", "run", str(hostile.path), *job("edit"), *_WAIT)
        looked.at("run --force", "run", ".", "--force", *job("edit"), *_WAIT)
        looked.at("runs", "runs")
        looked.at("show", "show", job_id)
        looked.at("logs", "logs", job_id)
        looked.at("cancel", "cancel", job_id)
        looked.at("server status", "server", "status")
        looked.at("server stop", "server", "stop")
        looked.codes["worker"] = worker.stop()
        looked.fired["worker"] = hostile.fired()
    looked.at("egress status", "egress", "status")
    looked.at("egress up", "egress", "up", DOCKER_HOST=_NO_ENGINE)
    looked.at("egress down", "egress", "down", DOCKER_HOST=_NO_ENGINE)
    looked.at("image verify", "image", "verify")
    looked.at("image build", "image", "build", DOCKER_HOST=_NO_ENGINE)
    looked.at("image build --print", "image", "build", "--print")
    looked.at("--help", "--help")
    looked.at("--version", "--version")
    return looked


def attacked(
    hostile: Hostile, guarded: dict[str, tuple[int, bytes]], stage: Stage, job_id: str, restored: tuple[str, ...]
) -> Attacked:
    record = json.loads((stage.home / ".pi-dispatch/logs" / f"{job_id}.json").read_text())
    return Attacked(hostile, guarded, hostile.fired(), record, restored, stage.home / "jobs" / f"kept-{job_id}")


@pytest.fixture(scope="module")
def during(base: Path, stage: Stage) -> Attacked:
    """Everything planted by an agent in a run that ended well."""
    hostile = Hostile.make(base / "during", (*_AGENTS, *BAITS))
    guarded = hostile.guarded()
    with worker_in(hostile.path, stage):
        ran = run_in(hostile.path, stage, "run", ".", *job("plant"), *_WAIT)
        assert (ran.code, (hostile.path / ".planted").exists()) == (0, True), ran
        job_id = ran.document["jobId"]
        assert ran.document["kept"] == str(stage.home / "jobs" / f"kept-{job_id}")
        changed = {file["path"] for file in ran.document["change"]["files"]}
        assert {f"{trap.name}.txt" for trap in _AGENTS} <= changed
        for arguments in (("runs",), ("show", job_id), ("--version",)):
            assert run_in(hostile.path, stage, *arguments).code == 0
    return attacked(hostile, guarded, stage, job_id, tuple(ran.document["restored"]))


@pytest.fixture(scope="module")
def killed(base: Path, stage: Stage, engine: docker.DockerClient) -> Attacked:
    """Everything planted by an agent whose worker was killed, and settled by the next one, started in the folder."""
    hostile = Hostile.make(base / "killed", (*_AGENTS, *BAITS))
    guarded = hostile.guarded()
    with planted(stage, hostile, How(REAL, cwd=hostile.path)) as (worker, process, job_id):
        worker.kill()
        assert engine.containers.get(f"pi-job-{job_id}").attrs["State"]["Running"]
        assert hostile.guarded() != guarded
        with worker_in(hostile.path, stage) as settling:
            ran = settling.attended(process)
    assert (ran.code, ran.document["reason"]) == (1, "worker-lost"), ran
    assert left_of(engine, f"pi-job-{job_id}") == []
    [swept] = settling.events("swept_job")
    kept = stage.home / "jobs" / f"kept-{job_id}"
    restored = tuple(str(path.relative_to(kept)) for path in kept.rglob("*") if path.is_file())
    assert swept["entries"] == ran.document["gitRestored"]
    return attacked(hostile, guarded, stage, job_id, restored)


@pytest.mark.parametrize("trap", _AGENTS, ids=lambda trap: trap.name)
def test_nothing_of_a_git_directory_runs(
    trap: Trap, before: Looked, during: Attacked, killed: Attacked, tmp_path: Path
) -> None:
    assert [verb for verb, fired in before.fired.items() if trap.name in fired] == []
    for number, after in enumerate((during, killed)):
        after.check(trap)
        copy = after.hostile.copy(trap, tmp_path / f"copy-{number}")
        assert not spring(trap, copy, after.hostile.marks)
    plant(trap, copy, after.hostile.marks)
    assert spring(trap, copy, after.hostile.marks), "the trap would not have sprung for anyone"


@pytest.mark.parametrize("bait", BAITS, ids=lambda bait: bait.name)
def test_nothing_of_a_work_tree_runs(
    bait: Trap, before: Looked, during: Attacked, killed: Attacked, tmp_path: Path
) -> None:
    assert [verb for verb, fired in before.fired.items() if bait.name in fired] == []
    for after in (during, killed):
        after.check(bait)
    copy = during.hostile.copy(bait, tmp_path / "copy")
    assert spring(bait, copy, during.hostile.marks), "the bait would not have been taken by anyone"


def test_every_verb_did_its_work(before: Looked) -> None:
    """So that none passes because it gave up early."""
    ends = {title: code for title, code in before.codes.items() if code != 0}

    refused = ("cancel", "server stop", "egress status", "egress up", "egress down", "image build")
    assert ends == {"run, dirty": 2} | dict.fromkeys(refused, 1)


def test_what_stood_in_the_git_directory_before_stays_as_it_was(before: Looked) -> None:
    assert before.hostile.guarded() == before.guarded


def test_what_an_agent_planted_is_taken_away_and_counted(during: Attacked, killed: Attacked) -> None:
    for after in (during, killed):
        assert after.hostile.guarded() == after.guarded
        assert after.record["gitRestored"] >= len(after.restored) > len(HOOKS)
    assert (during.record["outcome"], during.record["reason"]) == ("completed", None)
    assert (killed.record["outcome"], killed.record["reason"]) == ("failed", "worker-lost")

"""A folder runs nothing: whoever wrote its files and its git directory, no verb executes any of it.

One test a row. Each row is planted at three times: before any run, by the agent during one, and by an agent whose
program was ended by kill -9. The real program runs a few times for all rows together; each row proves in a copy of the
folder that it springs for whoever takes no care (docs/explanation/host-git.md, "A folder runs nothing").
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import docker
import pytest

from tests.support.baits import BAITS
from tests.support.hostile import Attacked, Hostile, make_stage, run_in, start_until
from tests.support.model import ModelContainer
from tests.support.program import Ran, Stage
from tests.support.repository import make_repository
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
_TASK = ("--task", "Do as scripted.", "--json")
_NO_ENGINE = "unix:///nonexistent/engine.sock"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def stage(base: Path, job_image: str, model: ModelContainer) -> Stage:
    """One for all of this module."""
    return make_stage(base / "stage", job_image, model)


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
    ran = looked.at("run", "run", ".", "--model", "say", *_TASK)
    job = ran.document["jobId"]
    looked.at("run --flow", "run", str(hostile.path), "--flow", "mend", "--model", "say", *_TASK, where=stage.home)
    for trap in _GIT:
        hostile.repository.write(f"{trap.name}.txt", "two\n")
    looked.at("run, dirty", "run", str(hostile.path), "--model", "edit", *_TASK)
    looked.at("run --force", "run", ".", "--force", "--model", "edit", *_TASK)
    looked.at("runs", "runs")
    looked.at("show", "show", job)
    looked.at("logs", "logs", job)
    looked.at("egress status", "egress", "status")
    looked.at("egress up", "egress", "up", DOCKER_HOST=_NO_ENGINE)
    looked.at("egress down", "egress", "down", DOCKER_HOST=_NO_ENGINE)
    looked.at("image verify", "image", "verify")
    looked.at("image build", "image", "build", DOCKER_HOST=_NO_ENGINE)
    looked.at("image build --print", "image", "build", "--print")
    looked.at("--help", "--help")
    looked.at("--version", "--version")
    return looked


def attacked(hostile: Hostile, guarded: dict[str, tuple[int, bytes]], stage: Stage, job: str, said: object) -> Attacked:
    record = json.loads((stage.home / ".pi-dispatch/logs" / f"{job}.json").read_text())
    assert isinstance(said, list)
    return Attacked(hostile, guarded, hostile.fired(), record, tuple(said), stage.home / "jobs" / f"kept-{job}")


@pytest.fixture(scope="module")
def during(base: Path, stage: Stage) -> Attacked:
    """Everything planted by an agent in a run that ended well."""
    hostile = Hostile.make(base / "during", (*_AGENTS, *BAITS))
    guarded = hostile.guarded()
    ran = run_in(hostile.path, stage, "run", ".", "--model", "plant", *_TASK)
    assert (ran.code, (hostile.path / ".planted").exists()) == (0, True), ran
    assert ran.document["kept"] == str(stage.home / "jobs" / f"kept-{ran.document['jobId']}")
    changed = {file["path"] for file in ran.document["change"]["files"]}
    assert {f"{trap.name}.txt" for trap in _AGENTS} <= changed
    for arguments in (("runs",), ("show", ran.document["jobId"]), ("--version",)):
        assert run_in(hostile.path, stage, *arguments).code == 0
    return attacked(hostile, guarded, stage, ran.document["jobId"], ran.document["restored"])


@pytest.fixture(scope="module")
def killed(base: Path, stage: Stage, engine: docker.DockerClient) -> Attacked:
    """Everything planted by an agent whose program was killed, and settled by a run in another folder."""
    hostile = Hostile.make(base / "killed", (*_AGENTS, *BAITS))
    guarded = hostile.guarded()
    process, container = start_until(stage, hostile.path, "plantandsleep", "turn 2:")
    process.kill()
    process.communicate(timeout=30)
    assert engine.containers.get(container).attrs["State"]["Running"]
    assert (hostile.guarded() != guarded, (hostile.path / ".planted").exists()) == (True, True)
    other = make_repository(base / "other")
    ran = run_in(hostile.path, stage, "run", str(other.path), "--model", "say", *_TASK)
    assert ran.code == 0, ran
    with pytest.raises(docker.errors.NotFound):
        engine.containers.get(container)
    told = re.search(r"put back in its git directory: (.*)", ran.err)
    assert told is not None, ran.err
    return attacked(hostile, guarded, stage, container.removeprefix("pi-job-"), told[1].split(", "))


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

    assert ends == {"run, dirty": 2, "egress status": 1, "egress up": 1, "egress down": 1, "image build": 1}


def test_what_stood_in_the_git_directory_before_stays_as_it_was(before: Looked) -> None:
    assert before.hostile.guarded() == before.guarded


def test_what_an_agent_planted_is_taken_away_and_counted(during: Attacked, killed: Attacked) -> None:
    for after in (during, killed):
        assert after.hostile.guarded() == after.guarded
        assert after.record["gitRestored"] == len(after.restored) > len(HOOKS)
    assert (during.record["outcome"], during.record["reason"]) == ("completed", None)
    assert (killed.record["outcome"], killed.record["reason"]) == ("failed", "worker-lost")

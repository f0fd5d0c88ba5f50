"""Folders full of traps, and what is left of the traps after the program was there."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.program import PROGRAM, REAL, RUN_S, How, Ran, Stage, WorkerRun, await_id
from tests.support.repository import Repository, give, make_repository
from tests.support.server import until
from tests.support.terminal import as_user
from tests.support.traps import Trap, planting, taken

#: What a guard of a git directory looks at, as far as these traps go.
_GUARDED = ("config", "config.worktree", "commondir", "info/attributes", "hooks/*", "modules/*/config")


@dataclass(frozen=True)
class Hostile:
    """A folder with one tracked file for each trap; what springs leaves a mark of the trap's name in `marks`."""

    repository: Repository
    marks: Path
    traps: Sequence[Trap]

    @classmethod
    def make(cls, base: Path, traps: Sequence[Trap]) -> "Hostile":
        """A fresh one below `base`, with nothing planted yet; its `.plant` is what an agent is to run."""
        marks = base / "marks"
        marks.mkdir(parents=True)
        path = base / "site"
        files = {f"{trap.name}.txt": f"{trap.name}\n" for trap in traps}
        # What did not change would not be looked at.
        changing = 'for name in *.txt; do echo more >> "$name"; done\n'
        files[".plant"] = f"{planting(traps, path, marks)}{changing}echo done > .planted\n"
        files[".pi/skills/mend/SKILL.md"] = "---\nname: mend\ndescription: Mends.\n---\nMend.\n"
        return cls(make_repository(path, files), marks, traps)

    @property
    def path(self) -> Path:
        """The folder."""
        return self.repository.path

    def plant(self) -> None:
        """Plant everything from here, so that host git finds no uncommitted change."""
        as_user(self.path, planting(self.traps, self.path, self.marks, steps=("tree",)), check=True)
        self.repository.write("HISTORY", "planted\n")
        self.repository.commit()
        as_user(self.path, planting(self.traps, self.path, self.marks, steps=("plant",)), check=True)
        give(self.path)
        self.fired()

    def fired(self) -> set[str]:
        """Names of the traps that have sprung since this was last asked."""
        return {trap.name for trap in self.traps if taken(self.marks / trap.name)}

    def guarded(self) -> dict[str, tuple[int, bytes]]:
        """Mode and content of what is guarded in its git directory."""
        git_dir = self.path / ".git"
        found = [path for pattern in _GUARDED for path in git_dir.glob(pattern)]
        return {str(path.relative_to(git_dir)): (path.stat().st_mode, path.read_bytes()) for path in found}

    def copy(self, trap: Trap, to: Path) -> Path:
        """The folder as it stands, once more, with the objects that traps other than `trap` took away."""
        shutil.copytree(self.path, to, symlinks=True)
        for other in self.traps:
            if other.may_fail and other != trap:
                as_user(to, f"echo {other.name} | git hash-object -w --stdin", check=True)
        return to


@dataclass(frozen=True)
class Attacked:
    """A folder in which an agent planted everything, after the program was done with it."""

    hostile: Hostile
    #: How what is guarded stood before.
    guarded: dict[str, tuple[int, bytes]]
    #: What sprang while the program looked and put back.
    fired: set[str]
    #: The run's record.
    record: dict[str, Any]
    #: What the program said was put back.
    restored: tuple[str, ...]
    #: Where the agent's versions are.
    kept: Path

    def check(self, trap: Trap) -> None:
        """Nothing of `trap` ran; it is put back, and what the agent wrote is kept."""
        assert trap.name not in self.fired
        assert set(trap.guarded) <= set(self.restored)
        for name in trap.guarded:
            own = self.hostile.path / name
            assert (self.kept / name).is_file()
            assert not own.is_file() or (self.kept / name).read_bytes() != own.read_bytes()


def careless(**changes: str | None) -> dict[str, str | None]:
    """Variables as a careless user has them, whose `PATH` begins with the current folder."""
    return {"PI_CAPTURE_JOB_LOGS": "1", "PATH": f".::{os.environ['PATH']}", **changes}


def run_in(folder: Path, stage: Stage, *arguments: str, **changes: str | None) -> Ran:
    """Run the program with `folder` as the current one, as a careless user would."""
    done = subprocess.run(
        [PROGRAM, *arguments],
        env=stage.environment(**careless(**changes)),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@contextmanager
def worker_in(folder: Path, stage: Stage) -> Iterator[WorkerRun]:
    """The verb `worker`, with `folder` as the current one."""
    with stage.worker(How(REAL, cwd=folder), **careless()) as worker:
        yield worker


@contextmanager
def planted(stage: Stage, hostile: Hostile, how: How) -> Iterator[tuple[WorkerRun, "subprocess.Popen[str]", str]]:
    """A run whose agent has planted everything and still works: its worker, the one who waits, and its job's id."""
    with stage.worker(how, **careless()) as worker, stage.waiting(hostile.path, "plantandsleep") as process:
        job_id = await_id(process)
        # Made by the last line of what is planted.
        until((hostile.path / ".planted").exists, "the agent to plant", RUN_S)
        yield worker, process, job_id

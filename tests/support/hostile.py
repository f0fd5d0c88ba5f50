"""Folders full of traps, and what is left of the traps after the program was there."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.model import ModelContainer
from tests.support.program import PROGRAM, RUN_S, Ran, Stage
from tests.support.repository import Repository, give, make_repository
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


def make_stage(home: Path, image: str, model: ModelContainer) -> Stage:
    """A stage that outlives a test."""
    home.mkdir()
    docker_host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    return Stage(home, image=image, model=model, docker_host=docker_host)


def run_in(folder: Path, stage: Stage, *arguments: str, **changes: str | None) -> Ran:
    """Run the program with `folder` as the current one, and on the `PATH` as a careless user would have it."""
    environment = stage.environment(**{"PI_CAPTURE_JOB_LOGS": "1", **changes})
    done = subprocess.run(
        [PROGRAM, *arguments],
        env=environment | {"PATH": f".::{environment['PATH']}"},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def start_until(stage: Stage, folder: Path, model: str, words: str) -> "tuple[subprocess.Popen[str], str]":
    """Start a job and wait for `words` of its progress; the program, and the name of its container."""
    process = stage.start_job(folder, model)
    assert process.stderr is not None
    name = ""
    seen = []
    for line in process.stderr:
        seen.append(line)
        if line.startswith("container "):
            name = line.split()[1]
        if words in line:
            return process, name
    raise AssertionError(f"{words!r} never came: {seen}")

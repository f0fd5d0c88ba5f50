"""The workspace's own part of an attempt: `.pi` made from the commit, and host git on a large repository."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Figure, figure
from benchmarks.scratch import scratch
from pidispatch.values.limits import Limits
from pidispatch.workspace.changes import read_change, snapshot
from pidispatch.workspace.dotpi import DotPi, materialise
from pidispatch.workspace.folder import open_folder
from pidispatch.workspace.git import open_host_git
from tests.support.repository import ORDINARY_USER

SKILLS, FILES_OF_A_SKILL = 8, 32
DOTPI_RUNS = 50
DOTPI_BOUND_MS = 300
FOLDERS, FILES_OF_A_FOLDER = 500, 100
GIT_PAIRS = 10
_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


def dotpi_files() -> Figure:
    """p50 of `materialise` on a commit whose `.pi` is 256 files of 4 KiB."""
    text = "Say what is wrong before you mend it.\n" * 107
    names = [
        f".pi/skills/s{skill}/{'SKILL' if number == 0 else f'page{number}'}.md"
        for skill in range(SKILLS)
        for number in range(FILES_OF_A_SKILL)
    ]
    samples = []
    with scratch() as folder:
        repository = _repository(Path(folder) / "repository", {name: f"{name}\n{text}" for name in names})
        git = open_host_git(open_folder(repository), Path(folder) / "git", Limits())
        for number in range(DOTPI_RUNS):
            target = Path(folder) / f"pi-{number}"
            began = time.perf_counter()
            found = materialise(git, target, _give)
            samples.append(time.perf_counter() - began)
            if not isinstance(found, DotPi) or found.files != len(names):
                raise RuntimeError(f"the benchmark's own .pi did not travel: {found}")
    return figure("256 .pi files", "`materialise`, from listing to the last file", samples, None, DOTPI_BOUND_MS)


def large_repository() -> Iterator[Figure]:
    """Host git of one attempt on 50,000 files, unchanged and with one file changed, beside a bare `git status`."""
    names = [f"d{folder}/f{number}.txt" for folder in range(FOLDERS) for number in range(FILES_OF_A_FOLDER)]
    with scratch() as folder:
        repository = _repository(Path(folder) / "repository", {name: f"{name}\n" * 20 for name in names})
        for what, change in (("nothing changed", None), ("one file changed", repository / names[0])):
            ours, bare = [], []
            for number in range(GIT_PAIRS):
                ours.append(_host_git(repository, Path(folder) / "git", change, f"{number}\n"))
                began = time.perf_counter()
                _git(repository, "status", "--porcelain")
                bare.append(time.perf_counter() - began)
                _git(repository, "checkout", "--quiet", "--", ".")
            yield figure(f"git, 50,000 files, {what}", "host git beside one `git status`", ours, bare, None)


def _host_git(repository: Path, git_dir: Path, change: Path | None, text: str) -> float:
    """Seconds of all that host git does in one attempt; `change` is written in between."""
    began = time.perf_counter()
    git = open_host_git(open_folder(repository), git_dir, Limits())
    before = snapshot(git)
    took = time.perf_counter() - began
    if change is not None:
        change.write_text(text)
    began = time.perf_counter()
    found, _ = read_change(git, before)
    took += time.perf_counter() - began
    if len(found.files) != (change is not None):
        raise RuntimeError(f"host git told {len(found.files)} changed files of the benchmark's own")
    shutil.rmtree(git_dir)
    return took


def _give(path: Path) -> None:
    """What a worker that is root does with each path."""
    if os.geteuid() == 0:
        os.chown(path, *ORDINARY_USER)


def _repository(path: Path, files: dict[str, str]) -> Path:
    """A repository with these files in one commit, its objects packed as those of a clone are."""
    path.mkdir()
    _git(path, "init", "--quiet", "--initial-branch=main")
    stream = ["commit refs/heads/main\ncommitter a <a@example.test> 1000000000 +0000\ndata 5\nstart\n"]
    stream += [f"M 100644 inline {name}\ndata {len(text)}\n{text}\n" for name, text in files.items()]
    _git(path, "fast-import", "--quiet", stdin="".join(stream))
    _git(path, "reset", "--quiet", "--hard")
    return path


def _git(folder: Path, *arguments: str, stdin: str = "") -> None:
    subprocess.run(
        ["git", *arguments], cwd=folder, env=_ENVIRONMENT, input=stdin.encode(), capture_output=True, check=True
    )

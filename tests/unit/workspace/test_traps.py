"""Nothing that stands in a folder makes the host's git run a program, before a run or after it."""

import contextlib
import os
import shlex
from pathlib import Path

import pytest

from pidispatch.values.errors import DispatchError
from pidispatch.workspace.changes import Snapshot, read_change, snapshot
from pidispatch.workspace.git import HostGit
from tests.support.traps import (
    CORE_WORKTREE,
    DIFFS,
    FILTERS,
    HOOKS,
    NESTED,
    PROGRAMS,
    PROMISORS,
    Trap,
    plant,
    spring,
    taken,
)
from tests.unit.workspace.conftest import Opener
from tests.unit.workspace.repository import Repository, fingerprint, script

#: Those that a look at a folder could spring.
TRAPS = (
    *FILTERS,
    *DIFFS,
    *PROMISORS,
    *NESTED,
    CORE_WORKTREE,
    *(trap for trap in PROGRAMS if trap.name in ("fsmonitor", "hooks-path")),
    *(trap for trap in HOOKS if trap.name in ("hook-post-index-change", "hook-reference-transaction")),
)


class Canary:
    """A file that a planted command makes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.command = f"touch {shlex.quote(str(path))}"

    @property
    def sings(self) -> bool:
        return self.path.exists()


@pytest.fixture
def canary(tmp_path: Path) -> Canary:
    return Canary(tmp_path / "canary")


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    path = tmp_path / "scratch"
    path.mkdir()
    return path


def look(git: HostGit, before: Snapshot, repository: Repository, *, whole: bool) -> None:
    """What the host does after a run, while the folder's every byte stays as it is."""
    state = fingerprint(repository.path)
    change, diff = read_change(git, before)
    assert fingerprint(repository.path) == state
    assert change.changed
    assert "a.txt" in {file.path for file in change.files}
    # Where an object is missing there is no text to compare with, and the change is told all the same.
    assert "+three" in (diff or "") or not whole


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_a_trap_is_stepped_over(trap: Trap, when: str, repository: Repository, opened: Opener, scratch: Path) -> None:
    mark = scratch / trap.name
    may_fail = contextlib.suppress(DispatchError) if trap.may_fail else contextlib.nullcontext()
    with may_fail:
        if when == "before":
            plant(trap, repository.path, scratch, "a.txt")
            taken(mark)
            state = fingerprint(repository.path)
            git = opened(repository)
            before = snapshot(git)
            assert fingerprint(repository.path) == state
        else:
            git = opened(repository)
            before = snapshot(git)
            plant(trap, repository.path, scratch, "a.txt")
        repository.write("a.txt", "one\ntwo\nthree\n")
        repository.write("new.txt")
        taken(mark)
        look(git, before, repository, whole=not trap.may_fail)
    assert not mark.exists()
    assert spring(trap, repository.path, scratch, "a.txt"), "the trap would not have sprung for anyone"


def test_variables_of_this_process_steer_no_git(
    repository: Repository, opened: Opener, canary: Canary, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = str(script(scratch / "program", canary.command))
    for name, value in {
        "GIT_EXTERNAL_DIFF": program,
        "GIT_SSH_COMMAND": program,
        "GIT_PAGER": program,
        "GIT_DIR": "/nonexistent",
        "GIT_WORK_TREE": "/nonexistent",
        "GIT_INDEX_FILE": "/nonexistent",
        "GIT_EXEC_PATH": str(scratch),
        "GIT_TRACE2": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": program,
    }.items():
        monkeypatch.setenv(name, value)
    git = opened(repository)
    before = snapshot(git)
    repository.write("a.txt", "one\ntwo\nthree\n")
    look(git, before, repository, whole=True)
    assert not canary.sings


def test_the_operators_own_filters_do_not_run_either(
    repository: Repository, opened: Opener, home: Path, canary: Canary
) -> None:
    (home / ".gitconfig").write_text(f'[filter "theirs"]\n\tclean = "{canary.command}; cat"\n')
    repository.write(".gitattributes", "* filter=theirs\n")
    git = opened(repository)
    before = snapshot(git)
    repository.write("a.txt", "one\ntwo\nthree\n")
    look(git, before, repository, whole=True)
    assert not canary.sings


def test_a_program_in_the_folder_is_not_found_by_a_relative_path_entry(
    repository: Repository, opened: Opener, home: Path, canary: Canary, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".gitconfig").write_text('[filter "lfs"]\n\tclean = git-lfs clean -- %f\n')
    repository.write(".gitattributes", "a.txt filter=lfs\n")
    for name in ("git-lfs", "git", "sh"):
        script(repository.path / name, canary.command)
    monkeypatch.chdir(repository.path)
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", os.environ["PATH"]]))
    with contextlib.suppress(DispatchError):
        git = opened(repository)
        read_change(git, snapshot(git))
    assert not canary.sings


def test_a_git_directory_that_is_exchanged_during_the_run_is_not_followed(
    repository: Repository, opened: Opener, canary: Canary, scratch: Path
) -> None:
    git = opened(repository)
    before = snapshot(git)
    other = Repository(scratch / "other")
    other.commit()
    other.git("config", "core.fsmonitor", str(script(scratch / "program", canary.command)))
    (repository.path / ".git").rename(repository.path / "was-git")
    (repository.path / ".git").symlink_to(other.path / ".git")
    repository.write("a.txt", "one\ntwo\nthree\n")
    with contextlib.suppress(DispatchError):
        read_change(git, before)
    assert not canary.sings
    other.git("status")
    assert canary.sings

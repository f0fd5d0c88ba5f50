"""A repository with one commit, a home of the operator, and the host's git on a folder."""

from itertools import count
from pathlib import Path
from typing import Protocol

import pytest

from pidispatch.values.limits import Limits
from pidispatch.workspace.folder import open_folder
from pidispatch.workspace.git import HostGit, open_host_git
from tests.unit.workspace.repository import Repository


class Opener(Protocol):
    """Opens the host's git on a repository."""

    def __call__(self, repository: Repository, limits: Limits | None = None) -> HostGit: ...


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """`a.txt` and `b.txt`, of two lines each, in one commit."""
    repository = Repository(tmp_path / "folder")
    repository.write("a.txt", "one\ntwo\n")
    repository.write("b.txt", "one\ntwo\n")
    repository.commit(message="start")
    return repository


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The operator's home, empty."""
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def opened(tmp_path: Path, home: Path) -> Opener:
    """Opens the host's git on a repository, each time with a fresh git directory."""
    (tmp_path / "jobs").mkdir()
    numbers = count()

    def make(repository: Repository, limits: Limits | None = None) -> HostGit:
        git_dir = tmp_path / "jobs" / f"git-{next(numbers)}"
        return open_host_git(open_folder(repository.path), git_dir, limits or Limits(), home)

    return make

"""A small git repository that belongs to an ordinary user, as the operator's own folder would."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

#: Owner of sample repositories when the tests run as root; nobody needs to exist under these numbers.
ORDINARY_USER = (1000, 1000)
_IDENTITY = {
    "GIT_AUTHOR_NAME": "Sample",
    "GIT_AUTHOR_EMAIL": "sample@example.invalid",
    "GIT_COMMITTER_NAME": "Sample",
    "GIT_COMMITTER_EMAIL": "sample@example.invalid",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


def git(folder: Path, *arguments: str) -> str:
    """The user's own git on `folder`; its output."""
    done = subprocess.run(
        ["git", "-c", f"safe.directory={folder}", "-C", str(folder), *arguments],
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **_IDENTITY},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"git {' '.join(arguments)}: {done.stderr}")
    return done.stdout


@dataclass(frozen=True)
class Repository:
    """A folder with one commit in it."""

    path: Path

    def write(self, name: str, text: str) -> None:
        """Write a file that belongs to the folder's owner."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        give(self.path)

    def read(self, name: str) -> str:
        """The text of a file."""
        return (self.path / name).read_text()

    def commit(self, message: str = "more") -> None:
        """Commit everything as it stands."""
        git(self.path, "add", "-A")
        git(self.path, "commit", "-qm", message)
        give(self.path)


def make_repository(path: Path, files: dict[str, str] | None = None) -> Repository:
    """A fresh repository at `path` with `files` in its first commit."""
    path.mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")
    repository = Repository(path)
    for name, text in (files or {"README.md": "# Sample\n"}).items():
        repository.write(name, text)
    repository.commit("start")
    return repository


def give(path: Path) -> None:
    """Hand a tree to the ordinary user; only root can, and anyone else is one."""
    if os.geteuid() != 0:
        return
    for folder, folders, files in os.walk(path):
        for name in (".", *folders, *files):
            os.chown(os.path.join(folder, name), *ORDINARY_USER, follow_symlinks=False)

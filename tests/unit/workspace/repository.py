"""A real git repository in a temporary folder, driven by the git of this machine, and a look at every byte of it."""

import hashlib
import os
import stat
import subprocess
from pathlib import Path

_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.test",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.test",
}


class Repository:
    """A work tree whose `.git` is its own."""

    def __init__(self, path: Path, *, object_format: str = "sha1") -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main", f"--object-format={object_format}")

    def git(self, *arguments: str, check: bool = True) -> str:
        """One git call in the work tree, as its user would make it; its output without the last line break."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env=_ENVIRONMENT,
            capture_output=True,
            check=check,
            stdin=subprocess.DEVNULL,
        )
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def write(self, name: str | bytes, content: str | bytes = "text\n") -> Path:
        """Write one file, making its folders."""
        path = self.path / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def commit(self, *, message: str = "change") -> str:
        """Commit everything; the commit's id."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", f"--message={message}")
        return self.git("rev-parse", "HEAD")


def script(path: Path, body: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def fingerprint(root: Path) -> dict[str, tuple[int, int, int, str]]:
    """Mode, owner, time of change and content of everything below `root`."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files, "."):
            path = Path(folder, name)
            facts = path.lstat()
            content = ""
            if stat.S_ISREG(facts.st_mode):
                content = hashlib.sha256(path.read_bytes()).hexdigest()
            elif stat.S_ISLNK(facts.st_mode):
                content = os.readlink(path)
            found[os.path.relpath(path, root)] = (facts.st_mode, facts.st_uid, facts.st_mtime_ns, content)
    return found

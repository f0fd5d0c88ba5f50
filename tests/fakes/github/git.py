"""Repositories of the edge: bare, on disk, with git's own server in front (`githttp`).

A protected branch refuses every push, in GitHub's words:
https://docs.github.com/en/repositories/configuring-branches-and-merges-in-your-repository/managing-protected-branches/about-protected-branches
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

#: Who commits where nobody is named.
COMMITTER = "Sample <sample@example.invalid>"
#: Seconds since the epoch of every commit that is made here.
_WHEN = 1_767_225_600
#: Names of protected branches, one a line.
_PROTECTED = "protected-branches"
_HOOK = f"""#!/bin/sh
branch="${{1#refs/heads/}}"
if grep -qxF -e "$branch" "$GIT_DIR/{_PROTECTED}"; then
  echo "error: GH006: Protected branch update failed for $1." >&2
  echo "error: Changes must be made through a pull request." >&2
  exit 1
fi
"""
#: As on GitHub, where a commit can be asked for that no branch names.
_SETTINGS = {
    "http.receivepack": "true",
    "uploadpack.allowReachableSHA1InWant": "true",
    "uploadpack.allowAnySHA1InWant": "true",
    "uploadpack.allowFilter": "true",
    "receive.autogc": "false",
    "gc.auto": "0",
    "core.hooksPath": "hooks",
    "receive.hideRefs": "refs/pull",
}


def environment() -> dict[str, str]:
    """What git runs with: nothing of this account's."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "LC_ALL": "C",
    }


class GitRepository:
    """One bare repository, at `path`."""

    def __init__(self, path: Path, default: str) -> None:
        """Make it, without a commit."""
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["git", "init", "-q", "--bare", "--template=", f"--initial-branch={default}", str(path)],
            env=environment(),
            check=True,
        )
        with (path / "config").open("a") as config:
            for name, value in _SETTINGS.items():
                section, _, key = name.partition(".")
                config.write(f"[{section}]\n\t{key} = {value}\n")
        (path / "hooks").mkdir()
        (path / "hooks" / "update").write_text(_HOOK)
        (path / "hooks" / "update").chmod(0o755)
        self.protect(())

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """The output of git on it. Raises `ValueError` with what git says."""
        done = subprocess.run(
            ["git", f"--git-dir={self.path}", *arguments],
            env=environment(),
            input=stdin,
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            raise ValueError(done.stderr.decode())
        return done.stdout

    def protect(self, branches: tuple[str, ...]) -> None:
        """Let these be protected, and no other."""
        (self.path / _PROTECTED).write_text("".join(f"{name}\n" for name in branches))

    def protected(self) -> tuple[str, ...]:
        """The names of those that are."""
        return tuple((self.path / _PROTECTED).read_text().split())

    def branches(self) -> dict[str, str]:
        """Names and commits."""
        shown = self.run("for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads").decode()
        return dict(line.split(" ") for line in shown.splitlines())

    def commit(
        self,
        branch: str,
        files: Mapping[str, bytes | str],
        message: str = "Change",
        *,
        start: str | None = None,
        orphan: bool = False,
        author: str = COMMITTER,
    ) -> str:
        """Put these files on a branch, which begins at `start`; `orphan` without any past. Its new commit."""
        told = message.encode()
        lines = [f"commit refs/heads/{branch}", f"committer {author} {_WHEN} +0000", f"data {len(told)}"]
        stream = ["\n".join(lines).encode() + b"\n" + told + b"\n"]
        parent = None if orphan else start or self.branches().get(branch)
        if parent is not None:
            stream.append(f"from {parent}\n".encode())
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            mode = "100755" if data.startswith(b"#!") else "100644"
            stream += [f"M {mode} inline {name}\ndata {len(data)}\n".encode(), data, b"\n"]
        self.run("fast-import", "--quiet", "--force", "--date-format=raw-permissive", stdin=b"".join(stream))
        return self.branches()[branch]

    def pull(self, number: int, sha: str) -> None:
        """Let `pull/NUMBER/head` be this commit, by which a pull request is fetched."""
        self.run("update-ref", f"refs/pull/{number}/head", sha)

    def delete(self, branch: str) -> None:
        """Delete a branch."""
        self.run("update-ref", "-d", f"refs/heads/{branch}")

    def forget(self) -> None:
        """Drop every commit that no branch leads to."""
        self.run("gc", "--quiet", "--prune=now")

    def read(self, revision: str, path: str) -> bytes:
        """The content of a file. Raises `ValueError` where there is none."""
        return self.run("cat-file", "blob", f"{revision}:{path}")

    def tree(self, revision: str, path: str = "") -> list[tuple[str, str, str, int]]:
        """Kind (`blob`, `tree`), object, name and size of what lies in a folder."""
        shown = self.run("ls-tree", "--long", "-z", f"{revision}:{path}").decode()
        rows = (row.partition("\t") for row in shown.split("\0") if row)
        parts = ((head.split(), name) for head, _, name in rows)
        return [(head[1], head[2], name, 0 if head[3] == "-" else int(head[3])) for head, name in parts]

    def count(self, base: str, head: str) -> int:
        """How many commits `head` has that `base` has not."""
        return int(self.run("rev-list", "--count", f"{base}..{head}"))

    def changed(self, base: str, head: str) -> list[tuple[int, int, str]]:
        """Lines added and taken away, by file, since the two parted."""
        rows = self.run("diff", "--numstat", f"{base}...{head}").decode().splitlines()
        parts = (row.split("\t") for row in rows)
        return [
            (int(added) if added != "-" else 0, int(gone) if gone != "-" else 0, name) for added, gone, name in parts
        ]

    def told(self, sha: str) -> dict[str, str]:
        """What a commit says: its tree, parents, author and message."""
        fields = ("tree", "parents", "name", "email", "date", "message")
        shown = self.run("show", "-s", "--format=%T%x00%P%x00%an%x00%ae%x00%aI%x00%B", sha).decode()
        return dict(zip(fields, (part.rstrip("\n") for part in shown.split("\0")), strict=True))

    def merge(self, base: str, head: str, message: str) -> str:
        """A commit on `base` that has all of `head`, whose files win."""
        tree = self.told(head)["tree"]
        tips = self.branches()[base], head
        name, _, mail = COMMITTER.partition(" <")
        who = {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (("NAME", name), ("EMAIL", mail.rstrip(">")), ("DATE", f"{_WHEN} +0000"))
        }
        made = subprocess.run(
            ["git", f"--git-dir={self.path}", "commit-tree", tree, "-p", tips[0], "-p", tips[1], "-m", message],
            env=environment() | who,
            capture_output=True,
            check=True,
            text=True,
        ).stdout.strip()
        self.run("update-ref", f"refs/heads/{base}", made, tips[0])
        return made

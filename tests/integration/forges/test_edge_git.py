"""The edge's git server: who may clone and push, what a protected branch says, and what follows from a push."""

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pidispatch.forges.github.api import app_jwt
from tests.fakes.github.apps import private_key
from tests.fakes.github.edge import Edge
from tests.support.edge_client import ask

_HELPER = '!f() { test "$1" = get && printf "username=x-access-token\\npassword=%s\\n" "$TOKEN"; }; f'


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[Edge]:
    """One with a private repository to which alice may write and bob may not."""
    with Edge(tmp_path / "hub") as edge:
        edge.repository(permissions={"alice": "write", "bob": "read"})
        edge.install("acme/web")
        yield edge


@dataclass
class Clone:
    """A person's git, with a token."""

    path: Path
    token: str

    def __call__(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        who = {f"GIT_{role}_{part}": "a@b.test" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
        return subprocess.run(
            ["git", "-c", "credential.helper=", "-c", f"credential.helper={_HELPER}", *arguments],
            cwd=self.path,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.path),
                "GIT_TERMINAL_PROMPT": "0",
                "NO_PROXY": "*",
                "LC_ALL": "C",
                "TOKEN": self.token,
                **who,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def commit(self, name: str) -> None:
        """A new file."""
        (self.path / name).write_text(f"{name}\n")
        self("add", "-A")
        assert self("commit", "-qm", name).returncode == 0


def cloned(edge: Edge, folder: Path, token: str) -> Clone:
    """A shallow clone."""
    folder.mkdir()
    clone = Clone(folder, token)
    done = clone("clone", "-q", "--depth=1", f"{edge.git_url}/acme/web.git", ".")
    assert done.returncode == 0, done.stderr
    return clone


def minted(edge: Edge, **scope: object) -> str:
    """A token of the installation."""
    jwt = app_jwt(77, private_key(), edge.state.now()).token
    return str(ask(edge, "POST", "/app/installations/88/access_tokens", jwt, scope).body["token"])


def test_a_push_moves_a_branch_and_its_pull_request(edge: Edge, tmp_path: Path) -> None:
    edge.hook("http://127.0.0.1:9/", "pull_request")
    clone = cloned(edge, tmp_path / "clone", minted(edge))
    clone("checkout", "-qb", "pi/issue-1")
    clone.commit("one")
    assert clone("push", "-q", "--force-with-lease", "origin", "HEAD:refs/heads/pi/issue-1").returncode == 0
    edge.pull("pi/issue-1")
    first = edge.pulls()[0].sha
    clone.commit("two")
    assert clone("push", "-q", "origin", "pi/issue-1").returncode == 0
    assert edge.branches() == ["main", "pi/issue-1"]
    last = edge.deliveries()[-1]
    assert (last.action, last.payload["before"], last.payload["after"]) == ("synchronize", first, edge.pulls()[0].sha)
    assert last.payload["sender"]["login"] == "pi-dispatch-test[bot]"
    assert clone("fetch", "-q", "origin", "pull/1/head").returncode == 0
    assert clone("rev-parse", "FETCH_HEAD").stdout.strip() == edge.pulls()[0].sha
    assert clone("push", "-q", "origin", ":pi/issue-1").returncode == 0
    assert edge.pulls()[0].state == "closed"


def test_a_protected_branch_takes_no_push(edge: Edge, tmp_path: Path) -> None:
    clone = cloned(edge, tmp_path / "clone", edge.person("alice"))
    before = edge.state.repository("acme/web").git.branches()["main"]
    clone.commit("one")
    done = clone("push", "--force", "origin", "HEAD:main", "HEAD:side")
    assert done.returncode == 1
    assert "remote: error: GH006: Protected branch update failed for refs/heads/main." in done.stderr
    assert edge.state.repository("acme/web").git.branches()["main"] == before
    # As on GitHub the other branch of the same push is taken.
    assert edge.branches() == ["main", "side"]


REFUSED = [
    ("nothing", 401, "could not read Username"),
    ("wrong", 401, "Invalid username or token"),
    ("expired", 401, "Invalid username or token"),
    ("stranger", 404, "Repository not found."),
    ("reader", 403, "Permission to acme/web.git denied to bob."),
    ("narrow", 403, "Write access to repository not granted."),
    ("other", 404, "Repository not found."),
]


@pytest.mark.parametrize(("kind", "status", "words"), REFUSED, ids=[one[0] for one in REFUSED])
def test_a_push_needs_a_token_that_may(edge: Edge, tmp_path: Path, kind: str, status: int, words: str) -> None:
    clone = cloned(edge, tmp_path / "clone", edge.person("alice"))
    clone.commit("one")
    edge.repository("acme/other")
    edge.install("acme/web", "acme/other")
    make: dict[str, Callable[[], str]] = {
        "nothing": str,
        "wrong": lambda: "ghs_wrong",
        "expired": lambda: minted(edge),
        "stranger": lambda: edge.person("mallory"),
        "reader": lambda: edge.person("bob"),
        "narrow": lambda: minted(edge, permissions={"contents": "read"}),
        "other": lambda: minted(edge, repositories=["other"]),
    }
    clone.token = make[kind]()
    if kind == "expired":
        assert edge.expire("installation-88") == 1
    helper = ("-c", "credential.helper=") if kind == "nothing" else ()
    done = clone(*helper, "push", "origin", "HEAD:side")
    assert done.returncode != 0
    assert words in done.stderr
    assert edge.asked[-1].status == status
    assert edge.branches() == ["main"]


def test_a_public_repository_is_cloned_by_anybody(edge: Edge, tmp_path: Path) -> None:
    edge.repository("acme/open", private=False)
    clone = Clone(tmp_path, "")
    assert clone("-c", "credential.helper=", "clone", "-q", f"{edge.git_url}/acme/open", "open").returncode == 0
    assert [one.token for one in edge.asked] == ["nobody"] * len(edge.asked)


def test_a_commit_that_no_branch_names_is_there_until_it_is_dropped(edge: Edge, tmp_path: Path) -> None:
    git = edge.state.repository("acme/web").git
    sha = git.branches()["main"]
    edge.push("main", {"new.txt": "all new\n"}, orphan=True)
    clone = Clone(tmp_path, edge.person("alice"))
    clone("init", "-q", "clone")
    fetch = ("-C", "clone", "fetch", "-q", "--depth=1", f"{edge.git_url}/acme/web.git", sha)
    assert clone(*fetch).returncode == 0
    clone("init", "-q", "again")
    git.forget()
    gone = clone("-C", "again", *fetch[2:])
    assert gone.returncode != 0
    assert "not our ref" in gone.stderr

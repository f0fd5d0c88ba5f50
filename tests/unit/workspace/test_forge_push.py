"""The commands that the prompt of an issue names work in the clone as it is made, against git's own server."""

import re
import subprocess
from pathlib import Path

import pytest

from pidispatch.values.limits import Limits
from pidispatch.workspace.clone import clone
from pidispatch.workspace.forge_prompt import forge_prompt
from tests.unit.workspace.forgejobs import forge_job, pull_request
from tests.unit.workspace.githost import TOKEN, GitHost, credential, serve
from tests.unit.workspace.repository import Repository


@pytest.fixture
def upstream(tmp_path: Path) -> Repository:
    """The repository at the forge, which takes a push of any branch but the one that it stands on."""
    made = Repository(tmp_path / "forge" / "owner" / "name.git")
    made.write("a.txt", "one\n")
    made.commit()
    made.write("a.txt", "two\n")
    made.commit()
    made.git("config", "http.receivepack", "true")
    return made


def told(prompt: str) -> list[list[str]]:
    """The commands of git that stand in a prompt, in their order."""
    return [command.split() for command in re.findall(r"`(git [^`]+)`", prompt)]


def run(workspace: Path, command: list[str]) -> bool:
    """Run a command of the prompt as the agent does, which has the token from the job's environment."""
    header = ("-c", f"http.extraHeader=Authorization: {credential()}")
    done = subprocess.run([command[0], "-C", workspace, *header, *command[1:]], capture_output=True, check=False)
    return done.returncode == 0


def worked(host: GitHost, upstream: Repository, workspace: Path) -> str:
    """A clone in which an agent has committed; the commit."""
    sha = upstream.git("rev-parse", "HEAD")
    assert clone(f"{host.url}/owner/name.git", sha, workspace, TOKEN, Limits()) is None
    own = ["git", "-C", str(workspace)]
    subprocess.run([*own, "commit", "--quiet", "--allow-empty", f"--message={workspace.name}"], check=True)
    done = subprocess.run([*own, "rev-parse", "HEAD"], capture_output=True, check=True)
    return done.stdout.decode().strip()


def test_an_agent_that_does_as_it_is_told_pushes_its_branch_the_first_time_and_again(
    upstream: Repository, tmp_path: Path
) -> None:
    push, fetch = told(forge_prompt(forge_job(), "fix"))
    with serve(upstream.path.parent.parent) as host:
        sha = worked(host, upstream, tmp_path / "first")
        assert run(tmp_path / "first", push)
        assert upstream.git("rev-parse", "pi/issue-7") == sha
        sha = worked(host, upstream, tmp_path / "second")
        # What another job pushed is not overwritten unseen.
        assert not run(tmp_path / "second", push)
        assert run(tmp_path / "second", fetch)
        assert run(tmp_path / "second", push)
        assert upstream.git("rev-parse", "pi/issue-7") == sha


def test_an_agent_can_fetch_what_a_pull_request_would_merge(upstream: Repository, tmp_path: Path) -> None:
    upstream.git("update-ref", "refs/pull/7/head", "HEAD~1")
    [fetch] = told(forge_prompt(forge_job(target=pull_request()), "fix"))
    with serve(upstream.path.parent.parent) as host:
        worked(host, upstream, tmp_path / "clone")
        assert run(tmp_path / "clone", fetch)
    shown = subprocess.run(
        ["git", "-C", tmp_path / "clone", "show", "FETCH_HEAD:a.txt"], capture_output=True, check=True
    )
    assert shown.stdout == b"one\n"

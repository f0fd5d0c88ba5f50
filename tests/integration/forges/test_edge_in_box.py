"""The edge in the box, under GitHub's real names: gh, git, Python and Node of the job image, unchanged."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.models.containers import Container

from pidispatch.forges.github.api import app_jwt
from tests.fakes.github.apps import private_key
from tests.fakes.github.edge import Edge
from tests.fakes.model import programs
from tests.image.assemble import ensure_edge_job
from tests.support.edge import EdgeContainer
from tests.support.edge_client import ask
from tests.support.model import ModelContainer
from tests.support.server import until

#: What the host does before a job: a clone, whose remote has the host's own address.
_CLONE = """\
set -eu
git init -q .
git remote add origin http://127.0.0.1:1/acme/web.git
git fetch -q --depth=1 https://github.com/acme/web.git main
git checkout -q --detach FETCH_HEAD
"""
#: Whatever else looks at a forge.
_LOOK = """\
exec 2>&1
gh auth status
gh issue view 1 --repo acme/web --comments
gh pr view 3 --repo acme/web --comments
gh pr diff 3 --repo acme/web
gh api user --jq .login || echo 'no user'
python3 - <<'PROGRAM'
import os, urllib.request
headers = {"Authorization": "Bearer " + os.environ["GITHUB_TOKEN"]}
request = urllib.request.Request("https://api.github.com/rate_limit", None, headers)
print("python", urllib.request.urlopen(request).status)
PROGRAM
NODE_USE_ENV_PROXY=1 node -e "const headers = {Authorization: 'Bearer ' + process.env.GITHUB_TOKEN};
fetch('https://api.github.com/rate_limit', {headers}).then(answer => console.log('node', answer.status))"
"""
ISSUE = {"repository": {"full_name": "acme/web"}, "issue": {"number": 1}}
PULL = {"repository": {"full_name": "acme/web"}, "pull_request": {"number": 2}}


@pytest.fixture
def edge(tmp_path: Path, model: ModelContainer) -> Iterator[Edge]:
    """One that jobs find behind their neighbour: an issue, a pull request, and a token for the repository."""
    with Edge(tmp_path / "hub", socket=model.edge_socket) as edge:
        edge.repository()
        edge.install("acme/web")
        edge.issue()
        edge.pull("mend")
        yield edge


@dataclass
class Box:
    """A network with a way to the edge, and jobs on it."""

    client: docker.DockerClient
    image: str
    network: str
    variables: dict[str, str]
    folder: Path

    def start(self, script: str, event: dict[str, Any] | None = None) -> Container:
        """A job, as the agent's shell in it."""
        (self.folder / "event.json").write_text(json.dumps(event or ISSUE))
        (self.folder / "prompt.md").write_text("Commit to exactly the branch `pi/issue-1`.\n")
        container = self.client.containers.create(
            self.image,
            ["-c", script],
            entrypoint=["bash"],
            network=self.network,
            dns=["127.0.0.1"],
            environment=self.variables,
            mounts=[docker.types.Mount("/job", str(self.folder), type="bind", read_only=True)],
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
        )
        container.start()
        return container

    def run(self, script: str, event: dict[str, Any] | None = None) -> str:
        """What a job says, which must end well."""
        return self.end(self.start(script, event))

    def end(self, container: Container) -> str:
        """What it says, once it has ended; it must end well."""
        try:
            status = container.wait(timeout=60)["StatusCode"]
            said = container.logs().decode()
        finally:
            container.remove(force=True, v=True)
        assert status == 0, said
        return said


@pytest.fixture
def box(engine: docker.DockerClient, edge: Edge, model: ModelContainer, tmp_path: Path) -> Iterator[Box]:
    """One whose jobs reach the model alone, as their proxy."""
    folder = tmp_path / "job"
    folder.mkdir()
    options = {"com.docker.network.bridge.inhibit_ipv4": "true"}
    network = engine.networks.create(f"pi-test-edge-{secrets.token_hex(4)}", internal=True, options=options)
    network.connect(model.container)
    proxy = dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), f"http://{model.name}:3128")
    jwt = app_jwt(77, private_key(), edge.state.now()).token
    minted = ask(edge, "POST", "/app/installations/88/access_tokens", jwt, {"repositories": ["web"]}).body["token"]
    tokens = {"GITHUB_TOKEN": minted, "GH_TOKEN": minted}
    try:
        yield Box(engine, ensure_edge_job(engine), str(network.name), {**proxy, **tokens}, folder)
    finally:
        network.disconnect(model.container, force=True)
        network.remove()


def test_from_an_issue_to_a_pull_request(edge: Edge, box: Box) -> None:
    box.run(f"{_CLONE}({programs.PULL_REQUEST})\ngit checkout -q --detach HEAD~1\ngit branch -q -D pi/issue-1\n"
            f"{programs.PULL_REQUEST}")  # fmt: skip
    assert edge.branches() == ["main", "mend", "pi/issue-1"]
    assert [(one.number, one.title, one.head, one.user.login) for one in edge.pulls()[1:]] == [
        (3, "Mend issue 1", "pi/issue-1", "pi-dispatch-test[bot]")
    ]
    opened = "Opened https://github.com/acme/web/pull/3"
    assert (edge.comments(1), edge.comments(3)) == ([opened] * 2, ["Please look at mended.txt."] * 2)
    assert {one.token for one in edge.asked if one.boxed and one.status == 200} == {"installation-88-1"}
    said = box.run(_LOOK)
    for expected in ("Logged in to github.com", opened, "+mended for issue 1", "node 200", "python 200", "no user"):
        assert expected in said


def test_the_default_branch_stands_and_a_review_is_read(edge: Edge, box: Box) -> None:
    before = edge.state.repository("acme/web").git.branches()["main"]
    box.run(f"{_CLONE}{programs.PUSH_MAIN}")
    assert edge.state.repository("acme/web").git.branches()["main"] == before
    assert edge.comments(1) == ["main: refused"]
    box.run(f"{_CLONE}{programs.REVIEW}", PULL)
    assert edge.comments(2) == ["Looked at mended.txt"]
    assert [(one.state, one.body) for one in edge.pulls()[0].reviews] == [("COMMENTED", "Reviewed.")]


def test_a_token_that_ends_in_the_middle(edge: Edge, box: Box) -> None:
    container = box.start(f"{_CLONE}{programs.WAIT_THEN_PUSH}\ncat pushed.txt push.txt")
    until(lambda: edge.comments(1) == ["Waiting"], "the job to wait", 30)
    assert edge.expire() == 1
    said = box.end(container)
    assert "refused" in said
    assert "Invalid username or token" in said
    assert edge.branches() == ["main", "mend"]


def test_a_container_that_is_the_forge_on_a_network(
    engine: docker.DockerClient, edge: Edge, box: Box, model_image: str
) -> None:
    way = EdgeContainer(engine, model_image, edge, box.network)
    try:
        box.variables |= {"HTTPS_PROXY": "", "https_proxy": ""}
        said = box.run("gh api repos/acme/web --jq .default_branch; git ls-remote https://github.com/acme/web")
    finally:
        way.remove()
    assert said.splitlines()[0] == "main"
    assert said.rstrip().endswith("refs/pull/2/head")


def test_who_is_not_told_of_the_authority_trusts_nobody(edge: Edge, box: Box, job_image: str) -> None:
    box.image = job_image
    assert "certificate" in box.run("git ls-remote https://github.com/acme/web 2>&1 || true")


def test_where_no_edge_listens_it_is_said(model: ModelContainer, box: Box) -> None:
    model.edge_socket.rename(model.edge_socket.with_name("elsewhere.sock"))
    try:
        assert "502" in box.run("gh api user 2>&1 || true")
    finally:
        model.edge_socket.with_name("elsewhere.sock").rename(model.edge_socket)

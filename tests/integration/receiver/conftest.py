"""One server for each file of tests, with nothing in it when a test begins; a GitHub; and what is logged."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from tests.fakes.github.edge import Edge
from tests.fakes.github.server import GitHubServer
from tests.support.poll import PollBox
from tests.support.receiver import Inbox, ReceiverProgram
from tests.support.server import OwnServer

Make = Callable[..., Inbox]
Run = Callable[..., ReceiverProgram]
Poll = Callable[..., PollBox]


@pytest.fixture(scope="module")
def running() -> Iterator[OwnServer]:
    """A durable server. Its path is short, as that of a socket is bounded."""
    with tempfile.TemporaryDirectory(prefix="pi-v-", dir="/tmp") as folder, OwnServer("valkey", Path(folder)) as own:
        yield own


@pytest.fixture
def server(running: OwnServer) -> OwnServer:
    """The server, empty."""
    with running.client() as client:
        client.flushall()
    return running


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    """A GitHub."""
    with GitHubServer() as github:
        yield github


@pytest.fixture
def inbox(server: OwnServer, github: GitHubServer, tmp_path: Path) -> Iterator[Make]:
    """Makes receivers inside of the test's process."""
    with ExitStack() as opened:

        def make(*triggers: dict[str, Any], **more: Any) -> Inbox:
            return opened.enter_context(Inbox(server, tmp_path, github, list(triggers), **more))

        yield make


@pytest.fixture
def program(server: OwnServer, github: GitHubServer, tmp_path: Path) -> Iterator[Run]:
    """Makes deployments with a real program."""
    made: list[ReceiverProgram] = []

    def make(*triggers: dict[str, Any], **more: Any) -> ReceiverProgram:
        home = tmp_path / f"home-{len(made)}"
        home.mkdir()
        variables = {"PI_STATE_DIR": str(tmp_path / "state")}
        made.append(ReceiverProgram(home, github, more.pop("url", server.url), list(triggers), variables | more))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def logs() -> Iterator[list[dict[str, Any]]]:
    """What is logged, from any thread."""
    capture = LogCapture()
    structlog.configure(processors=[capture])
    yield capture.entries  # type: ignore[misc]
    structlog.reset_defaults()


@pytest.fixture
def edge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Edge]:
    """A GitHub with one repository, to which alice may write and `pi-bot`, this deployment."""
    monkeypatch.setenv("NO_PROXY", "*")
    with Edge(tmp_path / "repositories") as edge:
        edge.repository(permissions={"alice": "write", "pi-bot": "write", "mallory": "read"})
        yield edge


@pytest.fixture
def poll(inbox: Make, edge: Edge) -> Poll:
    """Makes pollers, each with a receiver beside it."""

    def make(*triggers: dict[str, Any], variables: dict[str, str] | None = None, **more: Any) -> PollBox:
        boxed = {name: more.pop(name) for name in ("offset_ms", "clock") if name in more}
        given = edge.pat_variables() if variables is None else variables
        return PollBox(inbox(*triggers, variables=given, **boxed), edge, **more)

    return make

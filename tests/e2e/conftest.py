"""What the tests of the queue share: the image whose jobs are scripted, their one neighbour, a server of their own."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest

from tests.support.post import Neighbour, Post, stub_image
from tests.support.server import Binary, OwnServer


@pytest.fixture(scope="session")
def stub(engine: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The image whose jobs do what the name of their model says."""
    image = stub_image(engine, tmp_path_factory.mktemp("stub"))
    yield image
    engine.images.remove(image, force=True)


@pytest.fixture(scope="session")
def neighbour(engine: docker.DockerClient) -> Iterator[str]:
    """Name of the one container that jobs can reach."""
    container = Neighbour(engine)
    yield container.name
    container.remove()


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[OwnServer]:
    """A durable Valkey, or what the parameter says: the binary, then options of its command line."""
    told: tuple[str, ...] = getattr(request, "param", ("valkey",))
    binary: Binary = "redis" if told[0] == "redis" else "valkey"
    # Short, because the path of a unix socket is bounded.
    with (
        tempfile.TemporaryDirectory(prefix="pi-v-", dir="/tmp") as folder,
        OwnServer(binary, Path(folder), *told[1:]) as own,
    ):
        yield own


@pytest.fixture
def post(engine: docker.DockerClient, stub: str, neighbour: str, server: OwnServer) -> Iterator[Post]:
    """A deployment on that server."""
    with Post(engine, stub, neighbour, server) as own:
        yield own


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Callable[[str, object], None]:
    """Keep a measured figure with the test's result (`--junitxml` shows them)."""
    return lambda name, value: request.node.user_properties.append((name, value))

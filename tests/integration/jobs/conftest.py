"""One server for each file of tests and each kind of server; every test begins with nothing in it."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from tests.integration.jobs.world import World
from tests.support.server import OwnServer


@pytest.fixture(scope="module", params=["valkey", "redis"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    """A client of a server of the tests' own."""
    with OwnServer(request.param, tmp_path_factory.mktemp("server")) as server:
        client: Any = server.client()
        yield client
        client.close()


@pytest.fixture
def world(client: redis.Redis) -> Iterator[World]:
    """An empty store; after the test its indexes must be right."""
    client.flushdb()
    world = World(client)
    yield world
    world.check()

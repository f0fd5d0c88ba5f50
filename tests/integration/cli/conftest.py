"""The verbs against a real server, with the part of the worker played by hand."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.cli.bench import Bench
from tests.support.repository import make_repository
from tests.support.server import OwnServer


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    """One server for the tests of a file."""
    with OwnServer("valkey", tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture
def bench(shared_server: OwnServer, tmp_path: Path) -> Iterator[Bench]:
    """An empty store, a repository, and the program that knows the server."""
    with closing(shared_server.client()) as client:
        client.flushall()
    repository = make_repository(tmp_path / "site")
    home = tmp_path / "home"
    home.mkdir()
    with Bench.of(shared_server, home, repository) as bench:
        yield bench

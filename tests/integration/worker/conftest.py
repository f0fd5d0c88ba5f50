"""One server for each file of tests; every test begins with nothing in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from structlog.testing import LogCapture

from tests.integration.worker.bench import Bench
from tests.support.server import OwnServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    """A durable server."""
    with OwnServer("valkey", tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def bench(server: OwnServer, tmp_path: Path) -> Iterator[Bench]:
    """An empty store and a worker."""
    bench = Bench(server, tmp_path)
    bench.client.flushall()
    yield bench
    bench.close()


@pytest.fixture
def logs() -> Iterator[list[dict[str, object]]]:
    """What is logged, from any thread."""
    capture = LogCapture()
    structlog.configure(processors=[capture])
    yield capture.entries  # type: ignore[misc]
    structlog.reset_defaults()

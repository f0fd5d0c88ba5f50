"""A real proxy for each test, and the image of the network's programs for all of them."""

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from tests.image.assemble import ensure_egress_base
from tests.support import egress
from tests.support.box import Box


@pytest.fixture(scope="session")
def egress_base(engine: docker.DockerClient) -> str:
    """Debian with squid and Python."""
    return ensure_egress_base(engine)


@pytest.fixture(scope="session")
def network_image(engine: docker.DockerClient, job_image: str) -> Iterator[str]:
    """The job image whose program is the probe."""
    image = egress.probe_image(engine, job_image)
    yield image
    engine.images.remove(image, force=True)


@pytest.fixture
def proxy(engine: docker.DockerClient, egress_base: str, tmp_path: Path) -> Iterator[egress.Proxy]:
    """A proxy that is not there yet."""
    made = egress.Proxy(engine, egress_base, tmp_path)
    yield made
    made.remove()


@pytest.fixture
def box(engine: docker.DockerClient, tmp_path: Path) -> Box:
    """Runs jobs with the product's own code."""
    return Box(engine, tmp_path)

"""A box of a test's own on the engine of all tests."""

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from tests.support.box import Box


@pytest.fixture
def box(engine: docker.DockerClient, tmp_path: Path) -> Iterator[Box]:
    box = Box(engine, tmp_path)
    yield box
    for image in box.images:
        engine.images.remove(image, force=True)

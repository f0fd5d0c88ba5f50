"""Fixtures of the tests that need a real engine. A missing engine is a failure with instructions, never a skip."""

import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import docker
import hypothesis
import pytest

from tests.image.assemble import ensure_job, ensure_model, ensure_probe
from tests.support.model import ModelContainer
from tests.support.program import Stage, make_stage
from tests.support.repository import Repository, make_repository

# A machine that is busy makes no property false.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")
# A shell's background job is born with Ctrl-C ignored, and would hand that on to every program the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

NO_ENGINE = (
    "no container engine answers. Start one for the tests and name it:\n"
    "    export $(tests/engine/up | tail -n 1)      (as root on Debian; tests/engine/down ends it)\n"
    "or set DOCKER_HOST to an engine of yours. `make test` does all of this by itself."
)


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    """A client of the engine that `DOCKER_HOST` or the default socket names."""
    try:
        client = docker.from_env(version="auto", timeout=60)
    except docker.errors.DockerException as error:
        pytest.fail(f"{NO_ENGINE}\n({type(error).__name__})", pytrace=False)
    yield client
    client.close()


@pytest.fixture(scope="session")
def job_image(engine: docker.DockerClient) -> str:
    """The job image, assembled offline."""
    return ensure_job(engine)


@pytest.fixture(scope="session")
def model_image(engine: docker.DockerClient) -> str:
    """The image of the scripted model."""
    return ensure_model(engine)


@pytest.fixture(scope="session")
def probe_image(engine: docker.DockerClient) -> str:
    """A small busybox image for tests of the engine itself."""
    return ensure_probe(engine)


@pytest.fixture(scope="session")
def model(engine: docker.DockerClient, model_image: str) -> Iterator[ModelContainer]:
    """One scripted model for all tests; each stage has a key of its own in its log."""
    with tempfile.TemporaryDirectory(prefix="pi-model-") as folder:
        container = ModelContainer(engine, model_image, Path(folder))
        try:
            yield container
        finally:
            container.remove()


@pytest.fixture
def stage(tmp_path: Path, job_image: str, model: ModelContainer) -> Iterator[Stage]:
    """Everything a run of the program needs besides its folder."""
    made = make_stage(tmp_path / "stage", job_image, model)
    yield made
    made.close()


@pytest.fixture(scope="module")
def staffed(tmp_path_factory: pytest.TempPathFactory, job_image: str, model: ModelContainer) -> Iterator[Stage]:
    """A stage for all tests of a file, with one worker that takes their jobs."""
    made = make_stage(tmp_path_factory.mktemp("staffed") / "stage", job_image, model)
    with made.worker():
        yield made
    made.close()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A fresh git repository of an ordinary user's."""
    return make_repository(tmp_path / "site")

"""The engine's faults in our own words: a real client of an address where nobody answers."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest
import requests

from pidispatch.box.engine import Engine
from pidispatch.box.faults import describe
from pidispatch.box.spec import IMAGE_USER, BoxMount, ContainerSpec
from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason

NOWHERE = "tcp://127.0.0.1:1"


@pytest.fixture
def silent() -> Iterator[Engine]:
    engine = Engine(docker.DockerClient(base_url=NOWHERE, version="1.41", timeout=2))
    yield engine
    engine.close()


def spec() -> ContainerSpec:
    return ContainerSpec(
        isolated=True,
        name="pi-job-x",
        image="pi-job",
        user=IMAGE_USER,
        env={"PI_JOB_ID": "pi-job-x"},
        mounts=(BoxMount(source=Path("/j"), target="/job"), BoxMount(source=Path("/w"), target="/workspace")),
        network=None,
        deployment="0" * 16,
        limits=Limits(),
    )


#: Stands for an object of the SDK whose engine is gone: every call of it is made at the same silent address.
def gone(engine: Engine) -> Any:
    return engine.client.containers.prepare_model({"Id": "0" * 64})


CALLS: dict[str, Callable[[Engine], object]] = {
    "facts": lambda engine: engine.facts(),
    "image": lambda engine: engine.image("pi-job"),
    "neighbour": lambda engine: engine.neighbour("gate"),
    "create_network": lambda engine: engine.create_network("n", "d"),
    "connect_neighbour": lambda engine: engine.connect_neighbour(network(engine), "gate", "gate"),
    "create": lambda engine: engine.create(spec()),
    "start": lambda engine: engine.start(gone(engine)),
    "job_containers": lambda engine: engine.job_containers("d"),
    "job_networks": lambda engine: engine.job_networks("d"),
    "output": lambda engine: engine.output(gone(engine)),
}


def network(engine: Engine) -> Any:
    return engine.client.networks.prepare_model({"Id": "0" * 64})


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_silent_engine_is_a_fault_that_spent_nothing(silent: Engine, call: Callable[[Engine], object]) -> None:
    with pytest.raises(InfraError) as raised:
        call(silent)
    assert raised.value.cause == "container-never-started"
    assert "ConnectionError" in raised.value.message


def test_cleaning_up_never_raises(silent: Engine) -> None:
    assert silent.remove_network(network(silent), "gate")
    assert silent.remove(gone(silent))
    assert silent.stop("pi-job-x", 1)
    assert silent.clear_network("pi-job-x-net")


def test_connecting_names_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    with pytest.raises(InfraError, match=r"tcp://127\.0\.0\.1:1 does not answer"):
        Engine.connect()


def test_an_address_that_is_none_is_a_fault_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:notaport")
    with pytest.raises(InfraError, match="does not answer"):
        Engine.connect()


def test_a_fault_is_described_without_the_request_in_it() -> None:
    answer = requests.Response()
    answer.status_code = 409
    error = docker.errors.APIError("env ANTHROPIC_API_KEY=secret", response=answer, explanation="/home/alice is busy")

    assert describe(error) == "APIError 409 /home/[redacted] is busy"


class AbsentImages:
    """Stands where the SDK keeps images: there is none, and nobody may fetch one."""

    def get(self, reference: str) -> None:
        """Not there."""
        raise docker.errors.ImageNotFound(f"no {reference}")

    def pull(self, *_: object) -> None:
        """A name with a mistake in it would run a stranger's image."""
        raise AssertionError("an image was pulled")


@pytest.mark.example("ch3 E5", "looking for an image never fetches it")
def test_an_absent_image_is_refused_and_never_pulled() -> None:
    class Client:
        images = AbsentImages()

    found = Engine(Client()).image("pi-job:nowhere")  # type: ignore[arg-type]
    assert isinstance(found, Refused)
    assert found.reason is Reason.JOB_IMAGE_MISSING

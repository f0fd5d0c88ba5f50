"""From the start of a container to the first model request: our runner beside the bare agent, interleaved."""

import json
import secrets
import time
from pathlib import Path
from typing import Any

import docker

from benchmarks.measure import Figure, figure
from benchmarks.scratch import scratch
from pidispatch.box.spec import ContainerSpec, JobUser, create_arguments
from tests.image.assemble import ensure_job, ensure_model
from tests.support.model import ModelContainer, write_overlay
from tests.support.repository import ORDINARY_USER, make_repository
from tests.support.spec import agent_spec

PAIRS = 20
BOUND_MS = 100
PROMPT = "Say hello."
_CLI = "/app/node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js"
#: The agent alone, given what it needs, with its prompt written at once and its input kept open.
_BARE = (
    "mkdir -p /home/pi/.pi/agent && cp /opt/pi-global/models.json /home/pi/.pi/agent/ && "
    f"(printf '%s\\n' '{json.dumps({'type': 'prompt', 'message': PROMPT})}'; exec sleep 60) | "
    f"/usr/local/bin/node {_CLI} --mode rpc --offline -ne -ns -np --no-session --provider anthropic --model say"
)


def first_request(client: docker.DockerClient) -> Figure:
    """p50 of the runner minus p50 of the bare agent in a container with the same arguments."""
    job_image, model_image = ensure_job(client), ensure_model(client)
    with scratch() as folder:
        place = Path(folder)
        repository = make_repository(place / "repository")
        overlay = write_overlay(place / "overlay")
        (place / "job").mkdir()
        (place / "job" / "prompt.md").write_text(PROMPT)
        model = ModelContainer(client, model_image, place)
        network = client.networks.get(f"{model.name}-net")
        ours: list[float] = []
        bare: list[float] = []
        try:
            for _ in range(PAIRS):
                for samples, extra in (
                    (ours, {}),
                    (bare, {"entrypoint": ["/bin/sh", "-c", _BARE]}),
                ):
                    spec = _spec(job_image, place, repository.path, overlay, model)
                    arguments = create_arguments(spec) | {"network": network.name} | extra
                    samples.append(_first_request(client, arguments, spec, model))
        finally:
            model.remove()
    return figure("first request", "runner beside `pi --mode rpc`, from container start", ours, bare, BOUND_MS)


def _spec(image: str, place: Path, folder: Path, overlay: Path, model: ModelContainer) -> ContainerSpec:
    mounts = {"/job": place / "job", "/workspace": folder, "/opt/pi-global": overlay}
    user = JobUser(uid=ORDINARY_USER[0], gid=ORDINARY_USER[1], explicit=True)
    key = f"key-{secrets.token_hex(6)}"
    return agent_spec(image, mounts, model="say", neighbour=model.name, key=key, user=user)


def _first_request(
    client: docker.DockerClient, arguments: dict[str, Any], spec: ContainerSpec, model: ModelContainer
) -> float:
    container = client.containers.create(**arguments)
    try:
        began = time.time()
        container.start()
        requests = model.log.wait_for(1, 60, key=spec.env["ANTHROPIC_API_KEY"])
        return requests[0].time - began
    finally:
        container.remove(force=True)

"""Our call of a container beside the same raw sequence of engine calls, interleaved."""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker

from benchmarks.measure import Figure, figure
from benchmarks.scratch import scratch
from pidispatch.box.abort import Abort
from pidispatch.box.engine import Engine
from pidispatch.box.images import build_image, pack
from pidispatch.box.run import Neighbour, run_container
from pidispatch.box.spec import ContainerSpec, create_arguments
from pidispatch.config.clock import SystemClock
from tests.image.assemble import ensure_probe
from tests.support.spec import plain_spec

PAIRS = 120
BOUND_MS = 20
_DOCKERFILE = """ARG BASE
FROM ${BASE}
USER 1001:1001
LABEL dev.pi-dispatch.capabilities="anyUid"
ENTRYPOINT ["/bin/echo", "{\\"event\\":\\"exit\\",\\"jobId\\":\\"bench\\",\\"code\\":0}"]
"""


def call_overhead(client: docker.DockerClient) -> Figure:
    """p50 of `run_container` minus p50 of: network, connect, create, attach, start, wait, inspect, removals."""
    ours, raw = [], []
    with stage(client) as (folder, image, neighbour):
        engine = Engine(client)
        for _ in range(PAIRS):
            ours.append(_ours(engine, plain_spec(image, folder, network=True), neighbour))
            raw.append(raw_call(client, plain_spec(image, folder, network=True), neighbour))
    what = "run_container beside the same engine calls made by hand"
    return figure("container call", what, ours, raw, BOUND_MS)


@contextmanager
def stage(client: docker.DockerClient) -> Iterator[tuple[Path, str, Neighbour]]:
    """A folder, the image of a container that says its end and ends, and a running neighbour."""
    with scratch() as folder:
        image = _stub_image(client, Path(folder))
        own = client.networks.create(f"pi-bench-{uuid.uuid4().hex[:8]}", internal=True)
        gate = client.containers.create(ensure_probe(client), ["sleep", "3600"], name=own.name, network=own.name)
        gate.start()
        try:
            yield Path(folder), image, Neighbour(id=str(gate.id), alias=str(own.name))
        finally:
            gate.remove(force=True)
            own.remove()
            client.images.remove(image, force=True)


def _stub_image(client: docker.DockerClient, folder: Path) -> str:
    (folder / "Dockerfile").write_text(_DOCKERFILE)
    tag = f"pi-bench:{uuid.uuid4().hex[:12]}"
    build_image(client, pack({"Dockerfile": folder / "Dockerfile"}), tag, {"BASE": ensure_probe(client)})
    return tag


def _ours(engine: Engine, spec: ContainerSpec, neighbour: Neighbour) -> float:
    began = time.perf_counter()
    end = run_container(engine, spec, neighbour, abort=Abort(), progress=lambda _: None, clock=SystemClock())
    took = time.perf_counter() - began
    if end.code != 0 or '"exit"' not in end.tail:
        raise RuntimeError(f"the benchmark's own container failed: {end}")
    return took


def raw_call(client: docker.DockerClient, spec: ContainerSpec, neighbour: Neighbour) -> float:
    """Seconds of the engine calls of one container, made by hand."""
    began = time.perf_counter()
    network = client.networks.create(
        str(spec.network),
        driver="bridge",
        internal=True,
        options={"com.docker.network.bridge.inhibit_ipv4": "true"},
    )
    network.connect(neighbour.id, aliases=[neighbour.alias])
    container = client.containers.create(**create_arguments(spec))
    stream = container.attach(stdout=True, stderr=True, stream=True, logs=True)
    container.start()
    status = container.wait()
    output = b"".join(stream)
    client.api.inspect_container(str(container.id))
    network.disconnect(neighbour.id, force=True)
    container.remove(force=True)
    network.remove()
    took = time.perf_counter() - began
    if status["StatusCode"] != 0 or b"exit" not in output:
        raise RuntimeError(f"the benchmark's raw container failed: {status} {output!r}")
    return took

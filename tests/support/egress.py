"""The real egress proxy of a test's own, with servers behind it and jobs in front of it."""

import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import docker
from docker.models.containers import Container
from docker.models.networks import Network

from pidispatch.box.egress import EgressProxy, EgressStatus, out_network
from pidispatch.box.images import build_image, pack
from pidispatch.box.run import Neighbour
from pidispatch.config.allowlist import ALLOWLIST, PRIVATE
from pidispatch.config.clock import SystemClock
from pidispatch.values.limits import Limits
from tests.support.box import Box
from tests.support.program import PROGRAM, RUN_S, Ran

NETWORK_PROGRAMS = Path(__file__).resolve().parents[1] / "fakes" / "network"
#: Seconds until an edit, a restart or a server must have shown.
SHOWN_S = 30
ENGINE_DIR = Path(os.environ.get("PI_TEST_ENGINE_DIR", "/var/tmp/pi-dispatch-engine"))
T = TypeVar("T")


def until(probe: Callable[[], T | None], what: str) -> T:
    """Ask until the answer is something true."""
    deadline = time.monotonic() + SHOWN_S
    pace = threading.Event()
    while not (found := probe()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {SHOWN_S} s for {what}")
        pace.wait(0.1)
    return found


def probe_image(client: docker.DockerClient, job_image: str) -> str:
    """The job image with the probe as its program: whatever a job is given, it tries the ways out."""
    dockerfile = (
        "ARG BASE\nFROM ${BASE}\nCOPY probe.py servers.py /opt/network/\n"
        'ENTRYPOINT ["/usr/bin/python3", "/opt/network/probe.py"]\n'
    )
    folder = NETWORK_PROGRAMS
    tag = f"pi-test-network:{job_image.rpartition(':')[2]}-{os.getpid()}"
    names = ("probe.py", "servers.py")
    with _file(dockerfile) as path:
        context = pack({"Dockerfile": path, **{name: folder / name for name in names}})
    build_image(client, context, tag, {"BASE": job_image})
    return tag


@contextmanager
def _file(text: str) -> Iterator[Path]:
    path = Path(f"/tmp/pi-test-{secrets.token_hex(6)}")
    path.write_text(text)
    try:
        yield path
    finally:
        path.unlink()


class Proxy:
    """A proxy with a name and a folder of its own. Nothing is there until `up`."""

    def __init__(self, client: docker.DockerClient, base: str, folder: Path) -> None:
        self.client = client
        self.base = base
        self.name = f"pi-test-egress-{secrets.token_hex(4)}"
        self.folder = folder / "egress"
        self.egress = EgressProxy(client, self.name, SystemClock())

    def lists(self, allowed: str, private: str = "") -> None:
        """Write both lists in place."""
        if not self.folder.exists():
            self.folder.mkdir(mode=0o755)
        for name, text in ((ALLOWLIST, allowed), (PRIVATE, private)):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o644)

    def up(self) -> None:
        """Have it run with the lists of the folder."""
        self.egress.up(self.folder, self.base, lambda _: None)

    def call(self, *arguments: str, **changes: str) -> Ran:
        """`pi-dispatch egress ...` for this proxy."""
        given = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
        given |= {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder.parent),
            "LANG": "C.UTF-8",
            "DOCKER_HOST": os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock"),
            "PI_EGRESS_PROXY": self.name,
            "PI_EGRESS_DIR": str(self.folder),
        }
        done = subprocess.run(
            [PROGRAM, "egress", *arguments],
            env=given | changes,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=RUN_S,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    @property
    def container(self) -> Container:
        """Its container as it is now."""
        return self.client.containers.get(self.name)

    @property
    def log(self) -> str:
        """Everything it has said."""
        return self.container.logs().decode()

    def ask(self, target: str) -> str:
        """The status with which it answers `CONNECT target`, asked from inside of it."""
        code = (
            "import socket, sys\nlink = socket.create_connection(('127.0.0.1', 3128), 5)\n"
            "link.sendall(f'CONNECT {sys.argv[1]} HTTP/1.1\\r\\n\\r\\n'.encode())\n"
            "print(link.recv(99).split()[1].decode())"
        )
        _, output = self.container.exec_run(["/usr/bin/python3", "-c", code, target])
        assert isinstance(output, bytes)
        return output.decode().strip()

    def until_status(self, holds: Callable[[EgressStatus], bool], what: str) -> EgressStatus:
        """Its account of itself, once that `holds`."""

        def found() -> EgressStatus | None:
            status = self.egress.status()
            return status if holds(status) else None

        return until(found, what)

    def remove(self) -> None:
        """Remove it and its network, whoever made them."""
        for container in self.client.containers.list(all=True, ignore_removed=True):
            if container.name == self.name:
                container.remove(force=True, v=True)
        for network in self.client.networks.list(names=[out_network(self.name)]):
            network.remove()


class Server:
    """A container of the servers' program on `network`; it is reached by its name, which is a name of DNS too."""

    def __init__(
        self, client: docker.DockerClient, image: str, network: str, *arguments: str, aliases: tuple[str, ...] = ()
    ) -> None:
        self.name = f"pi-test-site-{secrets.token_hex(4)}.test"
        self.container = client.containers.create(
            image,
            ["/opt/network/servers.py", *arguments],
            name=self.name,
            entrypoint=["/usr/bin/python3"],
            network=network,
            networking_config={network: client.api.create_endpoint_config(aliases=list(aliases))},
            init=True,
        )
        self.container.start()
        until(lambda: "listening" in self.log, f"{self.name} to listen")
        self.container.reload()
        self.address: str = self.container.attrs["NetworkSettings"]["Networks"][network]["IPAddress"]

    @property
    def log(self) -> str:
        """One line for each request that reached it."""
        return self.container.logs().decode()

    def remove(self) -> None:
        """End and remove it."""
        self.container.remove(force=True, v=True)


@contextmanager
def open_network(client: docker.DockerClient) -> Iterator[Network]:
    """An ordinary network of the engine, as a container without any wall would be on."""
    network = client.networks.create(f"pi-test-open-{secrets.token_hex(4)}", driver="bridge")
    try:
        yield network
    finally:
        network.remove()


def from_outside(client: docker.DockerClient, image: str, network: str, *probes: list[Any], **more: Any) -> list[str]:
    """What the same probes find from a container without walls on `network`."""
    container = client.containers.create(
        image, network=network, environment={"PROBES": json.dumps(probes)}, init=True, **more
    )
    try:
        container.start()
        container.wait(timeout=60)
        found: list[str] = json.loads(container.logs())
    finally:
        container.remove(force=True, v=True)
    return found


def from_a_job(box: Box, image: str, proxy: Proxy, *probes: list[Any]) -> list[str]:
    """What the probes find from a job's container, made and run by the product's own code."""
    spec = box.spec(image, Limits(), network=True)
    spec = spec.model_copy(update={"env": {**spec.env, "PROBES": json.dumps(probes)}})
    neighbour = box.engine.neighbour(proxy.name)
    assert isinstance(neighbour, str), neighbour
    end = box.run(spec, neighbour=Neighbour(id=neighbour, alias=proxy.name))
    assert end.code == 0, end.tail
    assert box.left(spec) == []
    found: list[str] = json.loads(end.tail)
    return found


@contextmanager
def host_service() -> Iterator[int]:
    """A server of the machine the engine runs on, listening on every address; its port."""
    command = [sys.executable, str(NETWORK_PROGRAMS / "servers.py"), "http", "0.0.0.0", "0"]
    holder = ENGINE_DIR / "holder.pid"
    if os.environ.get("DOCKER_HOST") == f"unix://{ENGINE_DIR}/engine.sock" and holder.exists():
        # This engine has a network of its own, and there the machine is whatever runs in it.
        command = ["nsenter", "-t", holder.read_text().strip(), "--net", *command]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline().split()[1])
        finally:
            process.terminate()

"""Containers run by the product's own code, below the program, with a small image whose program is a test's."""

import subprocess
import threading
import uuid
from pathlib import Path

import docker
import pytest

from pidispatch.box.abort import Abort
from pidispatch.box.engine import Engine
from pidispatch.box.images import build_image, pack
from pidispatch.box.run import ContainerEnd, Hooks, Neighbour, run_container
from pidispatch.box.spec import ContainerSpec
from pidispatch.config.clock import SystemClock
from pidispatch.values.limits import Limits
from pidispatch.values.progress import ContainerStarted, Progress
from tests.image.assemble import ensure_probe
from tests.support.engine import left_of
from tests.support.spec import plain_spec

ENGINE_SCRIPTS = Path(__file__).parents[1] / "engine"


def program_image(client: docker.DockerClient, folder: Path, script: str, mode: int = 0o755, more: str = "") -> str:
    """An image whose entry point is the shell script `script`; the base is the busybox of the tests.

    Its labels say what a job image says, so that the whole program can run it. `more`: further lines of its Dockerfile.
    """
    (folder / "entry").write_text(script)
    (folder / "Dockerfile").write_text(
        f"ARG BASE\nFROM ${{BASE}}\nCOPY entry /entry\nRUN chmod {mode:o} /entry\n{more}\nUSER 1001:1001\n"
        'LABEL dev.pi-dispatch.capabilities="anyUid"\nENTRYPOINT ["/entry"]\n'
    )
    tag = f"pi-test-program:{uuid.uuid4().hex[:12]}"
    context = pack({"Dockerfile": folder / "Dockerfile", "entry": folder / "entry"})
    build_image(client, context, tag, {"BASE": ensure_probe(client)})
    return tag


class Box:
    """Runs containers of scripts with the product's own code."""

    def __init__(self, client: docker.DockerClient, folder: Path) -> None:
        self.client = client
        self.engine = Engine(client)
        self.folder = folder
        self.told: list[Progress] = []
        self.images: list[str] = []
        self.started = threading.Event()

    def spec(self, image: str, limits: Limits, *, network: bool = False) -> ContainerSpec:
        """A job's description with empty inputs."""
        return plain_spec(image, self.folder, limits=limits, network=network)

    def image(self, script: str, mode: int = 0o755) -> str:
        """An image that is removed after the test."""
        self.images.append(program_image(self.client, self.folder, script, mode))
        return self.images[-1]

    def run(
        self,
        spec: ContainerSpec,
        abort: Abort | None = None,
        neighbour: Neighbour | None = None,
        hooks: Hooks | None = None,
    ) -> ContainerEnd:
        """Run it; `started` is set once it runs."""
        return run_container(
            self.engine, spec, neighbour, abort=abort or Abort(), progress=self._tell, clock=SystemClock(), hooks=hooks
        )

    def _tell(self, progress: Progress) -> None:
        self.told.append(progress)
        if isinstance(progress, ContainerStarted):
            self.started.set()

    def left(self, spec: ContainerSpec) -> list[str]:
        """What is left of a job on the engine."""
        return left_of(self.client, spec.name)


def engine_process(holder: int) -> int:
    """Pid of the engine itself below the process that holds its namespaces."""
    pids = [holder]
    for pid in pids:
        if Path(f"/proc/{pid}/comm").read_text().strip() == "dockerd":
            return pid
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            pids += [int(child) for child in children.read_text().split()]
    raise AssertionError("the engine has no process of the name dockerd")


class OwnEngine:
    """An engine of a test's own, which may be killed."""

    def __init__(self, tmp_path: Path) -> None:
        # Short, because the path of a unix socket is bounded.
        self.folder = Path(f"/tmp/pi-e-{uuid.uuid4().hex[:8]}")
        self.client: docker.DockerClient | None = None

    def __enter__(self) -> tuple[docker.DockerClient, int]:
        return self.start()

    def start(self) -> tuple[docker.DockerClient, int]:
        """Start it, also again after `stop`: its images and its ended containers are still there."""
        done = subprocess.run(
            [ENGINE_SCRIPTS / "up", str(self.folder)], capture_output=True, text=True, check=False, timeout=120
        )
        if done.returncode != 0:
            pytest.fail(f"an engine of the test's own could not be started:\n{done.stderr}", pytrace=False)
        self.host = done.stdout.strip().splitlines()[-1].removeprefix("DOCKER_HOST=")
        self.client = docker.DockerClient(base_url=self.host, version="auto", timeout=60)
        return self.client, int((self.folder / "holder.pid").read_text())

    def stop(self, *options: str) -> None:
        """End it, as whoever administers the machine would."""
        if self.client is not None:
            self.client.close()
        subprocess.run([ENGINE_SCRIPTS / "down", *options, str(self.folder)], check=True, capture_output=True)

    def __exit__(self, *_: object) -> None:
        self.stop("--purge")

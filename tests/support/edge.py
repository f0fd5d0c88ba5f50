"""The edge GitHub where a real proxy stands between it and a job: a container that has its names and ends TLS."""

import secrets

import docker
from docker.models.containers import Container

from tests.fakes.github import HOSTS
from tests.fakes.github.edge import Edge
from tests.support.server import until

#: Seconds the container may take to listen.
_UP_S = 30.0


class EdgeContainer:
    """A way to an edge, on one network. A job that is to trust it needs the image `ensure_edge_job`."""

    def __init__(self, client: docker.DockerClient, image: str, edge: Edge, network: str) -> None:
        """Start it, from the scripted model's image; the edge must listen. Raises `RuntimeError`."""
        self.name = f"pi-test-edge-{secrets.token_hex(4)}"
        self.container: Container = client.containers.create(
            image,
            ["--certificate", "/opt/edge/site.pem", "--socket", f"/edge/{edge.socket.name}"],
            entrypoint=["/usr/bin/python3", "-m", "model.relay"],
            name=self.name,
            network=network,
            networking_config={network: client.api.create_endpoint_config(aliases=[*HOSTS])},
            mounts=[docker.types.Mount("/edge", str(edge.socket.parent), type="bind", read_only=True)],
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            init=True,
        )
        self.container.start()
        # Asked again and again, since the SDK leaves the connection of a followed log open.
        until(self._listens, "the way to the edge", _UP_S)

    def _listens(self) -> bool:
        if b"listening" in self.container.logs():
            return True
        self.container.reload()
        if self.container.status in ("created", "running"):
            return False
        raise RuntimeError(f"the way to the edge did not come up: {self.container.logs().decode()}")

    def remove(self) -> None:
        """End and remove it."""
        self.container.remove(force=True, v=True)

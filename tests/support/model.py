"""The scripted model as a container: the one neighbour that a job can reach."""

import json
import secrets
from collections.abc import Iterable
from pathlib import Path

import docker
from docker.models.containers import Container
from docker.models.networks import Network

from tests.fakes.github import HOSTS
from tests.fakes.model.log import RequestLog
from tests.fakes.model.scenarios import CATALOGUE

#: Seconds the container may take to listen.
UP_S = 30
#: The host by which the overlay names it.
MODEL_HOST = "model.test"
#: US dollars per million tokens, as the overlay says them and tests reckon with them.
PRICES = {"input": 1, "output": 5, "cacheRead": 0.1, "cacheWrite": 1.25}
#: The edge GitHub under its real names, by TLS.
_EDGE = ["--certificate", "/opt/edge/site.pem", *(f"--relay={host}=/edge/edge.sock" for host in HOSTS)]


class ModelContainer:
    """A running scripted model: a job's one neighbour, whose `name` is `PI_EGRESS_PROXY`, or a host behind a proxy."""

    def __init__(self, client: docker.DockerClient, image: str, folder: Path, behind: str | None = None) -> None:
        """Start it; its request log lies in `folder`, which must exist.

        `behind`: a network on which it is the host `model.test`, by plain HTTP on port 443.
        """
        self.name = f"pi-test-model-{secrets.token_hex(4)}"
        self._client = client
        logs, edge = folder / "model-log", folder / "edge"
        logs.mkdir()
        logs.chmod(0o777)
        edge.mkdir()
        self.log = RequestLog(logs / "requests.jsonl")
        #: Where an edge GitHub has to listen to be found by jobs; as long as none does, they are told so (502).
        self.edge_socket = edge / "edge.sock"
        # Without a network of its own it could not be connected to another one later.
        self._network = None if behind else self._own_network()
        network = behind or f"{self.name}-net"
        aliases = [MODEL_HOST] if behind else []
        self.container: Container = client.containers.create(
            image,
            ["--listen", f"0.0.0.0:{443 if behind else 3128}", "--log", "/log/requests.jsonl", *_EDGE],
            name=self.name,
            network=network,
            networking_config={network: client.api.create_endpoint_config(aliases=aliases)},
            mounts=[
                docker.types.Mount("/log", str(logs), type="bind"),
                docker.types.Mount("/edge", str(edge), type="bind", read_only=True),
            ],
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            init=True,
        )
        self.container.start()
        self._await_listening()

    def _own_network(self) -> Network:
        return self._client.networks.create(
            f"{self.name}-net", internal=True, options={"com.docker.network.bridge.inhibit_ipv4": "true"}
        )

    def _await_listening(self) -> None:
        # Asked again and again, since the SDK leaves the connection of a followed log open.
        self.log.wait_until(self._listens, UP_S, "the scripted model to listen")

    def _listens(self) -> bool:
        if b"listening" in self.container.logs():
            return True
        self.container.reload()
        if self.container.status in ("created", "running"):
            return False
        raise RuntimeError(f"the scripted model did not come up: {self.container.logs().decode()}")

    def remove(self) -> None:
        """End and remove it and its network."""
        self.container.remove(force=True, v=True)
        if self._network is not None:
            self._network.remove()


def write_overlay(folder: Path, models: Iterable[str] = CATALOGUE) -> Path:
    """An overlay whose `models.json` sends two of pi's own providers to the scripted model."""
    rows = [{"id": model, "contextWindow": 128000, "maxTokens": 4096, "cost": PRICES} for model in models]
    document = {
        "providers": {
            "anthropic": {"baseUrl": f"http://{MODEL_HOST}:443", "api": "anthropic-messages", "models": rows},
            "openai": {"baseUrl": f"http://{MODEL_HOST}:443/v1", "api": "openai-completions", "models": rows},
        }
    }
    folder.mkdir()
    # The job's user reads it through the mount.
    folder.chmod(0o755)
    (folder / "models.json").write_text(json.dumps(document))
    (folder / "models.json").chmod(0o644)
    return folder

"""The scripted model as a container: the one neighbour that a job can reach."""

import json
import secrets
from collections.abc import Iterable
from pathlib import Path

import docker
from docker.models.containers import Container

from tests.fakes.model.log import RequestLog
from tests.fakes.model.scenarios import CATALOGUE

#: Seconds the container may take to listen.
UP_S = 30
#: US dollars per million tokens, as the overlay says them and tests reckon with them.
PRICES = {"input": 1, "output": 5, "cacheRead": 0.1, "cacheWrite": 1.25}


class ModelContainer:
    """A running scripted model. `name` is what `PI_EGRESS_PROXY` is set to."""

    def __init__(self, client: docker.DockerClient, image: str, folder: Path) -> None:
        """Start it; its request log lies in `folder`, which must exist."""
        self.name = f"pi-test-model-{secrets.token_hex(4)}"
        self._client = client
        logs = folder / "model-log"
        logs.mkdir()
        logs.chmod(0o777)
        self.log = RequestLog(logs / "requests.jsonl")
        # Without a network of its own it could not be connected to another one later.
        self._network = client.networks.create(
            f"{self.name}-net", internal=True, options={"com.docker.network.bridge.inhibit_ipv4": "true"}
        )
        self.container: Container = client.containers.create(
            image,
            ["--listen", "0.0.0.0:3128", "--log", "/log/requests.jsonl"],
            name=self.name,
            network=self._network.name,
            mounts=[docker.types.Mount("/log", str(logs), type="bind")],
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            init=True,
        )
        self.container.start()
        self._await_listening()

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
        self._network.remove()


def write_overlay(folder: Path, models: Iterable[str] = CATALOGUE) -> Path:
    """An overlay whose `models.json` sends two of pi's own providers to the scripted model."""
    rows = [{"id": model, "contextWindow": 128000, "maxTokens": 4096, "cost": PRICES} for model in models]
    document = {
        "providers": {
            "anthropic": {"baseUrl": "http://model.test:443", "api": "anthropic-messages", "models": rows},
            "openai": {"baseUrl": "http://model.test:443/v1", "api": "openai-completions", "models": rows},
        }
    }
    folder.mkdir()
    # The job's user reads it through the mount.
    folder.chmod(0o755)
    (folder / "models.json").write_text(json.dumps(document))
    (folder / "models.json").chmod(0o644)
    return folder

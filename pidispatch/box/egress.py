"""The egress proxy on the engine: brought up, asked how it is, taken down (docs/explanation/egress.md).

Whatever carries the proxy's name without its label is somebody else's and is never touched.
"""

import hashlib
import ipaddress
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import docker
import docker.errors
from docker.models.containers import Container
from docker.models.networks import Network
from docker.types import LogConfig, Mount

from pidispatch.box import images
from pidispatch.box.faults import tried
from pidispatch.config.text import printable, printable_block
from pidispatch.values import names
from pidispatch.values.base import Value
from pidispatch.values.clock import Clock
from pidispatch.values.errors import ConfigError, InfraError

#: On the proxy's container and network: what it was made from, so that a later call sees what has changed.
LABEL: Final = "pi.dispatch.egress"
DEFAULT_NAME: Final = names.EGRESS_PROXY
#: The base of the shipped Dockerfile, for messages.
DEFAULT_BASE: Final = "debian:12-slim"
#: Networks that the rules deny by themselves.
ALREADY_PRIVATE: Final = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")

#: Debian's user `proxy`.
_UID: Final = 13
_LISTS: Final = "/etc/pi-dispatch/egress"
_PROGRAM: Final = "/opt/egress/proxy.py"
_MEMORY: Final = "256m"
_PIDS: Final = 64
#: Seconds the proxy may take to accept, and those between two questions.
_UP_S, _PACE_S = 30.0, 0.1
_STOP_S: Final = 5

Did = Literal["kept", "started", "created", "replaced"]
Progress = Callable[[str], None]


class RefusedEdit(Value):
    """An edit of the lists that the proxy did not take."""

    at: str
    faults: tuple[str, ...]


class EgressStatus(Value):
    """What the engine and the proxy itself say of it."""

    #: There is a container of this name.
    present: bool
    #: It was made by `up`; of another one nothing more is known than whether it runs.
    ours: bool = False
    running: bool = False
    accepting: bool = False
    allowed: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    #: Since when these lists are in force, in UTC.
    since: str | None = None
    refused: RefusedEdit | None = None


def out_network(name: str) -> str:
    """The network by which the proxy `name` reaches the outside."""
    return f"{name.removesuffix('-proxy') if name == DEFAULT_NAME else name}-out"


def image_tag() -> str:
    """The proxy's image, named by everything of ours that goes into it."""
    return f"pi-dispatch-egress:{hashlib.sha256(images.egress_context_tar()).hexdigest()[:16]}"


class EgressProxy:
    """The proxy `name` on one engine. Every method raises `InfraError` where the engine does not answer."""

    def __init__(self, client: docker.DockerClient, name: str, clock: Clock) -> None:
        self._client = client
        self._name = name
        self._clock = clock

    def up(self, folder: Path, base: str | None, progress: Progress) -> Did:
        """Have it run and accept, with the lists of `folder`, and say what was done for that.

        Raises `ConfigError` for a name that is taken and an absent `base`; `InfraError` when jobs are connected to a
        proxy that would have to be replaced, and when it does not come up.
        """
        found = self._find()
        image = self._image(base, progress)
        with images.engine_faults(f"bring up {self._name}"):
            network = self._network() or self._make_network()
            wanted = self._arguments(image, folder, network)
            did: Did = "kept"
            if found is not None and found.labels[LABEL] != wanted["labels"][LABEL]:
                self._refuse_while_used(found, "replace")
                found.remove(force=True, v=True)
                found, did = None, "replaced"
            if found is None:
                did = "created" if did == "kept" else did
                found = self._client.containers.create(**wanted)
            if found.attrs["State"].get("Running") is not True:
                did = "started" if did == "kept" else did
                found.start()
        self._wait_until_it_accepts(found)
        return did

    def down(self) -> bool:
        """Remove it and its network; whether anything was there. Raises `InfraError` while jobs are connected."""
        container, network = self._find(), self._network()
        with images.engine_faults(f"take down {self._name}"):
            if container is not None:
                self._refuse_while_used(container, "take down")
                tried(lambda: container.stop(timeout=_STOP_S))
                container.remove(force=True, v=True)
        if network is not None and (failed := tried(network.remove)):
            raise InfraError(
                f"{self._name} is removed, but not its network {network.name} ({failed}). Disconnect what else is on "
                "it and call again",
                "egress-network",
            )
        return container is not None or network is not None

    def status(self) -> EgressStatus:
        """What is known of it. Never raises because of the proxy itself."""
        with images.engine_faults(f"look at {self._name}"):
            container = self._get()
        if container is None:
            return EgressStatus(present=False)
        state = container.attrs["State"]
        running = state.get("Running") is True and state.get("Restarting") is not True
        ours = LABEL in container.labels
        known = EgressStatus(present=True, ours=ours, running=running)
        if not (ours and running):
            return known
        with images.engine_faults(f"ask {self._name}"):
            return self._ask(container) or known

    def logs(self, lines: int) -> str:
        """The end of its log, fit for a terminal."""
        with images.engine_faults(f"read the log of {self._name}"):
            container = self._get()
            text = container.logs(tail=lines).decode(errors="replace") if container is not None else ""
        return printable_block(text.rstrip())

    def _get(self) -> Container | None:
        try:
            return self._client.containers.get(self._name)
        except docker.errors.NotFound:
            return None

    def _find(self) -> Container | None:
        """The container, which must be ours."""
        with images.engine_faults(f"look for {self._name}"):
            container = self._get()
        if container is not None and LABEL not in container.labels:
            raise _taken("container", self._name)
        return container

    def _network(self) -> Network | None:
        """The way out, which must be ours."""
        name = out_network(self._name)
        with images.engine_faults(f"look for {name}"):
            # A filter matches parts of names too.
            found = [one for one in self._client.networks.list(names=[name]) if one.name == name]
        if not found:
            return None
        if LABEL not in (found[0].attrs.get("Labels") or {}):
            raise _taken("network", name)
        return found[0]

    def _make_network(self) -> Network:
        return self._client.networks.create(out_network(self._name), driver="bridge", labels={LABEL: self._name})

    def _image(self, base: str | None, progress: Progress) -> str:
        """The image's id; built where the engine has none, and on `base` where one is named."""
        tag = image_tag()
        if base is None:
            with images.engine_faults(f"look for {tag}"):
                try:
                    return str(self._client.images.get(tag).id)
                except docker.errors.ImageNotFound:
                    progress(f"building {tag} on {DEFAULT_BASE} (needs a network)")
        else:
            images.require_present(self._client, base)
            progress(f"building {tag} on {base}")
        arguments = {} if base is None else {"BASE": base}
        try:
            return images.build_image(self._client, images.egress_context_tar(), tag, arguments, progress=progress)
        except InfraError as error:
            raise InfraError(
                f"{error.message}\nWithout a network, build on an image of the engine that has squid and python3: "
                "pi-dispatch egress up --base REF",
                error.cause,
            ) from None

    def _arguments(self, image: str, folder: Path, network: Network) -> dict[str, Any]:
        """Keyword arguments of docker-py's `containers.create`: https://docker-py.readthedocs.io/en/stable/"""
        arguments: dict[str, Any] = {
            "image": image,
            "name": self._name,
            "command": [f"--network={one}" for one in self._engine_networks()],
            "network": network.name,
            "user": f"{_UID}:{_UID}",
            "init": True,
            "read_only": True,
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "pids_limit": _PIDS,
            "mem_limit": _MEMORY,
            "memswap_limit": _MEMORY,
            # It is on the networks of all jobs at once, and must be no router between them.
            "sysctls": {"net.ipv4.ip_forward": "0"},
            "tmpfs": {"/run": f"size=1m,mode=755,uid={_UID},gid={_UID}"},
            # The folder, not its files: an editor puts a new file in the place of the old one.
            "mounts": [Mount(_LISTS, str(folder), type="bind", read_only=True)],
            "log_config": LogConfig(type=LogConfig.types.JSON, config={"max-size": "10m", "max-file": "3"}),
            "restart_policy": {"Name": "unless-stopped"},
            "use_config_proxy": False,
        }
        # By its id: one that was made anew under the old name cannot be joined by a container of the old one.
        made_from = json.dumps([str(network.id), arguments], sort_keys=True, default=str)
        return {**arguments, "labels": {LABEL: hashlib.sha256(made_from.encode()).hexdigest()}}

    def _engine_networks(self) -> list[str]:
        """Subnets of the engine that the rules do not deny by themselves; jobs' own come and go, and count not."""
        pools = [str(pool["Base"]) for pool in self._client.info().get("DefaultAddressPools") or ()]
        networks = [one for one in self._client.networks.list() if not str(one.name).startswith(names.JOB_PREFIX)]
        subnets = [subnet for one in networks for subnet in _subnets(one.attrs)]
        return beyond_private((*pools, *subnets))

    def _refuse_while_used(self, container: Container, what: str) -> None:
        """Jobs that reach nothing any more fail, and may have been paid for."""
        connected = container.attrs["NetworkSettings"]["Networks"]
        jobs = sorted(name for name in connected if name.startswith(names.JOB_PREFIX))
        if container.attrs["State"].get("Running") is True and jobs:
            raise InfraError(
                f"{self._name} is in use, so pi-dispatch does not {what} it: {', '.join(jobs)}. Wait for these jobs to "
                f"end. What a killed one left behind: docker network disconnect -f NETWORK {self._name}",
                "egress-in-use",
            )

    def _ask(self, container: Container) -> EgressStatus | None:
        """The proxy's own account; `None` where it gives none."""
        try:
            code, output = container.exec_run(["/usr/bin/python3", "-E", "-s", _PROGRAM, "--status"])
            if code != 0 or not isinstance(output, bytes):
                return None
            return EgressStatus(present=True, ours=True, running=True, **json.loads(output))
        except (docker.errors.APIError, ValueError, TypeError):
            # It ended between the look and the question, or is of a version that tells other things.
            return None

    def _wait_until_it_accepts(self, container: Container) -> None:
        deadline = self._clock.monotonic() + _UP_S
        pace = threading.Event()
        while not (status := self.status()).accepting:
            container.reload()
            ended = not status.running and container.attrs["RestartCount"] > 0
            if ended or self._clock.monotonic() > deadline:
                raise InfraError(
                    f"{self._name} does not accept connections. The end of its log:\n{self.logs(15)}", "egress-not-up"
                )
            pace.wait(_PACE_S)


def beyond_private(networks: Iterable[str]) -> list[str]:
    """Those of `networks` that lie in none of `ALREADY_PRIVATE`, sorted, each once."""
    private = [ipaddress.ip_network(network) for network in ALREADY_PRIVATE]
    given = {ipaddress.ip_network(network, strict=False) for network in networks}
    return sorted(str(one) for one in given if not any(_inside(one, whole) for whole in private))


def _inside(one: Any, whole: Any) -> bool:
    return one.version == whole.version and bool(one.subnet_of(whole))


def _subnets(network: Mapping[str, Any]) -> list[str]:
    ipam = network.get("IPAM") or {}
    return [str(part["Subnet"]) for part in ipam.get("Config") or () if part.get("Subnet")]


def _taken(kind: str, name: str) -> ConfigError:
    return ConfigError(
        f"There is a {kind} {printable(name)} that pi-dispatch did not make, so it is left alone. Remove it, or name "
        "the proxy otherwise: PI_EGRESS_PROXY=NAME pi-dispatch egress up",
        "egress-name-taken",
    )

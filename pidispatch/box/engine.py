"""The container engine: every call this house makes of it, with its faults in our own words.

Calls: https://docker-py.readthedocs.io/en/stable/ and https://docs.docker.com/reference/api/engine/
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import docker
import docker.errors
from docker.models.containers import Container
from docker.models.networks import Network
from docker.utils.socket import frames_iter_no_tty

from pidispatch.box.egress import DEFAULT_NAME, LABEL
from pidispatch.box.facts import JobContainer
from pidispatch.box.faults import ENGINE_FAULTS, fault, is_conflict, never_started, tried
from pidispatch.box.spec import ContainerSpec, create_arguments
from pidispatch.config.text import scrub
from pidispatch.values import names
from pidispatch.values.base import Value
from pidispatch.values.errors import InfraError
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason

#: Seconds the engine may take for a call of a job's beginning, and for one that watches or ends it.
_PATIENT_S, _BRISK_S = 60, 10
_OTHERWISE = "name the right one with PI_EGRESS_PROXY, or set PI_EGRESS=0 to open the network"
_MISSING = f"bring it up: pi-dispatch egress up; or {_OTHERWISE}"


class ImageFacts(Value):
    """What a job needs to know of its image."""

    digest: str
    capabilities: frozenset[str]
    #: Forges it serves; `None` where it lists none and so shuts none out.
    forges: frozenset[str] | None = None


class EngineFacts(Value):
    """What is known of the engine itself."""

    #: The engine's own id; empty where it gives none.
    id: str = ""
    here: bool
    #: It said what it is in a form that is understood.
    readable: bool
    desktop: bool
    security_options: tuple[str, ...]
    socket_uid: int | None
    socket_gid: int | None


class State(Value):
    """State of a container as the engine tells it."""

    #: `created`, `running`, `exited`, `dead`, ...
    status: str
    exit_code: int
    oom_killed: bool


class Engine:
    """One connection to the engine that `DOCKER_HOST` or the default socket names.

    `brisk` is a second client of the same engine, whose short time-out keeps an engine that hangs from holding up the
    end of a job.
    """

    def __init__(self, client: docker.DockerClient, brisk: docker.DockerClient | None = None) -> None:
        self._client = client
        self._brisk = brisk or client
        self._facts: EngineFacts | None = None

    @classmethod
    def connect(cls) -> "Engine":
        """Connect and ask for the engine's version. Raises `InfraError` where nothing answers."""
        try:
            client = docker.from_env(version="auto", timeout=_PATIENT_S)
            brisk = docker.from_env(version=client.api.api_version, timeout=_BRISK_S)
            # At a socket there is no proxy and no password to be looked for at each call.
            client.api.trust_env = brisk.api.trust_env = _socket_path() is None
            return cls(client, brisk)
        except (*ENGINE_FAULTS, ValueError) as error:
            raise fault(f"the container engine at {scrub(_endpoint())} does not answer", error) from None

    @property
    def client(self) -> docker.DockerClient:
        """The SDK's own client, for this room's image builder."""
        return self._client

    def close(self) -> None:
        """Close the connection."""
        self._client.close()
        self._brisk.close()

    def facts(self) -> EngineFacts:
        """Where the engine runs and how it maps users, asked once. Raises `InfraError`, which is not remembered."""
        if self._facts is None:
            self._facts = self._ask_facts()
        return self._facts

    def _ask_facts(self) -> EngineFacts:
        try:
            info = self._client.info()
        except ENGINE_FAULTS as error:
            raise fault("the container engine does not say what it is", error) from None
        options = info.get("SecurityOptions") if isinstance(info, dict) else None
        socket = _socket_path()
        owner = _socket_owner(socket)
        return EngineFacts(
            id=str(info.get("ID", "")) if isinstance(info, dict) else "",
            here=socket is not None,
            readable=isinstance(options, list) or (isinstance(info, dict) and options is None),
            desktop=isinstance(info, dict) and "desktop" in str(info.get("OperatingSystem", "")).lower(),
            security_options=tuple(str(option) for option in options) if isinstance(options, list) else (),
            socket_uid=owner[0] if owner else None,
            socket_gid=owner[1] if owner else None,
        )

    def image(self, reference: str) -> ImageFacts | Refused:
        """The image `reference`, which is never pulled, or the refusal of a missing one. Raises `InfraError`."""
        try:
            image = self._client.images.get(reference)
        except docker.errors.ImageNotFound:
            return Refused(reason=Reason.JOB_IMAGE_MISSING, detail=f"there is no image {reference!r} on this engine")
        except ENGINE_FAULTS as error:
            raise fault("the container engine does not answer for the image", error) from None
        return ImageFacts(
            digest=str(image.id),
            capabilities=_listed(image.labels, names.LABEL_CAPABILITIES),
            forges=_listed(image.labels, names.LABEL_FORGES) or None,
        )

    def neighbour(self, name: str) -> str | Refused:
        """Id of the running container `name`, or the refusal of a missing or stopped one. Raises `InfraError`."""
        try:
            container = self._client.containers.get(name)
        except docker.errors.NotFound:
            return Refused(
                reason=Reason.EGRESS_PROXY_MISSING,
                detail=f"there is no container {name!r}",
                remedy=_MISSING if name == DEFAULT_NAME else f"start it, or {_OTHERWISE}",
            )
        except ENGINE_FAULTS as error:
            raise fault("the container engine does not answer for the egress proxy", error) from None
        if container.attrs["State"].get("Running") is not True:
            ours = name == DEFAULT_NAME or LABEL in container.labels
            return Refused(
                reason=Reason.EGRESS_PROXY_STOPPED,
                detail=f"the container {name!r} is not running",
                remedy="start it: pi-dispatch egress up" if ours else f"start it: docker start {name}",
            )
        return str(container.id)

    def create_network(self, name: str, deployment: str) -> Network:
        """A network of its own for one job, without a way out. Raises `InfraError` (never started)."""
        try:
            return self._client.networks.create(
                name,
                driver="bridge",
                internal=True,
                # Without it the bridge's gateway, and so every service of this machine, would answer in the box.
                options={"com.docker.network.bridge.inhibit_ipv4": "true"},
                labels={names.LABEL_DEPLOYMENT: deployment},
            )
        except ENGINE_FAULTS as error:
            if not is_conflict(error):
                # An answer that came too late may have left one behind, under a name that is this job's alone.
                tried(lambda: self._brisk.api.remove_network(name))
            raise never_started("the job's network could not be made", error) from None

    def connect_neighbour(self, network: Network, container: str, alias: str) -> None:
        """Connect the one neighbour under `alias`. Raises `InfraError` (never started)."""
        try:
            network.connect(container, aliases=[alias])
        except ENGINE_FAULTS as error:
            raise never_started("the egress proxy could not be connected to the job's network", error) from None

    def remove_network(self, network: Network, neighbour: str) -> str | None:
        """Disconnect the neighbour and remove the network; returns what failed, if anything did."""
        return self.remove_network_named(str(network.id), neighbour)

    def remove_network_named(self, network: str, neighbour: str) -> str | None:
        """Like `remove_network`, by the network's id or name; one that is not there is no failure."""
        api = self._brisk.api
        left = tried(lambda: api.disconnect_container_from_network(neighbour, network, force=True))
        return tried(lambda: api.remove_network(network)) or left

    def create(self, spec: ContainerSpec) -> Container:
        """Create the container of `spec`; nothing is pulled. Raises `InfraError` (never started)."""
        try:
            return self._client.containers.create(**create_arguments(spec))
        except ENGINE_FAULTS as error:
            if not is_conflict(error):
                self._remove_unstarted(spec.name)
            raise never_started("the job's container could not be created", error) from None

    def _remove_unstarted(self, name: str) -> None:
        """Remove what a creation whose answer was lost may have left: it holds the job's environment."""

        def remove() -> None:
            if self._brisk.api.inspect_container(name)["State"].get("Status") == "created":
                self._brisk.api.remove_container(name, v=True)

        tried(remove)

    def start(self, container: Container) -> None:
        """Start it. Raises `InfraError` (never started)."""
        try:
            container.start()
        except ENGINE_FAULTS as error:
            raise never_started("the job's container could not be started", error) from None

    def output(self, container: Container) -> Iterator[bytes]:
        """Attach to the container, which must not be started yet; both its streams in arrival order.

        Attached when this returns; what comes after ends when the engine ends it. Raises `InfraError` (never started);
        iterating raises docker-py's own faults.
        """
        asked = {"stdout": 1, "stderr": 1, "stream": 1, "logs": 1}
        try:
            return _frames(self._client.api.attach_socket(str(container.id), params=asked))
        except ENGINE_FAULTS as error:
            raise never_started("the output of the job's container could not be followed", error) from None

    def last_output(self, container: Container, lines: int) -> Iterator[bytes]:
        """The last lines of an ended container as the engine kept them. Raises docker-py's own faults."""
        kept: Iterator[bytes] = self._brisk.api.logs(
            str(container.id), stdout=True, stderr=True, stream=True, follow=False, tail=lines
        )
        return kept

    def wait(self, container: Container) -> int:
        """Block until the container's next exit; its status. Call before `start`. Raises docker-py's own faults."""
        result = self._client.api.wait(str(container.id), timeout=None, condition="next-exit")
        return int(result["StatusCode"])

    def find(self, name: str) -> Container | None:
        """The container `name`, in any state. Raises `InfraError`."""
        try:
            return self._client.containers.get(name)
        except docker.errors.NotFound:
            return None
        except ENGINE_FAULTS as error:
            raise fault(f"the container engine does not answer for {name}", error) from None

    def job_containers(self, deployment: str) -> tuple[JobContainer, ...]:
        """Every container of the job prefix and of `deployment`, in any state. Raises `InfraError`."""
        api = self._client.api
        try:
            listed = api.containers(all=True, filters={"label": f"{names.LABEL_DEPLOYMENT}={deployment}"})
            found = [JobContainer.of(facts) for one in listed if (facts := _inspected(api, one["Id"])) is not None]
        except ENGINE_FAULTS as error:
            raise fault("the container engine does not list its containers", error) from None
        return tuple(one for one in found if one.name.startswith(names.JOB_PREFIX))

    def job_networks(self, deployment: str) -> tuple[str, ...]:
        """Names of every job's network of `deployment`. Raises `InfraError`."""
        try:
            listed = self._client.api.networks(filters={"label": f"{names.LABEL_DEPLOYMENT}={deployment}"})
        except ENGINE_FAULTS as error:
            raise fault("the container engine does not list its networks", error) from None
        found = [str(one["Name"]) for one in listed]
        return tuple(name for name in found if name.startswith(names.JOB_PREFIX) and name.endswith("-net"))

    def clear_network(self, name: str) -> str | None:
        """Disconnect whatever is on the network `name` and remove it; returns what failed, if anything did."""
        api = self._brisk.api

        def clear() -> None:
            # One that its own job has removed meanwhile is gone.
            with contextlib.suppress(docker.errors.NotFound):
                disconnect_and_remove()

        def disconnect_and_remove() -> None:
            for member in api.inspect_network(name)["Containers"] or {}:
                api.disconnect_container_from_network(member, name, force=True)
            api.remove_network(name)

        return tried(clear)

    def is_gone(self, name: str, deployment: str) -> bool:
        """Whether the engine says that it has no container `name` of this deployment's; false where it says nothing."""
        try:
            container = self.find(name)
        except InfraError:
            return False
        return container is None or container.labels.get(names.LABEL_DEPLOYMENT) != deployment

    def state(self, container: Container) -> State:
        """The container's state now. Raises docker-py's own faults."""
        found: dict[str, Any] = self._brisk.api.inspect_container(str(container.id))["State"]
        return State(
            status=str(found.get("Status", "")),
            exit_code=int(found.get("ExitCode", 0)),
            oom_killed=bool(found.get("OOMKilled", False)),
        )

    def stop(self, name: str, grace_s: int) -> str | None:
        """Stop the container `name`: the polite signal, then after `grace_s` the final one. Returns what failed."""
        return tried(lambda: self._brisk.api.stop(name, timeout=grace_s))

    def remove(self, container: Container) -> str | None:
        """Remove the container, ending it if it still runs. Returns what failed."""
        return tried(lambda: self._brisk.api.remove_container(str(container.id), force=True, v=True))


def _inspected(api: docker.APIClient, container: str) -> dict[str, Any] | None:
    """What the engine says of one container; `None` where it was removed meanwhile."""
    try:
        facts: dict[str, Any] = api.inspect_container(container)
    except docker.errors.NotFound:
        return None
    return facts


def _frames(socket: Any) -> Iterator[bytes]:
    """Chunks of an attached stream. The connection is closed at the end, which the SDK's own stream leaves open."""
    try:
        for _stream, chunk in frames_iter_no_tty(socket):
            yield cast(bytes, chunk)
    finally:
        if (response := getattr(socket, "_response", None)) is not None:
            response.close()
        socket.close()


def _listed(labels: Mapping[str, str], name: str) -> frozenset[str]:
    """The words of a comma-separated label; none for a label that is absent or empty."""
    return frozenset(part.strip() for part in (labels.get(name) or "").split(",") if part.strip())


def _endpoint() -> str:
    return os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"


def _socket_path() -> str | None:
    """Path of the engine's socket on this machine; `None` for an engine behind an address."""
    parts = urlsplit(_endpoint())
    return parts.path if parts.scheme in ("unix", "http+unix") else None


def _socket_owner(path: str | None) -> tuple[int, int] | None:
    if path is None:
        return None
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return (facts.st_uid, facts.st_gid) if stat.S_ISSOCK(facts.st_mode) else None

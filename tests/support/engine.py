"""Questions to the engine that other containers, coming and going meanwhile, cannot spoil."""

import docker

from tests.support.server import until

#: Seconds until the container of a job that was just handed in must run.
RUNNING_S = 60


def left_of(client: docker.DockerClient, name: str) -> list[str]:
    """Containers, in any state, and networks whose names begin with `name`."""
    containers = [found["Names"][0].removeprefix("/") for found in client.api.containers(all=True)]
    networks = [str(found["Name"]) for found in client.api.networks()]
    return [one for one in (*containers, *networks) if one.startswith(name)]


def await_running(client: docker.DockerClient, name: str) -> str:
    """Wait until the container `name` runs; its id."""

    def running() -> str | None:
        found = client.api.containers(filters={"name": f"^/{name}$", "status": "running"})
        return str(found[0]["Id"]) if found else None

    return until(running, f"{name} to run", RUNNING_S)

"""Questions to the engine that other containers, coming and going meanwhile, cannot spoil."""

import docker


def left_of(client: docker.DockerClient, name: str) -> list[str]:
    """Containers, in any state, and networks whose names begin with `name`."""
    containers = [found["Names"][0].removeprefix("/") for found in client.api.containers(all=True)]
    networks = [str(found["Name"]) for found in client.api.networks()]
    return [one for one in (*containers, *networks) if one.startswith(name)]

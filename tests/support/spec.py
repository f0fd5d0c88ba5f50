"""Descriptions of job containers for tests and benchmarks that go below the program."""

import secrets
from collections.abc import Mapping
from pathlib import Path

from pidispatch.box.environment import job_environment
from pidispatch.box.spec import IMAGE_USER, BoxMount, ContainerSpec, JobUser
from pidispatch.values.limits import Limits


def plain_spec(image: str, folder: Path, *, limits: Limits | None = None, network: bool = False) -> ContainerSpec:
    """A job with empty inputs and an empty workspace, both made in `folder`."""
    for place in ("job", "workspace"):
        (folder / place).mkdir(exist_ok=True)
    name = f"pi-job-test-{secrets.token_hex(6)}"
    return _spec(
        name,
        image,
        {"/job": folder / "job", "/workspace": folder / "workspace"},
        user=IMAGE_USER,
        env={"PI_JOB_ID": name},
        limits=limits or Limits(),
        network=network,
    )


def agent_spec(
    image: str,
    mounts: Mapping[str, Path],
    *,
    model: str,
    neighbour: str,
    key: str,
    user: JobUser,
    flow: str | None = None,
) -> ContainerSpec:
    """A job of the real agent, with the scripted model `model` behind `neighbour`."""
    name = f"pi-job-test-{secrets.token_hex(6)}"
    env = job_environment(
        container=name,
        provider="anthropic",
        model=model,
        max_turns=5,
        max_tokens=None,
        user=user,
        neighbour=neighbour,
        forward=(),
        environ={"ANTHROPIC_API_KEY": key},
        flow=flow,
    )
    return _spec(name, image, mounts, user=user, env=env, limits=Limits(), network=True)


def _spec(
    name: str,
    image: str,
    mounts: Mapping[str, Path],
    *,
    user: JobUser,
    env: dict[str, str],
    limits: Limits,
    network: bool,
) -> ContainerSpec:
    return ContainerSpec(
        isolated=True,
        name=name,
        image=image,
        user=user,
        env=env,
        mounts=tuple(BoxMount(source=source, target=target) for target, source in mounts.items()),
        network=f"{name}-net" if network else None,
        deployment="0" * 16,
        limits=limits,
    )

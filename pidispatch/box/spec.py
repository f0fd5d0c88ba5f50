"""The description of a job container, pure and closed: what is not in it cannot reach the engine.

The hardening set is not a choice of the caller. The only way from a description to the engine's arguments is
`create_arguments`, which writes all of it, always (docs/explanation/box.md).
"""

import re
from pathlib import Path
from typing import Any, Final, Literal, Self

from docker.types import Mount as EngineMount
from pydantic import Field, field_validator, model_validator

from pidispatch.values import names
from pidispatch.values.base import Value
from pidispatch.values.limits import Limits
from pidispatch.values.reference import image_reference
from pidispatch.workspace.jobdir import sanitise

#: The only places of the box that something of the host is mounted at, in their order; `True` is read-only.
MOUNT_TARGETS: Final[dict[str, bool]] = {
    "/job": True,
    "/workspace": False,
    "/outbox": False,
    "/session": False,
    "/opt/pi-global": True,
}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(re.escape(names.JOB_PREFIX) + r"[A-Za-z0-9._-]{1,200}")


class BoxMount(Value):
    """A host path bound into the box."""

    source: Path
    target: str

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.target not in MOUNT_TARGETS:
            raise ValueError(f"{self.target} is not a place of the box")
        if not self.source.is_absolute() or ".." in self.source.parts:
            raise ValueError("the source of a mount must be absolute and without '..'")
        return self


class JobUser(Value):
    """The user a job runs as. `explicit` is false for the image's own user, which is then not written out."""

    uid: int = Field(gt=0)
    gid: int = Field(gt=0)
    explicit: bool


IMAGE_USER: Final = JobUser(uid=names.IMAGE_UID, gid=names.IMAGE_UID, explicit=False)


class ContainerSpec(Value):
    """Everything the engine is told about one job container."""

    #: Cannot be false: a description without isolation does not exist.
    isolated: Literal[True]
    name: str
    #: Id of the job, where the name is made of a plain form of it.
    job_id: str | None = None
    #: Which attempt at the job it is, from 1.
    attempt: int = Field(default=1, ge=1)
    image: str
    user: JobUser
    env: dict[str, str]
    mounts: tuple[BoxMount, ...]
    #: The job's own network; `None` for the engine's default network.
    network: str | None
    deployment: str = Field(min_length=1)
    limits: Limits

    @field_validator("name")
    @classmethod
    def _claimed_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(f"the name of a job container begins with {names.JOB_PREFIX} and is a plain name")
        return name

    @field_validator("image")
    @classmethod
    def _plain_image(cls, image: str) -> str:
        return image_reference(image)

    @field_validator("env")
    @classmethod
    def _closed(cls, env: dict[str, str]) -> dict[str, str]:
        for name, value in env.items():
            if not _VARIABLE.fullmatch(name) or not value or "\0" in value:
                raise ValueError(f"the variable {name!r} is malformed or empty; absent means absent")
        return env

    @field_validator("mounts")
    @classmethod
    def _ordered(cls, mounts: tuple[BoxMount, ...]) -> tuple[BoxMount, ...]:
        order = [list(MOUNT_TARGETS).index(mount.target) for mount in mounts]
        if order != sorted(set(order)) or [mount.target for mount in mounts[:2]] != ["/job", "/workspace"]:
            raise ValueError("mounts are /job, /workspace and then the optional ones, each once")
        return mounts

    @model_validator(mode="after")
    def _agreeing(self) -> Self:
        if self.env.get("PI_JOB_ID") != self.name:
            raise ValueError("PI_JOB_ID is the name of the container")
        if self.job_id is not None and self.name != names.JOB_PREFIX + sanitise(self.job_id):
            raise ValueError("the name of a job container is made of the job's id")
        if self.user.explicit and self.env.get("HOME") != names.BOX_HOME:
            raise ValueError("an explicit user and HOME travel as a pair")
        if self.network is not None and self.network != f"{self.name}-net":
            raise ValueError("a job joins its own network and no other")
        return self


def create_arguments(spec: ContainerSpec) -> dict[str, Any]:
    """Keyword arguments of docker-py's `containers.create` for `spec`, the hardening set always among them.

    Container options: https://docker-py.readthedocs.io/en/stable/containers.html
    """
    limits = spec.limits
    memory = _size(limits.memory_mib)
    arguments: dict[str, Any] = {
        "image": spec.image,
        "name": spec.name,
        "init": True,
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "pids_limit": limits.pids,
        "shm_size": _size(limits.shm_mib),
        "mem_limit": memory,
        "memswap_limit": memory,
        "nano_cpus": limits.cpu_centi * 10_000_000,
        "tmpfs": {
            "/tmp": f"size={limits.tmp_mib}m,mode=1777",
            names.BOX_HOME: f"size={limits.home_mib}m,mode=0777,uid={spec.user.uid},gid={spec.user.gid}",
        },
        "environment": dict(spec.env),
        "mounts": [
            EngineMount(mount.target, str(mount.source), type="bind", read_only=MOUNT_TARGETS[mount.target])
            for mount in spec.mounts
        ],
        "labels": {
            names.LABEL_JOB: spec.job_id or spec.name.removeprefix(names.JOB_PREFIX),
            names.LABEL_ATTEMPT: str(spec.attempt),
            names.LABEL_DEPLOYMENT: spec.deployment,
        },
        # The SDK would add the proxies of the account's own Docker configuration, credentials included.
        "use_config_proxy": False,
        "stdin_open": False,
        "tty": False,
    }
    if spec.user.explicit:
        arguments["user"] = f"{spec.user.uid}:{spec.user.gid}"
    if spec.network is not None:
        arguments["network"] = spec.network
        # Nothing answers there, so no query leaves the box through a resolver of the host, and an unknown name
        # fails in a second. The engine itself still resolves the neighbour.
        arguments["dns"] = ["127.0.0.1"]
        arguments["dns_opt"] = ["timeout:1", "attempts:1"]
    return arguments


def _size(mib: int) -> str:
    return f"{mib // 1024}g" if mib % 1024 == 0 else f"{mib}m"

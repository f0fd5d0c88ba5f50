"""The container of a real run as the engine has it: what it was given, and what it was not."""

import json
from typing import Any

import docker
import pytest

from tests.support.engine import await_running
from tests.support.program import Stage, await_id
from tests.support.repository import Repository


def inspect(stage: Stage, engine: docker.DockerClient, repository: Repository, **changes: str | None) -> dict[str, Any]:
    """What the engine says of the container of a run that is under way; the run is ended then."""
    with stage.worker(**changes) as worker, stage.waiting(repository.path, "sleepy", **changes) as process:
        container = await_running(engine, f"pi-job-{await_id(process)}")
        attributes: dict[str, Any] = engine.api.inspect_container(container)
        assert worker.stop() == 0
        return attributes


def environment(attributes: dict[str, Any]) -> dict[str, str]:
    return dict(line.split("=", 1) for line in attributes["Config"]["Env"])


@pytest.mark.example("ch3 E2", "the container of a real local job: its mounts in order, the folder itself as workspace")
def test_the_walls_of_a_real_run(stage: Stage, engine: docker.DockerClient, repository: Repository) -> None:
    attributes = inspect(stage, engine, repository)
    host, name = attributes["HostConfig"], attributes["Name"].removeprefix("/")

    mounts = [(mount["Target"], mount.get("ReadOnly", False)) for mount in host["Mounts"]]
    assert mounts == [("/job", True), ("/workspace", False), ("/outbox", False), ("/opt/pi-global", True)]
    assert host["Mounts"][1]["Source"] == str(repository.path)
    assert host["Mounts"][3]["Source"] == str(stage.overlay)
    assert (host["ReadonlyRootfs"], host["Privileged"], host["Init"]) == (True, False, True)
    assert (host["CapDrop"], host["CapAdd"], host["SecurityOpt"]) == (["ALL"], None, ["no-new-privileges"])
    assert set(host["Tmpfs"]) == {"/tmp", "/home/pi"}
    assert (host["PidsLimit"], host["Memory"], host["MemorySwap"]) == (512, 4 * 2**30, 4 * 2**30)
    assert (host["PidMode"], host["IpcMode"], host["UsernsMode"]) == ("", "private", "")
    assert (host["NetworkMode"], host["Dns"]) == (f"{name}-net", ["127.0.0.1"])
    assert list(attributes["NetworkSettings"]["Networks"]) == [f"{name}-net"]
    owner = repository.path.stat()
    assert attributes["Config"]["User"] == f"{owner.st_uid}:{owner.st_gid}"
    assert len(attributes["Config"]["Labels"]["pi.dispatch.deployment"]) == 16
    env = environment(attributes)
    assert env["HTTPS_PROXY"] == env["http_proxy"] == f"http://{stage.model.name}:3128"
    assert env["PI_JOB_ID"] == name


def test_the_accounts_own_docker_configuration_stays_outside(
    stage: Stage, engine: docker.DockerClient, repository: Repository
) -> None:
    proxies = {"default": {"httpProxy": "http://user:marked-secret@proxy.test", "ftpProxy": "http://marked-secret"}}
    (stage.home / ".docker").mkdir()
    (stage.home / ".docker" / "config.json").write_text(json.dumps({"proxies": proxies}))

    assert "marked-secret" not in str(inspect(stage, engine, repository)["Config"]["Env"])


def test_egress_off_opens_the_network_and_says_so(
    stage: Stage, engine: docker.DockerClient, repository: Repository
) -> None:
    attributes = inspect(stage, engine, repository, PI_EGRESS="0", PI_EGRESS_PROXY="nobody")
    host = attributes["HostConfig"]

    assert host["NetworkMode"] in ("default", "bridge")
    assert not host["Dns"]
    assert not host["DnsOptions"]
    assert not [name for name in environment(attributes) if "proxy" in name.lower()]
    assert host["ReadonlyRootfs"] is True
    ran = stage.run_job(repository.path, "edit", PI_EGRESS="0")
    assert "whatever else its worker's machine can reach" in ran.err

"""`pi-dispatch egress` on a real engine: up, status and down, each twice, and what is never touched."""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.models.networks import Network

from pidispatch.box.egress import LABEL, EgressProxy, out_network
from pidispatch.box.engine import Engine
from pidispatch.box.images import build_image, egress_context_tar
from pidispatch.config.allowlist import ALLOWLIST, PRIVATE
from pidispatch.config.clock import SystemClock
from pidispatch.values.errors import InfraError
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason
from tests.support.egress import Proxy
from tests.support.engine import left_of

#: Whether a container passes on packets from one of its networks to another.
FORWARDS = "/proc/sys/net/ipv4/ip_forward"


@contextmanager
def connected_job(client: docker.DockerClient, proxy: Proxy) -> Iterator[str]:
    """A job's network with the proxy on it, as while a job runs; its name."""
    name = f"pi-job-test-{secrets.token_hex(6)}-net"
    engine = Engine(client)
    network = engine.create_network(name, "0" * 16)
    try:
        engine.connect_neighbour(network, str(proxy.container.id), proxy.name)
        yield name
    finally:
        engine.remove_network(network, proxy.name)


def test_up_brings_it_up_once(proxy: Proxy) -> None:
    first = proxy.call("up", "--base", proxy.base)
    assert (first.code, first.out.splitlines()[0]) == (0, f"{proxy.name} is up"), first
    assert "api.anthropic.com" in first.out
    made = proxy.container.id
    lists = {path.name: path.read_text() for path in proxy.folder.iterdir()}
    assert set(lists) == {ALLOWLIST, PRIVATE}

    (proxy.folder / ALLOWLIST).write_text("mine.test\n")
    second = proxy.call("up")
    assert (second.code, second.out.splitlines()[0]) == (0, f"{proxy.name} runs already and is current"), second
    assert second.err == ""
    assert proxy.container.id == made
    assert (proxy.folder / ALLOWLIST).read_text() == "mine.test\n"
    # A build from the same parts is the same image, so naming a base again replaces nothing.
    assert "is current" in proxy.call("up", "--base", proxy.base).out


def test_its_container_is_as_closed_as_a_jobs(proxy: Proxy) -> None:
    proxy.call("up", "--base", proxy.base)
    found = proxy.container.attrs
    host = found["HostConfig"]

    assert found["Config"]["User"] == "13:13"
    assert (host["ReadonlyRootfs"], host["Privileged"], host["Init"]) == (True, False, True)
    assert (host["CapDrop"], host["CapAdd"], host["SecurityOpt"]) == (["ALL"], None, ["no-new-privileges"])
    assert host["Tmpfs"] == {"/run": "size=1m,mode=755,uid=13,gid=13"}
    assert 0 < host["PidsLimit"] <= 64
    assert host["Memory"] == host["MemorySwap"] == 256 * 2**20
    assert host["RestartPolicy"]["Name"] == "unless-stopped"
    assert (host["PortBindings"] or {}, host["NetworkMode"]) == ({}, out_network(proxy.name))
    assert [(mount["Source"], mount["RW"]) for mount in found["Mounts"]] == [(str(proxy.folder), False)]
    assert list(found["NetworkSettings"]["Networks"]) == [out_network(proxy.name)]
    assert LABEL in found["Config"]["Labels"]
    _, output = proxy.container.exec_run(
        ["/bin/sh", "-c", f"id -u; cat {FORWARDS}; grep CapEff /proc/1/status; touch /x 2>&1"]
    )
    assert isinstance(output, bytes)
    assert output.decode().split("\n")[:2] == ["13", "0"]
    assert "0000000000000000" in output.decode()
    assert "Read-only file system" in output.decode()


def test_status_and_down_say_what_is_there(proxy: Proxy, engine: docker.DockerClient) -> None:
    absent = proxy.call("status")
    assert (absent.code, absent.out) == (1, f"{proxy.name} does not exist. Bring it up with: pi-dispatch egress up\n")
    nothing = proxy.call("down")
    assert (nothing.code, nothing.out) == (0, f"{proxy.name} is not there, and neither is its network\n")

    proxy.lists("a.test\nb.test\n", "b.test\n")
    up = proxy.call("up", "--base", proxy.base, PI_EGRESS="0")
    assert (up.code, up.out.splitlines()[-1]) == (0, "PI_EGRESS=0 is set: jobs do not use the proxy")
    running = proxy.call("status")
    assert (running.code, running.out.splitlines()[0]) == (0, f"{proxy.name} runs and accepts")
    assert [line for line in running.out.splitlines() if line.startswith(" ")] == ["  a.test", "  b.test", "  b.test"]
    document = json.loads(proxy.call("status", "--json").out)
    assert document.pop("since").endswith("Z")
    assert document == {
        "proxy": proxy.name,
        "armed": True,
        "present": True,
        "ours": True,
        "running": True,
        "accepting": True,
        "allowed": ["a.test", "b.test"],
        "private": ["b.test"],
        "refused": None,
    }

    down = proxy.call("down")
    assert (down.code, down.out) == (0, f"{proxy.name} is removed\n")
    assert left_of(engine, proxy.name) == []
    assert (proxy.folder / ALLOWLIST).read_text() == "a.test\nb.test\n"


@pytest.mark.example("ch3 E18", "a stopped proxy is refused as egress-proxy-stopped, with the command that starts it")
def test_a_stopped_proxy_is_refused_and_started_again(proxy: Proxy, engine: docker.DockerClient) -> None:
    proxy.lists("a.test\n")
    proxy.up()
    made = proxy.container
    made.stop(timeout=10)
    made.reload()
    # By the signal, in its own time and as asked: killed it would be 137.
    assert made.attrs["State"]["ExitCode"] == 0
    refused = Engine(engine).neighbour(proxy.name)
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.remedy) == (Reason.EGRESS_PROXY_STOPPED, "start it: pi-dispatch egress up")
    status = proxy.call("status")
    assert (status.code, "does not run" in status.out) == (1, True)

    again = proxy.call("up")
    assert (again.code, again.out.splitlines()[0]) == (0, f"{proxy.name} is started again")
    assert proxy.container.id == made.id
    assert Engine(engine).neighbour(proxy.name) == made.id


def test_a_stale_proxy_is_replaced(proxy: Proxy, engine: docker.DockerClient, tmp_path: Path) -> None:
    proxy.lists("a.test\n")
    proxy.up()
    made, network = proxy.container.id, engine.networks.get(out_network(proxy.name)).id
    proxy.folder = tmp_path / "other"
    proxy.lists("b.test\n")
    again = proxy.call("up")

    assert (again.code, again.out.splitlines()[0].split(":")[0]) == (0, f"{proxy.name} is replaced")
    assert proxy.container.id != made
    assert proxy.egress.status().allowed == ("b.test",)
    assert engine.networks.get(out_network(proxy.name)).id == network


def test_nothing_is_replaced_or_removed_under_a_job(proxy: Proxy, engine: docker.DockerClient, tmp_path: Path) -> None:
    proxy.lists("a.test\n")
    proxy.up()
    made = proxy.container.id
    with connected_job(engine, proxy) as job:
        assert proxy.call("up").code == 0
        first, proxy.folder = proxy.folder, tmp_path / "other"
        for arguments in (("up",), ("down",)):
            refused = proxy.call(*arguments)
            assert (refused.code, job in refused.err) == (1, True), refused
            assert f"docker network disconnect -f NETWORK {proxy.name}" in refused.err
        assert proxy.container.id == made
        assert proxy.container.status == "running"
        proxy.folder = first
    assert proxy.call("down").code == 0


def test_what_is_somebody_elses_is_never_touched(proxy: Proxy, engine: docker.DockerClient, probe_image: str) -> None:
    other = engine.containers.create(probe_image, ["sleep", "600"], name=proxy.name, network="none")
    other.start()
    try:
        for arguments in (("up", "--base", proxy.base), ("down",)):
            refused = proxy.call(*arguments)
            assert (refused.code, "did not make" in refused.err) == (2, True), refused
        status = proxy.call("status")
        assert (status.code, "its lists are not known" in status.out) == (1, True)
        other.reload()
        assert other.status == "running"
        assert left_of(engine, out_network(proxy.name)) == []
    finally:
        other.remove(force=True)
    network: Network = engine.networks.create(out_network(proxy.name), internal=True)
    refused = proxy.call("up")
    assert (refused.code, f"a network {network.name} that" in refused.err) == (2, True)
    assert left_of(engine, proxy.name) == [network.name]


def test_a_network_that_others_use_is_said_and_left(
    proxy: Proxy, engine: docker.DockerClient, probe_image: str
) -> None:
    proxy.lists("")
    proxy.up()
    guest = engine.containers.create(probe_image, ["sleep", "600"], network=out_network(proxy.name))
    guest.start()
    try:
        refused = proxy.call("down")
        assert (refused.code, f"not its network {out_network(proxy.name)}" in refused.err) == (1, True)
        assert left_of(engine, proxy.name) == [out_network(proxy.name)]
    finally:
        guest.remove(force=True)
    assert proxy.call("down").code == 0


def test_lists_that_are_wrong_bring_nothing_up(proxy: Proxy, engine: docker.DockerClient) -> None:
    proxy.lists("good.test\nhost:443\n1.2.3.4\n")
    refused = proxy.call("up", "--base", proxy.base)

    assert refused.code == 2
    for words in (str(proxy.folder), "line 2: 'host:443' names a port", "line 3: '1.2.3.4' is an IP address"):
        assert words in refused.err
    assert left_of(engine, proxy.name) == []


def test_a_base_that_is_not_there_is_refused(proxy: Proxy, engine: docker.DockerClient) -> None:
    refused = proxy.call("up", "--base", "there-is:none")

    assert (refused.code, "docker pull there-is:none" in refused.err) == (2, True)
    assert left_of(engine, proxy.name) == []


def test_a_base_that_lacks_a_package_manager_says_what_to_do(proxy: Proxy, probe_image: str) -> None:
    failed = proxy.call("up", "--base", probe_image)

    assert failed.code == 1
    assert "apt-get: not found" in failed.err
    assert "pi-dispatch egress up --base REF" in failed.err


def test_a_base_with_everything_needs_no_network(egress_base: str, engine: docker.DockerClient) -> None:
    tag = f"pi-dispatch-egress:offline-{secrets.token_hex(4)}"
    try:
        assert build_image(engine, egress_context_tar(), tag, {"BASE": egress_base}, network="none")
    finally:
        engine.images.remove(tag, force=True)


def test_when_squid_dies_the_container_ends_and_comes_up_again(proxy: Proxy) -> None:
    proxy.lists("a.test\n")
    proxy.up()
    proxy.container.exec_run(["/bin/sh", "-c", "kill -9 $(cat /run/squid.pid)"])

    proxy.until_status(lambda now: now.accepting and proxy.container.attrs["RestartCount"] == 1, "it to be back")
    assert "egress: squid ended with -9" in proxy.log
    assert proxy.egress.status().allowed == ("a.test",)


class Mute(EgressProxy):
    """One whose squid ends at once."""

    def _arguments(self, *given: Any) -> dict[str, Any]:
        return {**super()._arguments(*given), "command": ["--squid=/bin/false"]}


def test_one_that_does_not_come_up_is_told_with_its_log(proxy: Proxy, engine: docker.DockerClient) -> None:
    proxy.lists("a.test\n")
    proxy.egress = Mute(engine, proxy.name, SystemClock())
    with pytest.raises(InfraError, match=r"(?s)does not accept connections.*squid ended with 1"):
        proxy.up()

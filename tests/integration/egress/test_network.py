"""What a job reaches by way of the real proxy, and what is closed to it: each wall beside the same try without it."""

import secrets
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from pidispatch.box.abort import Abort
from pidispatch.box.egress import EgressProxy, out_network
from pidispatch.box.run import Neighbour
from pidispatch.config.clock import SystemClock
from pidispatch.values.limits import Limits
from pidispatch.values.reason import AbortReason
from tests.support.box import Box
from tests.support.egress import Proxy, Server, from_a_job, from_outside, host_service, open_network

OPEN = "200 then 200"


@pytest.fixture
def site(engine: docker.DockerClient, network_image: str, proxy: Proxy) -> Iterator[Server]:
    """A server on 443, 80 and 8443 behind the proxy, in a network whose addresses are private like all of an engine."""
    proxy.lists("")
    proxy.up()
    server = Server(engine, network_image, out_network(proxy.name), "http", "0.0.0.0", "443", "80", "8443")
    yield server
    server.remove()


def allow(proxy: Proxy, allowed: str, private: str = "") -> None:
    """Put the lists in force."""
    before = proxy.egress.status()
    proxy.lists(allowed, private)
    entries = tuple(sorted(allowed.split())), tuple(sorted(private.split()))
    proxy.until_status(lambda now: (now.allowed, now.private) == entries, f"the lists in place of {before}")


def test_a_listed_host_is_reached_and_an_unlisted_one_is_not(
    box: Box, network_image: str, proxy: Proxy, site: Server
) -> None:
    listed, unlisted = f"{site.name}:443", f"not-{site.name}:443"
    allow(proxy, site.name, site.name)
    probes: list[list[Any]] = [
        ["tunnel", proxy.name, listed],
        ["get", proxy.name, f"http://{site.name}/"],
        ["tunnel", proxy.name, unlisted],
        ["get", proxy.name, f"http://not-{site.name}/"],
        ["tunnel", proxy.name, f"{site.address}:443"],
        ["get", proxy.name, f"http://{site.address}/"],
    ]
    found = from_a_job(box, network_image, proxy, *probes)

    assert found == [OPEN, "200", "403", "403", "403", "403"]


def test_no_tunnel_leads_to_another_port_than_443(
    box: Box, engine: docker.DockerClient, network_image: str, proxy: Proxy, site: Server
) -> None:
    allow(proxy, site.name, site.name)
    probes = [["tunnel", proxy.name, f"{site.name}:{port}"] for port in (443, 8443, 80, 22)]
    ports = [["connect", site.name, port] for port in (443, 8443, 80)]

    assert from_outside(engine, network_image, out_network(proxy.name), *ports) == ["open"] * 3
    assert from_a_job(box, network_image, proxy, *probes) == [OPEN, "403", "403", "403"]


def test_there_is_no_way_past_the_proxy(
    box: Box, engine: docker.DockerClient, network_image: str, proxy: Proxy, site: Server
) -> None:
    allow(proxy, site.name, site.name)
    direct: list[list[Any]] = [["connect", site.address, 443], ["resolve", site.name]]

    assert from_outside(engine, network_image, out_network(proxy.name), *direct) == ["open", "resolved"]
    found = from_a_job(box, network_image, proxy, *direct, ["tunnel", proxy.name, f"{site.name}:443"])
    assert found == ["closed", "closed", OPEN]


def test_the_machine_and_its_services_are_closed(
    box: Box, engine: docker.DockerClient, network_image: str, proxy: Proxy, site: Server
) -> None:
    allow(proxy, site.name, site.name)
    with host_service() as port, open_network(engine) as network:
        network.reload()
        machine = network.attrs["IPAM"]["Config"][0]["Gateway"]
        probes: list[list[Any]] = [["gateway", port], ["connect", machine, port]]

        assert from_outside(engine, network_image, str(network.name), *probes) == ["open", "open"]
        through = [["tunnel", proxy.name, f"{machine}:{port}"], ["get", proxy.name, f"http://{machine}:{port}/"]]
        assert from_a_job(box, network_image, proxy, *probes, *through) == ["closed", "closed", "403", "403"]


def test_a_sibling_is_closed(
    box: Box, engine: docker.DockerClient, network_image: str, proxy: Proxy, site: Server, tmp_path: Path
) -> None:
    (tmp_path / "sibling").mkdir()
    sibling = Box(engine, tmp_path / "sibling")
    spec = sibling.spec(sibling.image("#!/bin/sh\nexec httpd -f -p 8000\n"), Limits(stop_grace_s=1), network=True)
    neighbour = Neighbour(id=str(proxy.container.id), alias=proxy.name)
    abort = Abort()
    runner = threading.Thread(target=sibling.run, args=(spec, abort, neighbour))
    runner.start()
    try:
        assert sibling.started.wait(30)
        own_network = f"{spec.name}-net"
        address = engine.containers.get(spec.name).attrs["NetworkSettings"]["Networks"][own_network]["IPAddress"]
        probes: list[list[Any]] = [["connect", address, 8000]]

        assert from_outside(engine, network_image, own_network, *probes) == ["open"]
        probes += [["tunnel", proxy.name, f"{address}:443"], ["get", proxy.name, f"http://{address}:8000/"]]
        assert from_a_job(box, network_image, proxy, *probes) == ["closed", "403", "403"]
    finally:
        abort.set(AbortReason.SHUTDOWN)
        runner.join(30)
        engine.images.remove(sibling.images[0], force=True)


class Resolving(EgressProxy):
    """A proxy that asks a resolver of the test's own."""

    resolver = ""

    def _arguments(self, *given: Any) -> dict[str, Any]:
        # Squid asks for IPv6 addresses only where there is IPv6.
        arguments = super()._arguments(*given)
        sysctls = {**arguments["sysctls"], "net.ipv6.conf.all.disable_ipv6": "0"}
        return {**arguments, "dns": [self.resolver], "sysctls": sysctls}


def resolve_by(engine: docker.DockerClient, proxy: Proxy, resolver: Server) -> None:
    """Make the proxy anew, with `resolver` behind the engine's own."""
    proxy.container.remove(force=True)
    proxy.egress = Resolving(engine, proxy.name, SystemClock())
    proxy.egress.resolver = resolver.address
    proxy.up()


def test_nothing_leaves_by_dns(
    box: Box, engine: docker.DockerClient, network_image: str, proxy: Proxy, site: Server
) -> None:
    secret = secrets.token_hex(6)
    names = [f"{secret}-{way}.test" for way in ("box", "udp", "tunnel", "get")]
    resolver = Server(engine, network_image, out_network(proxy.name), "dns", *[f"{name}=127.0.0.1" for name in names])
    try:
        resolve_by(engine, proxy, resolver)
        allow(proxy, site.name, site.name)
        own: list[list[Any]] = [["resolve", names[0]], ["query", resolver.address, names[1]]]
        by_proxy: list[list[Any]] = [
            ["tunnel", proxy.name, f"{names[2]}:443"],
            ["get", proxy.name, f"http://{names[3]}/"],
            ["tunnel", proxy.name, f"{site.name}:443"],
        ]
        found = from_a_job(box, network_image, proxy, *own, *by_proxy)

        assert found == ["closed", "closed", "403", "403", OPEN]
        assert secret not in resolver.log
        outside = from_outside(engine, network_image, out_network(proxy.name), *own, dns=[resolver.address])
        assert outside == ["resolved", "answered"]
        assert {f"query {name}" for name in names[:2]} <= set(resolver.log.splitlines())
    finally:
        resolver.remove()


#: Never reached, whatever the lists say; then those that the private list opens.
FORBIDDEN = {
    "loopback": "127.0.0.1",
    "loopback-far": "127.9.9.9",
    "unspecified": "0.0.0.0",
    "metadata": "169.254.169.254",
    "virtual-host": "10.0.2.2",
    "wire-server": "168.63.129.16",
    "protocols": "192.0.0.192",
    "metadata-hundred": "100.100.100.200",
    "loopback-six": "::1",
    "unspecified-six": "::",
    "link-six": "fe80::1",
    "metadata-six": "fd00:ec2::254",
    "six-to-four": "2002:7f00:1::1",
    "mapped": "::ffff:127.0.0.1",
}
PRIVATE = {
    "ten": "10.9.8.7",
    "sixteen": "172.16.0.1",
    "hundred": "100.64.0.1",
    "house": "192.168.1.1",
    "unique-six": "fd00::1",
    "mapped-private": "::ffff:192.168.1.1",
}


def test_a_listed_name_leads_to_no_private_address(
    box: Box, engine: docker.DockerClient, network_image: str, proxy: Proxy, site: Server
) -> None:
    table = {f"{name}.away.test": address for name, address in {**FORBIDDEN, **PRIVATE}.items()}
    arguments = [f"{name}={address}" for name, address in {**table, "site.away.test": site.address}.items()]
    # One good address beside a bad one opens nothing.
    arguments += [f"both.away.test={address}" for address in (site.address, "127.0.0.1")]
    resolver = Server(engine, network_image, out_network(proxy.name), "dns", *arguments)
    try:
        resolve_by(engine, proxy, resolver)
        tunnels = [["tunnel", proxy.name, f"{name}:443"] for name in [*table, "site.away.test", "both.away.test"]]
        plain = [["get", proxy.name, f"http://{name}/"] for name in (*table, "site.away.test")]
        allow(proxy, ".away.test")
        found = from_a_job(box, network_image, proxy, *tunnels, *plain)
        assert [(probe, one) for probe, one in zip((*tunnels, *plain), found, strict=True) if one != "403"] == []

        never = [f"{name}.away.test" for name in (*FORBIDDEN, "both")]
        allow(proxy, ".away.test", "\n".join([*never, "site.away.test"]))
        asked = [["tunnel", proxy.name, f"{name}:443"] for name in (*never, "site.away.test", "nowhere.away.test")]
        assert from_a_job(box, network_image, proxy, *asked) == ["403"] * len(never) + [OPEN, "503"]
        assert {f"query {name}" for name in (*table, "both.away.test")} <= set(resolver.log.splitlines())
    finally:
        resolver.remove()


def test_the_engines_networks_beyond_the_private_ones_are_private_too(
    box: Box, engine: docker.DockerClient, network_image: str, proxy: Proxy, site: Server
) -> None:
    """An engine may be given any range; here one kept for documentation, which nobody routes."""
    third = secrets.randbelow(256)
    subnet = f"198.18.{third}.0/24"
    pool = docker.types.IPAMConfig(pool_configs=[docker.types.IPAMPool(subnet=subnet)])
    network = engine.networks.create(f"pi-test-odd-{secrets.token_hex(4)}", driver="bridge", ipam=pool)
    server = Server(engine, network_image, str(network.name), "http", "0.0.0.0", "443")
    try:
        network.connect(proxy.container)
        probe = ["tunnel", proxy.name, f"{server.name}:443"]
        allow(proxy, server.name)
        # Made before this network, the proxy does not know of it: the open control.
        assert from_a_job(box, network_image, proxy, probe) == [OPEN]

        proxy.up()
        network.connect(proxy.container)
        assert f"--network={subnet}" in proxy.container.attrs["Config"]["Cmd"]
        assert from_a_job(box, network_image, proxy, probe) == ["403"]
        allow(proxy, server.name, server.name)
        assert from_a_job(box, network_image, proxy, probe) == [OPEN]
    finally:
        server.remove()
        network.disconnect(proxy.container, force=True)
        network.remove()


def test_the_log_names_hosts_and_nothing_of_what_was_asked_of_them(
    box: Box, network_image: str, proxy: Proxy, site: Server
) -> None:
    allow(proxy, site.name, site.name)
    url = f"http://{site.name}/marked-path?key=marked-query"
    refused = "http://user:marked-password@refused.test/marked-path?key=marked-query"
    found = from_a_job(box, network_image, proxy, ["get", proxy.name, url], ["get", proxy.name, refused])

    assert found == ["200", "403"]
    assert "get /marked-path?key=marked-query" in site.log
    lines = [line for line in proxy.log.splitlines() if " GET " in line]
    assert [line.split(" GET ")[1].split()[:2] for line in sorted(lines, key=lambda line: "refused" in line)] == [
        [f"{site.name}:80", "200"],
        ["refused.test:80", "403"],
    ]
    assert "marked" not in proxy.log


def test_of_the_schemes_that_squid_speaks_only_plain_http_is_let_through(
    box: Box, network_image: str, proxy: Proxy, site: Server
) -> None:
    allow(proxy, site.name, site.name)
    probes = [["get", proxy.name, f"{scheme}://{site.name}/"] for scheme in ("http", "ftp", "https")]

    assert from_a_job(box, network_image, proxy, *probes) == ["200", "403", "403"]
    assert site.log.count("get /") == 1

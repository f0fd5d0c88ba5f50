"""The lists while the proxy runs: a good edit is taken over, a bad one changes nothing and is told."""

import json
import os
from collections.abc import Iterator

import docker
import pytest

from pidispatch.box.egress import EgressStatus, out_network
from pidispatch.config.allowlist import ALLOWLIST, PRIVATE
from tests.support.egress import Proxy, Server, until


@pytest.fixture
def site(engine: docker.DockerClient, network_image: str, proxy: Proxy) -> Iterator[Server]:
    """A server behind a running proxy whose lists are empty."""
    proxy.lists("")
    proxy.up()
    server = Server(engine, network_image, out_network(proxy.name), "http", "0.0.0.0", "443")
    yield server
    server.remove()


def shows(proxy: Proxy, target: str, status: str) -> None:
    until(lambda: proxy.ask(target) == status, f"{target} to be answered {status}")


def test_an_edit_in_place_and_one_by_rename_are_taken_over(proxy: Proxy, site: Server) -> None:
    target = f"{site.name}:443"
    before = proxy.container.id
    assert proxy.ask(target) == "403"

    proxy.lists(site.name, site.name)
    shows(proxy, target, "200")
    for name, text in ((ALLOWLIST, f"# nothing but\nother.test\n.{site.name.upper()} # this\n"), (PRIVATE, "")):
        beside = proxy.folder / f"{name}.new"
        beside.write_text(text)
        os.replace(beside, proxy.folder / name)
    shows(proxy, target, "403")
    assert proxy.egress.status().allowed == (f".{site.name}", "other.test")

    (proxy.folder / PRIVATE).write_text(f"{site.name}\n")
    shows(proxy, target, "200")
    (proxy.folder / PRIVATE).unlink()
    shows(proxy, target, "403")
    assert (proxy.container.id, proxy.container.attrs["RestartCount"]) == (before, 0)


def test_a_bad_edit_changes_nothing_and_is_told_until_it_is_mended(proxy: Proxy, site: Server) -> None:
    target = f"{site.name}:443"
    proxy.lists(site.name, site.name)
    shows(proxy, target, "200")

    proxy.lists(f"good.test\nhttps://{site.name}/\n*.x.test\n", "elsewhere.test\n")
    status = proxy.until_status(lambda now: now.refused is not None, "the edit to be refused")
    assert status.refused is not None
    faults = "\n".join(status.refused.faults)
    for words in (f"{ALLOWLIST}, line 2:", "is a URL", f"{ALLOWLIST}, line 3:", f"{PRIVATE}, line 1:", "no line of"):
        assert words in faults
        assert words in proxy.log
    assert (status.allowed, status.private, proxy.ask(target)) == ((site.name,), (site.name,), "200")
    assert proxy.ask("good.test:443") == "403"
    told = proxy.call("status")
    assert told.code == 0
    assert "is refused and changed nothing" in told.out
    assert f"'https://{site.name}/' is a URL" in told.out
    assert json.loads(proxy.call("status", "--json").out)["refused"]["faults"] == list(status.refused.faults)

    proxy.lists(f"{site.name}\ngood.test\n", site.name)
    mended = proxy.until_status(lambda now: now.refused is None, "the edit to be taken over")
    assert mended.allowed == ("good.test", site.name)


@pytest.mark.parametrize("how", ["removed", "unreadable"])
def test_lists_that_go_away_leave_the_last_ones_in_force(proxy: Proxy, site: Server, how: str) -> None:
    proxy.lists(site.name, site.name)
    shows(proxy, f"{site.name}:443", "200")
    path = proxy.folder / ALLOWLIST
    path.unlink() if how == "removed" else path.chmod(0)

    def told(now: EgressStatus) -> bool:
        words = "is missing" if how == "removed" else "cannot be read"
        return now.refused is not None and any(words in fault for fault in now.refused.faults)

    assert proxy.until_status(told, "the loss to be told").allowed == (site.name,)
    assert proxy.ask(f"{site.name}:443") == "200"
    proxy.lists(site.name, site.name)
    proxy.until_status(lambda now: now.refused is None, "the lists to be back")

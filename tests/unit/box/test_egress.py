"""The egress proxy below the engine: its names, the networks it is told of, and an engine that does not answer."""

from collections.abc import Callable
from pathlib import Path

import docker
import pytest

from pidispatch.box.egress import DEFAULT_NAME, EgressProxy, beyond_private, out_network
from pidispatch.config.clock import SystemClock
from pidispatch.config.settings import Settings, load_settings
from pidispatch.values.errors import ConfigError, InfraError

CALLS: dict[str, Callable[[EgressProxy], object]] = {
    "up": lambda proxy: proxy.up(Path("/nowhere"), None, lambda _: None),
    "down": lambda proxy: proxy.down(),
    "status": lambda proxy: proxy.status(),
    "logs": lambda proxy: proxy.logs(1),
}


def test_the_networks_name_follows_the_proxys() -> None:
    assert Settings.model_fields["egress_proxy"].default == DEFAULT_NAME
    assert out_network(DEFAULT_NAME) == "pi-dispatch-egress-out"
    assert out_network("mine") == "mine-out"
    assert out_network("mine-proxy") == "mine-proxy-out"


def test_only_networks_beyond_the_private_ones_are_told() -> None:
    usual = ["172.17.0.0/16", "172.20.0.0/14", "192.168.240.0/20", "10.1.0.0/24", "100.64.3.0/24", "fd00:1::/64"]
    assert beyond_private(usual) == []
    odd = ["198.18.0.5/24", "198.18.0.0/24", "2001:db8::/64", "0.0.0.0/0", "172.0.0.0/8"]
    assert beyond_private([*usual, *odd]) == ["0.0.0.0/0", "172.0.0.0/8", "198.18.0.0/24", "2001:db8::/64"]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_silent_engine_is_a_fault(call: Callable[[EgressProxy], object]) -> None:
    client = docker.DockerClient(base_url="tcp://127.0.0.1:1", version="1.41", timeout=2)
    try:
        with pytest.raises(InfraError, match="ConnectionError"):
            call(EgressProxy(client, "gate", SystemClock()))
    finally:
        client.close()


@pytest.mark.example("ch3 E18", "PI_EGRESS=yes is refused when the program starts")
def test_a_switch_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_EGRESS", "yes")
    with pytest.raises(ConfigError, match=r"PI_EGRESS='yes' must be 0 or 1") as raised:
        load_settings()
    assert raised.value.exit_code == 2

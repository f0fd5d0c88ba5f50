"""The transport's clients, on a real server: one a channel, and another one with another connection."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kombu.transport import memory, redis

from pidispatch.jobs.transport import KeptConnection, keeping
from tests.support.server import OwnServer


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[KeptConnection]:
    """A connection of the kind that workers and producers have."""
    with OwnServer("valkey", tmp_path, tcp=True) as server, KeptConnection(server.url) as made:
        yield made


def test_a_channel_makes_its_client_once(connection: KeptConnection) -> None:
    channel: Any = connection.channel()
    with channel.conn_or_acquire() as first:
        assert first.ping()
    with channel.conn_or_acquire() as second:
        assert second is first
    other: Any = connection.channel()
    with other.conn_or_acquire() as third:
        assert third is not first


def test_a_channel_with_another_pool_has_another_client(connection: KeptConnection) -> None:
    channel: Any = connection.channel()
    with channel.conn_or_acquire() as first:
        pass
    channel._disconnect_pools()
    with channel.conn_or_acquire() as second:
        assert second is not first
        assert second.ping()


def test_the_connections_of_a_pool_keep_their_clients_too(connection: KeptConnection) -> None:
    pool = connection.Pool(limit=1)
    for _ in range(2):
        with pool.acquire(block=True) as pooled:
            channel: Any = pooled.default_channel
            assert channel._create_client() is channel._create_client()
    pool.force_close_all()


def test_what_waits_for_tickets_has_a_client_of_its_own(connection: KeptConnection) -> None:
    channel: Any = connection.channel()
    assert channel.client is not channel._create_client()


def test_other_transports_are_left_as_they_are() -> None:
    assert keeping(memory.Transport) is memory.Transport
    assert issubclass(keeping(redis.SentinelTransport), redis.SentinelTransport)

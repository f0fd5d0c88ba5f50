"""Kombu's transports of the server with one client a channel.

Kombu makes a client object for every command that it sends, which takes longer than the command. A client may be shared
by threads, and takes a connection of the channel's pool for each command
(https://redis.readthedocs.io/en/stable/advanced_features.html).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kombu import Connection
from kombu.connection import ConnectionPool, PooledConnection
from kombu.transport import redis


class _Kept:
    """Keeps the client of a channel for as long as it keeps its pool."""

    pool: Any
    _client: Any = None
    #: What takes the commands of a channel that gathers them.
    _gathering: Any = None

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Send all that is published meanwhile at the end, in one round trip. Raises as the server does."""
        with self._create_client().pipeline(transaction=False) as gathering:
            self._gathering = gathering
            try:
                yield
            finally:
                self._gathering = None
            gathering.execute()

    def _create_client(self, asynchronous: bool = False) -> Any:
        make: Any = super()
        if asynchronous:
            return make._create_client(asynchronous=True)
        if self._gathering is not None:
            return self._gathering
        # Another pool comes with another connection.
        if self._client is None or self._client.connection_pool is not self.pool:
            self._client = make._create_client()
        return self._client


class _Channel(_Kept, redis.Channel):
    pass


class _SentinelChannel(_Kept, redis.SentinelChannel):
    pass


class _Transport(redis.Transport):
    Channel = _Channel


class _SentinelTransport(redis.SentinelTransport):
    Channel = _SentinelChannel


def keeping(transport: Any) -> Any:
    """The class of a transport with its clients kept; any other as it is."""
    return {redis.Transport: _Transport, redis.SentinelTransport: _SentinelTransport}.get(transport, transport)


class KeptConnection(Connection):
    """A connection whose channels keep their clients, as do those of its pool."""

    def get_transport_cls(self) -> Any:
        """The transport, which makes a client once a channel."""
        return keeping(super().get_transport_cls())

    def Pool(self, limit: int | None = None, **options: Any) -> ConnectionPool:
        """A pool of connections of this kind; kombu's own makes them of another."""
        return _KeptPool(self, limit, **options)


class _KeptPooled(PooledConnection):
    def get_transport_cls(self) -> Any:
        base: Any = super()
        return keeping(base.get_transport_cls())


class _KeptPool(ConnectionPool):
    def new(self) -> Any:
        # As the base does it.
        return _KeptPooled(self, **dict(self.connection._info(resolve=False)))

"""The one way to a client of the server, and the first question to it: can it serve the queue?

https://redis.io/docs/latest/commands/info/
"""

from typing import Any, Final, cast

import redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, AuthorizationError, BusyLoadingError, RedisError, ResponseError
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError, Sentinel

from pidispatch.config.log import log
from pidispatch.config.text import scrub
from pidispatch.server.address import Address
from pidispatch.values.base import Value
from pidispatch.values.errors import ConfigError, DispatchError, InfraError

#: Seconds to wait for a connection, and for an answer.
ANSWER_S: Final = 2.0
#: Seconds without a command after which a connection is tried before it is used.
_IDLE_S: Final = 30
_OLDEST: Final = 7


class ServerFacts(Value):
    """What the server says of itself."""

    #: `redis` or `valkey`.
    product: str
    version: str
    pid: int
    uptime_s: int
    memory_bytes: int
    #: Whether what it answered is written to an append-only file.
    appendonly: bool
    #: What it does when its memory is full; `noeviction` refuses writes, all others throw keys away.
    maxmemory_policy: str

    @property
    def durable(self) -> bool:
        """Whether it keeps what it was told: a lost or evicted key of the queue is a job or a budget."""
        return self.appendonly and self.maxmemory_policy == "noeviction"


def connect(address: Address, *, timeout_s: float = ANSWER_S) -> redis.Redis:
    """A client, for many threads; no connection is made yet. Answers are `str`.

    A command is sent once: one without an answer may have been carried out, and only its sender knows what a second
    time would mean. A pooled connection that the server has closed is replaced before it is used.
    """
    options: dict[str, Any] = {
        **address.client_options(),
        "decode_responses": True,
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "health_check_interval": _IDLE_S,
        "retry": Retry(NoBackoff(), 0),
        # The shape of some answers depends on it, and its default on the version of the library.
        "protocol": 2,
    }
    if address.master is None:
        return redis.Redis(**options)
    ask: Any = Sentinel
    client = ask(list(address.hosts), sentinel_kwargs=address.sentinel_options(), **options).master_for(address.master)
    return cast(redis.Redis, client)


def check_server(client: redis.Redis, address: Address) -> ServerFacts:
    """What the server says of itself. Raises `ConfigError` for one that cannot serve, else `InfraError`."""
    try:
        info: dict[str, Any] = client.info()
    except RedisError as error:
        raise _explained(error, address) from None
    mode = info.get("redis_mode")
    if mode == "cluster" or info.get("cluster_enabled"):
        raise ConfigError(
            f"{address.shown}: Redis Cluster is not supported by the queue's transport (CROSSSLOT): name a single "
            "server or a Sentinel",
            "server-cluster",
        )
    if mode == "sentinel":
        raise ConfigError(
            f"{address.shown} is a Sentinel. Write VALKEY_URL=sentinel://HOST:PORT/0?master=NAME", "server-sentinel"
        )
    version = str(info["redis_version"])
    if int(version.partition(".")[0]) < _OLDEST:
        raise ConfigError(f"{address.shown} is Redis {version}; name a Redis 7 or newer, or a Valkey", "server-old")
    valkey = info.get("valkey_version")
    return ServerFacts(
        product="valkey" if valkey else "redis",
        version=str(valkey or version),
        pid=info["process_id"],
        uptime_s=info["uptime_in_seconds"],
        memory_bytes=info["used_memory"],
        appendonly=bool(info["aof_enabled"]),
        maxmemory_policy=info["maxmemory_policy"],
    )


def warn_unless_durable(facts: ServerFacts) -> None:
    """Log what an operator should change on a server of their own."""
    if not facts.durable:
        log().warning("server_not_durable", appendonly=facts.appendonly, policy=facts.maxmemory_policy)


def _explained(error: RedisError, address: Address) -> DispatchError:
    # Both of the first two, and a server that still loads, are connection errors for the library.
    if isinstance(error, AuthenticationError | AuthorizationError):
        return ConfigError(f"{address.shown} does not take the password: {scrub(str(error))}", "server-password")
    if isinstance(error, BusyLoadingError):
        return InfraError(f"{address.shown} still loads its data; try again", "server-loading")
    if isinstance(error, MasterNotFoundError):
        return InfraError(
            f"no Sentinel of {address.shown} names a server that is up; check the name of the master",
            "server-no-master",
        )
    if isinstance(error, ResponseError):
        return ConfigError(f"{address.shown} cannot serve: {scrub(str(error))}", "server-refuses")
    return InfraError(f"{address.shown} does not answer: {scrub(str(error))}", "server-unreachable")

"""What a server would say of itself."""

from typing import Any, Final

from pidispatch.server.client import ServerFacts

_TOLD: Final[dict[str, Any]] = {
    "product": "valkey",
    "version": "9.1.2",
    "pid": 7,
    "uptime_s": 7_300,
    "memory_bytes": 1,
    "appendonly": True,
    "maxmemory_policy": "noeviction",
}


def server_facts(**other: Any) -> ServerFacts:
    """A durable server, but for what is `other`."""
    return ServerFacts(**{**_TOLD, **other})

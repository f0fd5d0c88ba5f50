"""Which server is used, and for how long: the one of `VALKEY_URL`, else our own. Never another that happens to run."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final

import redis

from pidispatch.config.settings import load_only
from pidispatch.server.address import Address, ServerSettings
from pidispatch.server.client import ServerFacts, check_server, connect
from pidispatch.server.embedded import Embedded

#: All that a verb must know to reach the server; it works while any other variable is malformed.
SERVER_VARIABLES: Final = ("VALKEY_URL", "VALKEY_PASSWORD", "PI_STATE_DIR", "PI_KEY_PREFIX")


@dataclass(frozen=True)
class Server:
    """A server that answered and can serve."""

    address: Address
    client: redis.Redis
    facts: ServerFacts
    #: Our own, of which this is a user.
    own: Embedded | None = None

    @property
    def embedded(self) -> bool:
        """Whether it is pi-dispatch's own."""
        return self.own is not None

    def ensure(self) -> None:
        """Start our own again where it was killed; one that is named is its operator's to start."""
        if self.own is not None:
            self.own.ensure()


def load_server_settings() -> ServerSettings:
    """The settings of `SERVER_VARIABLES` alone. Raises `ConfigError` naming a malformed one of these."""
    return load_only(SERVER_VARIABLES)


@contextmanager
def use_server(settings: ServerSettings) -> Iterator[Server]:
    """The server, for as long as the block goes on; our own is started where it does not run, and left at the end.

    Raises `ConfigError` for one that cannot serve the queue, `InfraError` for one that does not answer.
    """
    with _server(settings, start=True) as server:
        yield server


@contextmanager
def find_server(settings: ServerSettings) -> Iterator[Server]:
    """Like `use_server`, without starting our own: where it does not run, an `InfraError` (`server-not-running`)."""
    with _server(settings, start=False) as server:
        yield server


@contextmanager
def _server(settings: ServerSettings, *, start: bool) -> Iterator[Server]:
    address = Address.of(settings)
    if settings.valkey_url is not None:
        with closing(connect(address)) as client:
            yield Server(address, client, check_server(client, address))
        return
    own = Embedded(settings.state_dir)
    own.join(start=start)
    try:
        with closing(connect(address)) as client:
            yield Server(address, client, check_server(client, address), own)
    finally:
        own.leave()

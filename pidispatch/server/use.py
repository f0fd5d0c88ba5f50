"""Which server is used, and for how long: the one of `VALKEY_URL`, else our own. Never another that happens to run."""

import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

import redis

from pidispatch.config.asked import asked
from pidispatch.config.settings import load_only
from pidispatch.server.address import Address, ServerSettings
from pidispatch.server.client import ServerFacts, check_server, connect
from pidispatch.server.embedded import Embedded
from pidispatch.values.errors import InfraError

T = TypeVar("T")

#: All that a verb must know to reach the server; it works while any other variable is malformed.
SERVER_VARIABLES: Final = ("VALKEY_URL", "VALKEY_PASSWORD", "PI_STATE_DIR", "PI_KEY_PREFIX")
#: Seconds for which one who is in a hurry waits for a server: a verb is to have ended within three.
HURRY_S: Final = 1.8
#: Seconds for which such a one tries to leave our own server in good order.
_LEAVE_S: Final = 0.5


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
def find_server(settings: ServerSettings, *, hurry: bool = False) -> Iterator[Server]:
    """Like `use_server`, without starting our own: where it does not run, an `InfraError` (`server-not-running`).

    With `hurry` a server that has not answered within `HURRY_S` is given up, however the time passes.
    """
    with _server(settings, start=False, hurry=hurry) as server:
        yield server


@contextmanager
def _server(settings: ServerSettings, *, start: bool, hurry: bool = False) -> Iterator[Server]:
    address = Address.of(settings)
    own = Embedded(settings.state_dir) if settings.valkey_url is None else None
    until = time.monotonic() + HURRY_S if hurry else None
    if own is not None:
        _hurried(until, partial(own.join, start=start), address, own)
    try:
        with closing(connect(address)) as client:
            yield Server(address, client, _hurried(until, partial(check_server, client, address), address, own), own)
    finally:
        if own is not None and hurry:
            # One who is given up is no user any more once the program has ended.
            with contextlib.suppress(TimeoutError):
                asked(own.leave).result(_LEAVE_S)
        elif own is not None:
            own.leave()


def _hurried(until: float | None, act: Callable[[], T], address: Address, own: Embedded | None) -> T:
    """What `act` returns, until that instant. Raises `InfraError` (cause `server-unreachable`) after it."""
    if until is None:
        return act()
    try:
        return asked(act).result(max(0.0, until - time.monotonic()))
    except TimeoutError:
        remedy = "see that it runs and that VALKEY_URL names it"
        if own is not None:
            remedy = (
                "it hangs, or the program that is about to start or end it; its log: server/server.log in PI_STATE_DIR"
            )
        raise InfraError(
            f"{address.shown} does not answer within {HURRY_S:g} s: {remedy}", "server-unreachable"
        ) from None

"""What hears: uvicorn with this house's bounds, on sockets that are open before anything is said to be ready.

https://uvicorn.dev/settings/
"""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from pidispatch.config.log import log
from pidispatch.receiver.body import MOST_BYTES
from pidispatch.receiver.sparing import Sparing
from pidispatch.values.errors import InfraError

#: Bytes of it.
_HEAD_BYTES: Final = 64 * 1024
#: Bytes of a body as it comes, in pieces as small as anybody sends them.
_BODY_BYTES: Final = 2 * MOST_BYTES + _HEAD_BYTES
#: Connections at the same time; below what a process may have open by default.
_CONNECTIONS: Final = 512
#: Seconds for which a connection waits for its next request.
_IDLE_S: Final = 15
#: Seconds for which requests may go on that have begun when the program is told to stop.
STOP_S: Final = 12
_BACKLOG: Final = 1024
_sparing: Final = Sparing()


class Listener(NamedTuple):
    """A socket, and what answers there."""

    socket: socket.socket
    app: Any


class Bounded(HttpToolsProtocol):
    """A connection on which everything has a bound; uvicorn itself waits for a head, and keeps it, without end."""

    #: Seconds in which a head must have come.
    head_s: float = 10.0
    #: Connections at the same time.
    most: int = _CONNECTIONS
    _late: asyncio.TimerHandle | None = None
    _head = 0
    _body = 0
    _in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a head; one connection too many is ended at once, before it takes anything."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            if _sparing("connections"):
                log().warning("receiver_full", connections=self.most)
            transport.abort()
            return
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Bytes are counted, those of a head and those of a body with all that is around it."""
        if self._in_head:
            self._head += len(data)
            if self._late is None:
                # Also where what comes is not yet the beginning of a head.
                self._expect()
        else:
            self._body += len(data)
        if self._head - len(data) > _HEAD_BYTES or self._body > _BODY_BYTES:
            self.transport.abort()
            return
        super().data_received(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of the head; behind a body no forge sends any, and they would be kept without bound."""
        if self._in_head:
            super().on_header(name, value)
        else:
            self.transport.abort()

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._expect()

    def on_headers_complete(self) -> None:
        """It is whole."""
        self._in_head, self._head = False, 0
        self._unexpect()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """What comes next is a head."""
        super().on_message_complete()
        self._in_head, self._body = True, 0

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing comes any more."""
        self._unexpect()
        super().connection_lost(exc)

    def _expect(self) -> None:
        self._unexpect()
        self._late = self.loop.call_later(self.head_s, self.transport.abort)

    def _unexpect(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def listen(host: str, port: int, variable: str) -> socket.socket:
    """A socket that listens. Raises `InfraError` naming the variable that chose it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        # Inherited by every connection. An answer goes out in two parts, and the second one would else wait until the
        # other side has acknowledged the first, for 40 ms and more.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except (OSError, OverflowError) as error:
        reason = str(getattr(error, "strerror", None) or type(error).__name__).partition(" (")[0]
        raise InfraError(
            f"cannot listen on {host} port {port}: {reason}. End what listens there, or name another place with "
            f"{variable}",
            "receiver-listen",
        ) from None


def serve(listeners: Sequence[Listener], ready: Callable[[], None]) -> None:
    """Answer on all of them until SIGTERM or SIGINT, and then what has begun, for `STOP_S` at most."""
    asyncio.run(_serve(listeners, ready))


async def _serve(listeners: Sequence[Listener], ready: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(tell_fault)
    servers = [server_of(one.app) for one in listeners]
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, servers, signal.Signals(number).name)
    loop.call_soon(ready)
    await asyncio.gather(
        *(server.serve(sockets=[one.socket]) for server, one in zip(servers, listeners, strict=True)),
    )


def server_of(app: Any, http: type[asyncio.Protocol] = Bounded) -> uvicorn.Server:
    """A server that leaves signals alone, with its bounds."""
    return _Server(_config(app, http))


def _config(app: Any, http: type[asyncio.Protocol]) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="asyncio",
        http=http,
        ws="none",
        lifespan="off",
        interface="asgi3",
        # The log is this house's; uvicorn's would repeat what strangers send.
        log_config=None,
        log_level=logging.CRITICAL,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        workers=1,
        backlog=_BACKLOG,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=STOP_S,
    )


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are heard once for all servers of the program."""
        yield


def _stop(servers: Sequence[uvicorn.Server], name: str) -> None:
    log().info("receiver_stopping", signal=name)
    for server in servers:
        server.should_exit = True


def tell_fault(_loop: asyncio.AbstractEventLoop, told: dict[str, Any]) -> None:
    """Log a fault that the event loop tells of, without its words."""
    error = told.get("exception")
    cause = type(error).__name__ if error is not None else "unknown"
    if _sparing(cause):
        log().error("receiver_loop_error", cause=cause)

"""Connections that can be cut off: a server that sends its answer byte by byte is bounded by no pause between two.

A head, the length of a part of a body, and what TLS begins with are read to their end by the libraries, however long
that takes.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any, Final

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from pidispatch.config.deadline import Deadlines

_deadlines: Final = Deadlines()


class Cutting(HTTPAdapter):
    """Makes connections, and cuts them off at their time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._over = False
        super().__init__()

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Cut off what is connected in the block when it takes longer. Raises `TimeoutError` then."""
        try:
            with _deadlines.within(seconds, self._cut):
                yield
        except Exception:
            if self._over:
                raise TimeoutError from None
            raise
        finally:
            with self._lock:
                for one in self._sockets:
                    one.close()
                self._sockets.clear()
        if self._over:
            # A head that is cut off passes for a whole one.
            raise TimeoutError

    def init_poolmanager(self, *args: Any, **more: Any) -> None:
        """Have the connections made by classes that tell of their sockets."""
        super().init_poolmanager(*args, **more)
        self.poolmanager.pool_classes_by_scheme = self._classes()

    def proxy_manager_for(self, *args: Any, **more: Any) -> Any:
        """The same for those that go by way of a proxy."""
        manager = super().proxy_manager_for(*args, **more)
        manager.pool_classes_by_scheme = self._classes()
        return manager

    def _classes(self) -> dict[str, Any]:
        return {scheme: _telling(self, *bases) for scheme, bases in _BASES.items()}

    def connected(self, made: socket.socket) -> None:
        """Told of a new connection."""
        with self._lock:
            # Another handle on it: TLS takes the first one over.
            self._sockets.append(made.dup())
            if self._over:
                _shut(made)

    def _cut(self) -> None:
        with self._lock:
            self._over = True
            for one in self._sockets:
                _shut(one)


_BASES: Final = {"http": (HTTPConnectionPool, HTTPConnection), "https": (HTTPSConnectionPool, HTTPSConnection)}


def _telling(adapter: Cutting, pool: type[Any], connection: type[Any]) -> type[Any]:
    """A pool whose connections tell of their sockets, before anything is sent."""

    class Telling(connection):  # type: ignore[misc]
        def _new_conn(self) -> socket.socket:
            made: socket.socket = super()._new_conn()
            adapter.connected(made)
            return made

    class Pool(pool):  # type: ignore[misc]
        ConnectionCls = Telling

    return Pool


def _shut(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)

"""Requests to a server on this machine: as many as it takes, or at a given rate. One thread, connections kept open."""

import selectors
import socket
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

#: Connections that are open at the same time.
CONNECTIONS: Final = 16
#: Seconds without any answer after which the server counts as broken.
_SILENT_S: Final = 20.0
_END: Final = b"\r\n\r\n"


class _Line:
    """One connection, with at most one request under way."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.begun = 0.0
        self._answer = b""

    def send(self, request: bytes, begun: float) -> None:
        """Send one; `begun`: when it was due."""
        self.begun = begun
        self.socket.sendall(request)

    def answered(self) -> bool:
        """Read what has come; whether it is the whole answer. Raises `RuntimeError` for one that is not 202."""
        part = self.socket.recv(65536)
        self._answer += part
        head, end, body = self._answer.partition(_END)
        if not part or (end and b" 202 " not in head.split(b"\r\n", 1)[0]):
            raise RuntimeError(f"the server answered {self._answer[:200]!r}")
        if not end or len(body) < _length(head):
            return False
        self._answer = b""
        return True


def _length(head: bytes) -> int:
    names = (line.partition(b":") for line in head.lower().split(b"\r\n"))
    return next((int(value) for name, _, value in names if name == b"content-length"), 0)


def send(port: int, requests: Sequence[bytes], rate: float | None = None) -> tuple[float, list[float]]:
    """Send all of them; the seconds it took, and each one's seconds from when it was due to its answer.

    Without a `rate` a second they are due as soon as a connection is free, so that they measure the server's own rate.
    With one they are due whether or not the ones before are answered.
    """
    lines = [_Line(port) for _ in range(CONNECTIONS)]
    free = deque(lines)
    took: list[float] = []
    with selectors.DefaultSelector() as selector:
        for line in lines:
            selector.register(line.socket, selectors.EVENT_READ, line)
        sent, began = 0, time.perf_counter()
        while len(took) < len(requests):
            now = time.perf_counter()
            while free and sent < len(requests) and (rate is None or began + sent / rate <= now):
                free.popleft().send(requests[sent], now if rate is None else began + sent / rate)
                sent += 1
            due = rate is not None and free and sent < len(requests)
            wait = max(0.0, began + sent / rate - time.perf_counter()) if due and rate else _SILENT_S
            ready = selector.select(wait)
            if not ready and not due:
                raise RuntimeError("the server has not answered for long")
            for key, _ in ready:
                if key.data.answered():
                    took.append(time.perf_counter() - key.data.begun)
                    free.append(key.data)
        elapsed = time.perf_counter() - began
    for line in lines:
        line.socket.close()
    return elapsed, took

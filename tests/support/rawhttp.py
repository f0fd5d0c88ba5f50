"""Requests as bytes, right or wrong, on connections that are kept while the other side keeps them."""

import socket
from types import TracebackType
from typing import Self

#: Seconds without an answer after which the other side counts as broken.
SILENT_S = 20.0


class RawHttp:
    """One connection at a time to a port of this machine."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def ask(self, request: bytes) -> tuple[int, bytes] | None:
        """Send it, and read one answer: status and body; `None` where the connection was ended without one."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), SILENT_S)
        try:
            self._socket.sendall(request)
            return self._answer(self._socket)
        except (BrokenPipeError, ConnectionResetError):
            self.close()
            return None

    def _answer(self, connection: socket.socket) -> tuple[int, bytes] | None:
        read = b""
        while True:
            head, end, body = read.partition(b"\r\n\r\n")
            if end and len(body) >= _length(head):
                if b"connection: close" in head.lower():
                    self.close()
                return int(head.split(b" ", 2)[1]), body
            part = connection.recv(65536)
            if not part:
                self.close()
                return None
            read += part


def _length(head: bytes) -> int:
    lines = (line.partition(b":") for line in head.lower().split(b"\r\n"))
    return next((int(value) for name, _, value in lines if name == b"content-length"), 0)

"""A host that is served elsewhere: what comes for it is handed to a unix socket, and what comes back is handed on.

As a site of the proxy's table it is the end of a tunnel, after TLS. ``python3 -m model.relay`` is the same behind a
real proxy: a server on a port of its own, by TLS alone.
"""

from __future__ import annotations

import argparse
import contextlib
import select
import signal
import socket
import socketserver
import ssl
import sys
import threading
from pathlib import Path
from typing import Any

from .proxy import ProxyServer, Site

_CHUNK = 65536
_NOBODY = (
    b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: 29\r\nConnection: close\r\n\r\n"
    b"nobody listens at the socket\n"
)


def relay(path: Path) -> Site:
    """A site that is served by whoever listens at the unix socket ``path`` when a connection comes."""

    def serve(connection: socket.socket, address: Any, server: ProxyServer) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as behind:
            server.track(behind)
            _join(connection, behind, path)
            server.forget(behind)

    return serve


def _join(connection: socket.socket, behind: socket.socket, path: Path) -> None:
    """Hand on what either side sends until one of them ends; 502 where nobody listens."""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        try:
            behind.connect(str(path))
        except OSError:
            connection.recv(_CHUNK)
            connection.sendall(_NOBODY)
            return
        while True:
            for source in _ready(connection, behind):
                data = source.recv(_CHUNK)
                if not data:
                    return
                (behind if source is connection else connection).sendall(data)


def _ready(connection: socket.socket, behind: socket.socket) -> list[socket.socket]:
    # What TLS has decrypted already shows on no file descriptor.
    if isinstance(connection, ssl.SSLSocket) and connection.pending():
        return [connection]
    return select.select([connection, behind], [], [])[0]


class RelayServer(socketserver.ThreadingTCPServer):
    """TLS on a port of its own, for the hosts that its certificate names."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, address: tuple[str, int], certificate: Path, path: Path) -> None:
        """Bind; nothing is served before ``serve_forever``. ``certificate``: PEM file with key and chain."""
        self.path = path
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate)
        super().__init__(address, _RelayHandler)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; its handshake is made by its own thread."""
        connection, address = super().get_request()
        return self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address


class _RelayHandler(socketserver.BaseRequestHandler):
    server: RelayServer

    def handle(self) -> None:
        """One connection."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as behind, contextlib.suppress(OSError):
            self.request.do_handshake()
            _join(self.request, behind, self.server.path)


def main(argv: list[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="model.relay", description="TLS in front of a unix socket, for tests.")
    parser.add_argument("--port", type=int, default=443)
    parser.add_argument("--certificate", type=Path, required=True, metavar="PEM", help="key and chain")
    parser.add_argument("--socket", type=Path, required=True, metavar="PATH", help="who serves")
    args = parser.parse_args(argv)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    with RelayServer(("0.0.0.0", args.port), args.certificate, args.socket) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        print(f"listening on 0.0.0.0:{server.server_address[1]}", flush=True)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})
        server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())

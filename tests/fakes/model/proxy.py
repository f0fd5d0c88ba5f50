"""The proxy half of the neighbour: CONNECT and absolute-form requests, to the hosts of a table and to no
other.

A host of the table is served by a handler in this process; nothing is ever forwarded. Inside a tunnel the
first byte decides: a TLS record (0x16) is unwrapped when the server has a certificate, anything else is plain
HTTP. The real agent tunnels every request this way, plain ``http://`` ones too.
"""

from __future__ import annotations

import functools
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from .log import Refusal, RequestLog

#: Serves one connection until it ends, as the class of a ``BaseHTTPRequestHandler`` does when it is called.
Site: TypeAlias = Callable[[socket.socket, Any, "ProxyServer"], object]

#: First byte of a TLS handshake record: https://www.rfc-editor.org/rfc/rfc8446#section-5.1.
TLS_HANDSHAKE = b"\x16"


class ProxyServer(socketserver.ThreadingTCPServer):
    """Accepts connections, one thread each, and knows all of them so that it can stop at once."""

    allow_reuse_address = True
    daemon_threads = False
    request_queue_size = 128

    def __init__(
        self,
        address: tuple[str, int],
        handler: type[ProxyHandler],
        log: RequestLog,
        sites: Mapping[str, Site | None],
        certificate: ssl.SSLContext | None,
    ) -> None:
        """``sites``: lower-case host name -> its handler; None = ``handler`` itself."""
        self.log = log
        self.sites = dict(sites)
        self.certificate = certificate
        self.stopping = False
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection and remember it."""
        connection, address = super().get_request()
        self.track(connection)
        return connection, address

    def track(self, connection: socket.socket) -> None:
        """Remember a connection that ``stop`` must end."""
        with self._lock:
            self._connections.add(connection)
            if self.stopping:
                _hang_up(connection)

    def forget(self, connection: socket.socket) -> None:
        """Forget a connection that has ended."""
        with self._lock:
            self._connections.discard(connection)

    def shutdown_request(self, request: Any) -> None:
        """End a connection and forget it."""
        super().shutdown_request(request)
        self.forget(request)

    def stop(self) -> None:
        """Stop accepting, end every connection, and wait for the handlers."""
        self.shutdown()
        with self._lock:
            self.stopping = True
            for connection in self._connections:
                _hang_up(connection)
        self.server_close()


class ProxyHandler(BaseHTTPRequestHandler):
    """One connection: proxy requests are let through to the table, others are the subclass's business."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: ProxyServer

    def __init__(self, request: socket.socket, address: Any, server: ProxyServer, tunnel: str | None = None) -> None:
        """``tunnel``: the host a CONNECT asked for, when this connection is inside one."""
        self.tunnel = tunnel
        self.proxied = tunnel is not None
        super().__init__(request, address, server)

    @property
    def client(self) -> str:
        """``address:port`` of the other side."""
        return f"{self.client_address[0]}:{self.client_address[1]}"

    def handle(self) -> None:
        """Serve requests until the connection ends; breaking between two requests is no error."""
        try:
            super().handle()
        except (ConnectionError, ssl.SSLError):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing on stderr: the request log has it."""

    def parse_request(self) -> bool:
        """Read the request's head; an absolute-form target loses its host when that is this server's."""
        if not super().parse_request():
            return False
        self.proxied = self.tunnel is not None
        url = urlsplit(self.path) if self.command != "CONNECT" and not self.path.startswith("/") else None
        if url is None or not url.scheme:
            return True
        if (url.hostname or "") not in self.server.sites or self.server.sites[url.hostname or ""] is not None:
            self.refuse(self.path)
            return False
        self.proxied = True
        self.path = urlunsplit(("", "", url.path or "/", url.query, ""))
        return True

    def do_CONNECT(self) -> None:
        """Open a tunnel to a host of the table: https://www.rfc-editor.org/rfc/rfc9110#section-9.3.6."""
        host = self.path.rpartition(":")[0].lower()
        if self.tunnel is not None or host not in self.server.sites:
            self.refuse(self.path)
            return
        self.close_connection = True
        self.send_response_only(200, "Connection established")
        self.end_headers()
        first = self.connection.recv(1, socket.MSG_PEEK)
        if first == TLS_HANDSHAKE:
            self._serve_tls(host)
        elif first:
            self._serve(host, self.connection)

    def refuse(self, target: str) -> None:
        """Answer 403 and log it."""
        known = ", ".join(sorted(self.server.sites))
        self._log_refusal(target, "host not in the table")
        text = f"{self.command} {target} refused: this proxy serves only {known}\n".encode()
        self.close_connection = True
        self.send_response(403)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text)

    def _serve_tls(self, host: str) -> None:
        if self.server.certificate is None:
            self._log_refusal(self.path, "TLS in the tunnel, but the server has no certificate")
            return
        tls = self.server.certificate.wrap_socket(self.connection, server_side=True, do_handshake_on_connect=False)
        self.server.track(tls)
        try:
            tls.do_handshake()
            self._serve(host, tls)
        except ssl.SSLError as error:
            self._log_refusal(self.path, f"TLS handshake failed: {error.reason}")
        finally:
            self.server.shutdown_request(tls)

    def _serve(self, host: str, connection: socket.socket) -> None:
        site = self.server.sites[host] or functools.partial(type(self), tunnel=host)
        site(connection, self.client_address, self.server)

    def _log_refusal(self, target: str, why: str) -> None:
        self.server.log.append(
            Refusal(
                time=time.time(),
                monotonic=time.monotonic(),
                method=self.command,
                target=target,
                client=self.client,
                why=why,
            )
        )


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        # Already closed by the other side, or handed over to a TLS socket that is tracked itself.
        return

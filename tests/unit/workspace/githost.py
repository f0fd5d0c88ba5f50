"""A forge's git server on this machine: git's own CGI program behind a small HTTP server, for one token.

https://git-scm.com/docs/git-http-backend
"""

import base64
import contextlib
import os
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.server_tls import Certificate

#: The credential that it takes.
TOKEN = "ghs_0123456789abcdefMarked"
PACK = "application/x-git-upload-pack-advertisement"


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]

    @property
    def authorization(self) -> str | None:
        """Whom it says it comes from."""
        return self.headers.get("authorization")


@dataclass
class Answer:
    """What is said in the place of git's answer."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass
class GitHost:
    """Repositories below `root`; `fault` may answer a request in their place, or hold it up."""

    root: Path
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    fault: Callable[[Asked], Answer | None] = lambda _: None

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])


def credential(token: str = TOKEN) -> str:
    """The header's value that goes with a token."""
    return "Basic " + base64.b64encode(f"x-access-token:{token}".encode()).decode()


@contextlib.contextmanager
def serve(root: Path, tls: Certificate | None = None) -> Iterator[GitHost]:
    """A server of what lies in `root`, with every thread of it ended afterwards."""
    host = GitHost(root)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(host))
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls.cert, tls.key)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    host.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield host
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(host: GitHost) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            self._serve(b"")

        def do_POST(self) -> None:
            self._serve(self.rfile.read(int(self.headers["Content-Length"])))

        def _serve(self, body: bytes) -> None:
            # A proxy is asked for a whole address.
            path = self.path.split("://", 1)[-1].partition("/")[2] if "://" in self.path else self.path.lstrip("/")
            asked = Asked(self.command, self.path, {name.lower(): value for name, value in self.headers.items()})
            host.asked.append(asked)
            answer = host.fault(asked)
            if answer is None and asked.authorization != credential():
                answer = Answer(401, {"WWW-Authenticate": 'Basic realm="git"'})
            self._send(answer or _backend(host.root, asked, path, body))

        def _send(self, answer: Answer) -> None:
            # Who asked may be gone by now.
            with contextlib.suppress(ConnectionError):
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

        def handle(self) -> None:
            # So does one that does not trust us.
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                super().handle()

    return Handler


def _backend(root: Path, asked: Asked, path: str, body: bytes) -> Answer:
    name, _, query = path.partition("?")
    done = subprocess.run(
        ["git", "http-backend"],
        env={
            "PATH": os.defpath,
            "GIT_PROJECT_ROOT": str(root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "REMOTE_USER": "x-access-token",
            "REQUEST_METHOD": asked.method,
            "PATH_INFO": f"/{name}",
            "QUERY_STRING": query,
            "CONTENT_TYPE": asked.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": asked.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": asked.headers.get("git-protocol", ""),
        },
        input=body,
        capture_output=True,
        # Where it refuses, it answers and fails.
        check=False,
    )
    head, _, content = done.stdout.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
    return Answer(int(headers.pop("Status", "200 OK").split()[0]), headers, content)


def packet(text: str) -> bytes:
    """One packet line of git's protocol. https://git-scm.com/docs/gitprotocol-common"""
    return f"{len(text.encode()) + 4:04x}{text}".encode()

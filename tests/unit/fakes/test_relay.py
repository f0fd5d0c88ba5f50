"""A host that is served elsewhere: through the proxy's table, and as a server of its own."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import socketserver
import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.fakes.model import CATALOGUE, RequestLog, Server
from tests.fakes.model import __main__ as program
from tests.fakes.model.relay import RelayServer, relay
from tests.image.authority import AUTHORITY, SITE, files


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short one, because the path of a unix socket is bounded."""
    with tempfile.TemporaryDirectory(prefix="pi-r-", dir="/tmp") as path:
        yield Path(path)


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an authority's files."""
    path = tmp_path_factory.mktemp("authority")
    for name, content in files().items():
        (path / name).write_bytes(content)
    return path


class Echo(BaseHTTPRequestHandler):
    """Answers with what it was sent, and says the host that was asked for."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Echo."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("X-Host", str(self.headers["Host"]))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing on stderr."""


class Unix(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """A server on a unix socket."""

    daemon_threads = True


@contextmanager
def listening(path: Path) -> Iterator[None]:
    """Somebody who answers at the socket."""
    with Unix(str(path), Echo) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield
        server.shutdown()
        thread.join()


@pytest.fixture
def server(log: RequestLog, folder: Path, trusted: Path) -> Iterator[Server]:
    """A proxy with the site."""
    sites = {"api.github.com": relay(folder / "s.sock")}
    with Server(CATALOGUE, log, sites=sites, certificate=trusted / SITE) as running:
        yield running


def tunnel(server: Server, trusted: Path) -> http.client.HTTPSConnection:
    """A client that trusts the authority."""
    context = ssl.create_default_context(cafile=str(trusted / AUTHORITY))
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=20, context=context)
    connection.set_tunnel("api.github.com", 443)
    return connection


def test_requests_and_answers_of_any_size_go_through(server: Server, folder: Path, trusted: Path) -> None:
    with listening(folder / "s.sock"):
        connection = tunnel(server, trusted)
        for size in (0, 1, 70_000, 3_000_000):
            body = os.urandom(size)
            connection.request("POST", "/", body)
            response = connection.getresponse()
            assert (response.status, response.headers["X-Host"]) == (200, "api.github.com")
            assert response.read() == body
        connection.close()


def test_nobody_at_the_socket_is_said(server: Server, trusted: Path) -> None:
    connection = tunnel(server, trusted)
    connection.request("GET", "/")
    response = connection.getresponse()
    assert (response.status, response.read()) == (502, b"nobody listens at the socket\n")
    connection.close()


def test_the_proxy_s_end_is_the_end_of_what_is_relayed(log: RequestLog, folder: Path, trusted: Path) -> None:
    with listening(folder / "s.sock"):
        with Server(CATALOGUE, log, sites={"api.github.com": relay(folder / "s.sock")}) as server:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
            connection.set_tunnel("api.github.com", 80)
            connection.request("POST", "/", b"x")
            assert connection.getresponse().read() == b"x"
        assert connection.sock.recv(1) == b""
        connection.close()


def test_a_server_of_its_own(folder: Path, trusted: Path) -> None:
    context = ssl.create_default_context(cafile=str(trusted / AUTHORITY))
    with listening(folder / "s.sock"), RelayServer(("127.0.0.1", 0), trusted / SITE, folder / "s.sock") as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        with (
            socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=20) as plain,
            context.wrap_socket(plain, server_hostname="github.com") as tls,
        ):
            tls.sendall(b"POST / HTTP/1.1\r\nHost: github.com\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
            answer = b""
            while piece := tls.recv(65536):
                answer += piece
        server.shutdown()
        thread.join()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"\r\nhi")


def test_it_ends_at_a_signal_and_needs_nothing_but_python(folder: Path, trusted: Path) -> None:
    package = folder / "model"
    shutil.copytree(Path(program.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-S", "-m", "model.relay", "--port=0", f"--certificate={trusted / SITE}"]
    environment = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"]}
    with subprocess.Popen(
        [*command, f"--socket={folder / 's.sock'}"], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening on 0.0.0.0:")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


@pytest.mark.parametrize("text", ["api.test", "=/run/x", "api.test="])
def test_a_relay_that_is_none(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        program.main(["--log", "unused", "--relay", text])
    assert "is not NAME=PATH; write for example api.test=/run/api.sock" in capsys.readouterr().err


def test_the_program_relays_too(folder: Path, trusted: Path) -> None:
    command = [sys.executable, "-m", "tests.fakes.model", "--listen", "127.0.0.1:0", "--log", str(folder / "log")]
    told = [f"--certificate={trusted / SITE}", f"--relay=API.github.com={folder / 's.sock'}"]
    with (
        listening(folder / "s.sock"),
        subprocess.Popen(
            [*command, *told], stdout=subprocess.PIPE, text=True, cwd=Path(program.__file__).parents[3]
        ) as process,
    ):
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(":")[2])
        context = ssl.create_default_context(cafile=str(trusted / AUTHORITY))
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=context)
        connection.set_tunnel("api.github.com", 443)
        connection.request("POST", "/", b"through")
        assert connection.getresponse().read() == b"through"
        connection.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0

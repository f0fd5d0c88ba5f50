"""The proxy half: tunnels and absolute-form requests to the hosts of the table, and to no other."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.fakes.model import CATALOGUE, RequestLog, Server
from tests.unit.fakes.wire_client import (
    ANTHROPIC_HEADERS,
    OPENAI_HEADERS,
    anthropic_body,
    exchange,
    openai_body,
)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed key and certificate of model.test in one PEM file."""
    folder = tmp_path_factory.mktemp("certificate")
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=model.test "
        f"-addext subjectAltName=DNS:model.test -keyout {key} -out {cert}".split(),
        check=True,
        capture_output=True,
    )
    both = folder / "both.pem"
    both.write_text(key.read_text() + cert.read_text())
    return both


@pytest.fixture
def tls_server(log: RequestLog, certificate: Path) -> Iterator[Server]:
    """A server that can unwrap TLS."""
    with Server(CATALOGUE, log, certificate=certificate) as running:
        yield running


def tunnel(server: Server, host: str, port: int = 443) -> http.client.HTTPConnection:
    """A client whose requests go through a CONNECT tunnel as plain HTTP."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.set_tunnel(host, port)
    return connection


def raw(server: Server, data: bytes) -> bytes:
    """Send bytes, read until the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(data)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return answer


def test_a_tunnel_carries_many_plain_requests(server: Server, log: RequestLog) -> None:
    connection = tunnel(server, "model.test")
    for model in ("say", "edit"):
        body = anthropic_body(model)
        assert exchange(connection, "/v1/messages?beta=true", body, ANTHROPIC_HEADERS).status == 200
    connection.close()
    assert [(entry.proxied, entry.path) for entry in log.requests()] == [(True, "/v1/messages?beta=true")] * 2


def test_a_tunnel_to_any_other_host_is_refused(server: Server, log: RequestLog) -> None:
    for target in ("example.com:443", "127.0.0.1:22", "model.test.evil:443", "noport"):
        answer = raw(server, f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert b"this proxy serves only model.test" in answer
    refusals = log.refusals()
    assert [entry.target for entry in refusals] == ["example.com:443", "127.0.0.1:22", "model.test.evil:443", "noport"]
    assert {(entry.method, entry.why) for entry in refusals} == {("CONNECT", "host not in the table")}
    assert log.requests() == []


def test_host_names_are_compared_without_case(server: Server) -> None:
    connection = tunnel(server, "MODEL.Test", 80)
    assert exchange(connection, "/healthz", b"", {}, "GET").status == 200
    connection.close()


def test_a_tunnel_inside_a_tunnel_is_refused(server: Server) -> None:
    connect = b"CONNECT model.test:443 HTTP/1.1\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(connect)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        connection.sendall(connect)
        assert connection.recv(65536).startswith(b"HTTP/1.1 403 ")


def test_absolute_form_requests(server: Server, log: RequestLog) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    url = "http://model.test:443/v1/chat/completions"
    assert exchange(connection, url, openai_body("say"), OPENAI_HEADERS).status == 200
    assert exchange(connection, "http://model.test", b"", {}, "GET").status == 404
    refused = exchange(connection, "http://example.com/v1/chat/completions", openai_body("say"), OPENAI_HEADERS)
    connection.close()
    assert refused.status == 403
    assert [(entry.proxied, entry.path) for entry in log.requests()] == [(True, "/v1/chat/completions")]
    assert [entry.path for entry in log.lookups()] == ["/"]
    assert [entry.target for entry in log.refusals()] == ["http://example.com/v1/chat/completions"]


def test_a_tunnel_nobody_uses_is_no_error(server: Server, log: RequestLog) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(b"CONNECT model.test:443 HTTP/1.1\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(65536) == b""
    assert log.entries() == []


def test_nonsense_is_answered_with_400(server: Server) -> None:
    assert b" 400 " in raw(server, b"\x16\x03\x01 no http\r\n\r\n")


def secure_tunnel(server: Server, trusted: Path) -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cafile=str(trusted))
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=20, context=context)
    connection.set_tunnel("model.test", 443)
    return connection


def test_tls_in_a_tunnel(tls_server: Server, log: RequestLog, certificate: Path) -> None:
    connection = secure_tunnel(tls_server, certificate)
    for model in ("say", "edit"):
        assert exchange(connection, "/v1/chat/completions", openai_body(model), OPENAI_HEADERS).status == 200
    connection.close()
    assert [entry.proxied for entry in log.requests()] == [True, True]


def test_a_client_that_leaves_inside_tls_is_noticed(tls_server: Server, log: RequestLog, certificate: Path) -> None:
    connection = secure_tunnel(tls_server, certificate)
    connection.timeout = 0.3
    with pytest.raises(TimeoutError):
        exchange(connection, "/v1/chat/completions", openai_body("hang"), OPENAI_HEADERS)
    connection.close()
    assert log.wait_until(log.departures, 10, "the client's departure")


def test_stop_ends_a_hanging_request_inside_tls(log: RequestLog, certificate: Path) -> None:
    with Server(CATALOGUE, log, certificate=certificate) as server:
        connection = secure_tunnel(server, certificate)
        connection.request("POST", "/v1/chat/completions", json.dumps(openai_body("hang")), OPENAI_HEADERS)
        log.wait_for(1, 10)
    with pytest.raises((ConnectionError, ssl.SSLError, http.client.HTTPException)):
        connection.getresponse()
    connection.close()
    assert log.departures() == []


def test_plain_http_still_works_where_tls_would(tls_server: Server) -> None:
    connection = tunnel(tls_server, "model.test")
    assert exchange(connection, "/healthz", b"", {}, "GET").status == 200
    connection.close()


def test_tls_without_a_certificate_is_closed(server: Server, log: RequestLog, certificate: Path) -> None:
    connection = secure_tunnel(server, certificate)
    with pytest.raises(OSError):
        connection.request("GET", "/healthz")
    connection.close()
    refused = log.wait_until(log.refusals, 10, "the refusal")
    assert [entry.why for entry in refused] == ["TLS in the tunnel, but the server has no certificate"]


def test_a_client_that_does_not_trust_the_certificate(tls_server: Server, log: RequestLog) -> None:
    connection = http.client.HTTPSConnection("127.0.0.1", tls_server.port, timeout=20)
    connection.set_tunnel("model.test", 443)
    with pytest.raises(ssl.SSLCertVerificationError):
        connection.request("GET", "/healthz")
    connection.close()
    refused = log.wait_until(log.refusals, 10, "the refusal")
    assert refused[0].why.startswith("TLS handshake failed")


class Greeter(BaseHTTPRequestHandler):
    """Another service in the table."""

    def do_GET(self) -> None:
        """Say who this is."""
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing on stderr."""


def test_the_table_may_hold_other_services_and_more_names_of_the_model(log: RequestLog) -> None:
    with Server(CATALOGUE, log, sites={"greeter.test": Greeter, "api.anthropic.com": None}) as server:
        connection = tunnel(server, "greeter.test", 80)
        assert exchange(connection, "/", b"", {}, "GET").data == b"hello"
        connection.close()
        connection = tunnel(server, "api.anthropic.com")
        assert exchange(connection, "/v1/messages", anthropic_body("say"), ANTHROPIC_HEADERS).status == 200
        connection.close()
    assert len(log.requests()) == 1

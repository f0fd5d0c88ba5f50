"""A server that sends what no library leaves: a head, a length or the beginning of TLS, byte after byte without end."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from pidispatch.config.clock import SystemClock
from pidispatch.forges.github.api import Api, token_auth
from pidispatch.forges.github.connection import Unanswered
from pidispatch.forges.github.cutting import Cutting

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
Dripping = Callable[[bytes], int]


@pytest.fixture
def dripping() -> Iterator[Dripping]:
    """Starts one that begins with something and goes on with noughts; its port."""
    over, threads = threading.Event(), list[threading.Thread]()

    def serve(listening: socket.socket, first: bytes) -> None:
        with contextlib.suppress(OSError), listening, listening.accept()[0] as connection:
            connection.recv(65536)
            connection.sendall(first)
            while not over.wait(0.02):
                connection.sendall(b"0")

    def start(first: bytes) -> int:
        listening = socket.create_server(("127.0.0.1", 0))
        threads.append(threading.Thread(target=serve, args=(listening, first), daemon=True))
        threads[-1].start()
        port: int = listening.getsockname()[1]
        return port

    yield start
    over.set()
    for thread in threads:
        thread.join(10)


@pytest.mark.parametrize(
    ("scheme", "first"),
    [
        ("http", b"HTTP/1.1 200 OK\r\nX-Long: "),
        ("http", b"HTTP/1.1 2"),
        ("http", HEAD + b"\r\n"),
        ("https", b"\x16\x03\x03\x3f\xff"),
    ],
)
def test_it_is_left_in_time(dripping: Dripping, scheme: str, first: bytes) -> None:
    api = Api(f"{scheme}://127.0.0.1:{dripping(first)}", SystemClock(), 0.3)
    with pytest.raises(Unanswered) as caught:
        api.ask(token_auth("t"), "GET", "/user")
    assert caught.value.reason == "lookup-timeout"


def test_so_is_one_behind_a_proxy(dripping: Dripping, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    proxy = f"http://127.0.0.1:{dripping(HEAD)}"
    monkeypatch.setenv("HTTP_PROXY", proxy)
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(Unanswered) as caught:
        Api("http://forge.invalid", SystemClock(), 0.3).ask(token_auth("t"), "GET", "/user")
    assert caught.value.reason == "lookup-timeout"


def test_one_that_is_connected_too_late_is_cut_off_at_once() -> None:
    adapter = Cutting()
    ours, theirs = socket.socketpair()

    def connect_late() -> None:
        with adapter.within(3600):
            adapter._cut()
            adapter.connected(ours)

    with ours, theirs:
        with pytest.raises(TimeoutError):
            connect_late()
        assert theirs.recv(1) == b""

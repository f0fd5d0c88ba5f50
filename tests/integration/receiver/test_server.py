"""The bounds of a connection, on real sockets."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

import pytest

from pidispatch.receiver import server
from pidispatch.receiver.server import Bounded, listen, server_of, tell_fault
from pidispatch.receiver.sparing import Sparing
from pidispatch.values.errors import InfraError
from tests.support.server import until

Send = Callable[[MutableMapping[str, Any]], Any]
HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"


class Hasty(Bounded):
    """With a bound that a test can wait for."""

    head_s = 0.2


async def echo(scope: Mapping[str, Any], receive: Callable[[], Any], send: Send) -> None:
    """Answers with the body."""
    body = (await receive())["body"]
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def served(http: type[asyncio.Protocol] = Hasty) -> Iterator[int]:
    """A server; its port."""
    own = listen("127.0.0.1", 0, "X")
    program = server_of(echo, http)
    thread = threading.Thread(target=lambda: asyncio.run(program.serve(sockets=[own])))
    port: int = own.getsockname()[1]
    thread.start()
    try:
        yield port
    finally:
        program.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        yield connection


def ends(connection: socket.socket) -> bool:
    """Whether the other side ends it, without a word."""
    try:
        return connection.recv(100) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("begun", [b"", b"PO", HEAD])
def test_a_head_that_does_not_come_ends_the_connection(begun: bytes) -> None:
    with served() as port, connected(port) as connection:
        connection.sendall(begun)
        began = time.monotonic()
        assert ends(connection)
        assert time.monotonic() - began < 5


def test_a_second_request_on_the_same_connection_has_its_own_bound() -> None:
    with served() as port, connected(port) as connection:
        for _ in range(2):
            connection.sendall(HEAD + b"\r\nok")
            answer = b""
            while not answer.endswith(b"ok"):
                answer += connection.recv(1000)
            assert answer.startswith(b"HTTP/1.1 200 OK")
        connection.sendall(HEAD)
        assert ends(connection)


def test_a_head_without_end_is_not_kept() -> None:
    with served(Bounded) as port, connected(port) as connection:
        connection.sendall(HEAD + b"X-Long: ")
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 10_000_000:
                connection.sendall(b"x" * 65536)
                sent += 65536
        assert sent < 10_000_000


def test_what_is_no_http_is_refused() -> None:
    with served() as port, connected(port) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")


def test_what_comes_behind_a_body_is_not_kept() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with served(Bounded) as port, connected(port) as connection:
        connection.sendall(head + b"2\r\nok\r\n0\r\nX-Trailer: 1\r\nX-Other: 2\r\n")
        assert ends(connection)


@pytest.mark.parametrize("piece", [b"1\r\na\r\n", b"1;" + b"x" * 1000 + b"\r\na\r\n", b""])
def test_what_is_around_a_body_counts_too(piece: bytes) -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    # Without a piece, a field behind the body that does not end.
    endless = piece * 1000 if piece else b"x" * 65536
    sent = 0
    with served(Bounded) as port, connected(port) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(head + (b"" if piece else b"0\r\nX-Trailer: "))
        while sent < 40_000_000:
            connection.sendall(endless)
            sent += len(endless)
    assert sent < 40_000_000


def test_a_blank_line_keeps_no_connection_alive() -> None:
    with served() as port, connected(port) as connection:
        connection.sendall(HEAD + b"\r\nok")
        while not connection.recv(1000).endswith(b"ok"):
            pass
        connection.sendall(b"\r\n")
        assert ends(connection)


def test_one_connection_too_many_is_ended_and_told_once(logs: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_sparing", Sparing())

    class Few(Bounded):
        most = 2

    with served(Few) as port, contextlib.ExitStack() as opened:
        first, second = (opened.enter_context(connected(port)) for _ in range(2))
        for one in (first, second):
            one.sendall(HEAD + b"\r\nok")
            assert one.recv(1000)
        for _ in range(2):
            assert ends(opened.enter_context(connected(port)))
        first.close()

        def free() -> bool:
            with connected(port) as again, contextlib.suppress(ConnectionError):
                again.sendall(HEAD + b"\r\nok")
                return b"200" in again.recv(1000)
            return False

        until(free, "room")
    assert [one["event"] for one in logs].count("receiver_full") == 1


def test_a_place_that_is_taken_is_named() -> None:
    with listen("::1" if socket.has_ipv6 else "127.0.0.1", 0, "X") as own:
        host, port = own.getsockname()[:2]
        with pytest.raises(
            InfraError, match=f"cannot listen on .* port {port}: Address already in use.* with NAME"
        ) as it:
            listen(host, port, "NAME")
        assert it.value.cause == "receiver-listen"


def test_a_place_that_is_nowhere_is_named() -> None:
    with pytest.raises(InfraError, match=r"cannot listen on 203\.0\.113\.7 port 3000"):
        listen("203.0.113.7", 3000, "NAME")
    with pytest.raises(InfraError, match="cannot listen on localhost port 70000: OverflowError"):
        listen("localhost", 70000, "NAME")


def test_a_fault_of_the_event_loop_is_told_by_its_kind_and_now_and_then(
    logs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_sparing", Sparing())

    async def fail() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(tell_fault)
        loop.call_exception_handler({"message": "private", "exception": OSError(24, "Too many open files")})
        loop.call_exception_handler({"message": "private"})
        loop.call_exception_handler({"message": "private", "exception": OSError(24, "Too many open files")})

    asyncio.run(fail())
    assert [(one["event"], one["cause"]) for one in logs] == [
        ("receiver_loop_error", "OSError"),
        ("receiver_loop_error", "unknown"),
    ]

"""How answers come: in pieces and compressed as GitHub sends them, and in all the ways in which they do not come."""

import contextlib
import gzip
import threading
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, Self

from tests.fakes.github.faults import FAULTS, YES, Fault, Reply

#: What comes with every answer that says nothing else.
USUAL: Mapping[str, str] = {
    "content-type": "application/json; charset=utf-8",
    "x-ratelimit-limit": "5000",
    "x-ratelimit-remaining": "4999",
    "x-github-request-id": "A:1",
}


class Answering(BaseHTTPRequestHandler):
    """One connection; `serve` answers a request by `send` or `misbehave`."""

    protocol_version = "HTTP/1.1"
    timeout = 30
    # An answer in several pieces would wait for the other side's delayed acknowledgements.
    disable_nagle_algorithm = True
    #: Set once no answer is waited for any more.
    over: threading.Event

    def serve(self) -> None:
        """Answer one request."""
        raise NotImplementedError

    def origin(self) -> str:
        """What the place of a redirect begins with."""
        raise NotImplementedError

    def handle(self) -> None:
        # Who asked may leave in the middle of an answer.
        with contextlib.suppress(ConnectionError):
            super().handle()

    def finish(self) -> None:
        with contextlib.suppress(ConnectionError):
            super().finish()

    def do_GET(self) -> None:
        self.serve()

    def do_POST(self) -> None:
        self.do_GET()

    def content(self) -> bytes:
        """The body of the request, whole."""
        if (self.headers.get("Transfer-Encoding") or "").lower() == "chunked":
            return b"".join(self._chunks())
        return self.rfile.read(int(self.headers.get("Content-Length") or "0"))

    def _chunks(self) -> Iterable[bytes]:
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def misbehave(self, fault: Fault) -> None:
        """Answer as the fault says, or do not."""
        if fault is Fault.HANG_UP:
            self.close_connection = True
        elif fault is Fault.SLOW:
            self.over.wait(30)
            self.close_connection = True
        elif fault is Fault.DRIP:
            self._drip()
        elif fault is Fault.CUT_OFF:
            self.send(Reply(200, YES), cut=True)
        else:
            self.send(FAULTS[fault])

    def send(self, reply: Reply, *, cut: bool = False) -> None:
        """Send an answer, or half of it."""
        body = reply.encoded()
        packed = bool(body) and "gzip" in (self.headers.get("Accept-Encoding") or "")
        body = gzip.compress(body) if packed else body
        half = len(body) // 2
        pieces = [body[:half]] if cut else [*filter(None, (body[:half], body[half:])), b""]
        headers = {**USUAL, **reply.headers, **({"content-encoding": "gzip"} if packed else {})}
        if "location" in headers and headers["location"].startswith("/"):
            headers["location"] = self.origin() + headers["location"]
        self.start(reply.status, headers)
        if reply.status not in (204, 304):
            self.stream(pieces)
        if cut:
            self.close_connection = True

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the head of an answer whose body comes in pieces, where it has one."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def stream(self, pieces: Iterable[bytes]) -> None:
        """Send pieces; an empty one is the end of all."""
        for piece in pieces:
            if not piece:
                self.wfile.write(b"0\r\n\r\n")
                return
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        self.close_connection = True
        while not self.over.wait(0.02):
            self.wfile.write(b" ")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a test says what it looks for."""


class Listening:
    """A server at a port of this machine between `with` and its end, whose `handler` finds it as `fake`."""

    handler: ClassVar[type[Answering]]
    over: threading.Event

    def __enter__(self) -> Self:
        handler = type("Handler", (self.handler,), {"fake": self, "over": self.over})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._http.shutdown()
        self._thread.join(10)
        self._http.server_close()

    @property
    def origin(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

"""The model as a server: in this process for a test, or behind ``python3 -m model`` in a container."""

from __future__ import annotations

import itertools
import json
import select
import ssl
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from . import anthropic, openai
from .answer import Answer, JsonReply, Silence, Stream, answer, key_of
from .ask import count_turns
from .director import Director
from .log import Departure, Request, RequestLog
from .proxy import ProxyHandler, ProxyServer, Site
from .script import Scenario
from .usage import Api

#: The name under which the model is reached through the proxy.
MODEL_HOST = "model.test"

PATHS: Mapping[str, Api] = {
    "/v1/chat/completions": "openai",
    "/chat/completions": "openai",
    "/v1/messages": "anthropic",
}


class ClientGone(ConnectionError):
    """The client closed the connection while it was owed an answer."""


class ModelServer(ProxyServer):
    """A proxy whose own host is the model."""

    def __init__(
        self,
        address: tuple[str, int],
        log: RequestLog,
        scenarios: Mapping[str, Scenario],
        sites: Mapping[str, Site | None],
        certificate: ssl.SSLContext | None,
    ) -> None:
        """Bind; nothing is answered before ``serve_forever``."""
        self.director = Director(scenarios)
        self.serials = itertools.count(1)
        super().__init__(address, ModelHandler, log, {MODEL_HOST: None, **sites}, certificate)


class ModelHandler(ProxyHandler):
    """The model's HTTP: read a request, log it, send what ``answer`` decided."""

    server: ModelServer

    def do_GET(self) -> None:
        """Health, and the list of models in the shape of the API whose headers were sent."""
        path = self.path.partition("?")[0]
        if path == "/healthz":
            self._send_json(200, {"status": "ok"}, {})
            return
        reply = self._models() if path == "/v1/models" else _no_such_path("GET", path)
        self._log(next(self.server.serials), None, None, Answer(reply))
        self._send_json(reply.status, reply.body, {})

    def do_POST(self) -> None:
        """An answer of the model."""
        body = self._read_body()
        serial = next(self.server.serials)
        path = self.path.partition("?")[0]
        api = PATHS.get(path)
        if api is None:
            given = Answer(_no_such_path("POST", path))
        else:
            given = answer(self.server.director, api, self._headers(), body, serial=serial, created=int(time.time()))
        self._log(serial, api, body, given)
        try:
            self._send(given, serial, api)
        except ConnectionError:
            self.close_connection = True
            if not self.server.stopping:
                self._log_departure(serial, body)

    def _models(self) -> JsonReply:
        ids = list(self.server.director.scenarios)
        if "anthropic-version" in self._headers():
            return JsonReply(200, anthropic.model_list(ids))
        return JsonReply(200, openai.model_list(ids, int(time.time())))

    def _read_body(self) -> object:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            return json.loads(raw)
        except ValueError:
            return raw.decode("utf-8", "replace")

    def _headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}

    def _send(self, given: Answer, serial: int, api: Api | None) -> None:
        identity = {("request-id" if api == "anthropic" else "x-request-id"): anthropic.request_id(serial)}
        reply = given.reply
        if isinstance(reply, JsonReply):
            self._send_json(reply.status, reply.body, identity)
        elif isinstance(reply, Silence):
            self._pause(None)
        else:
            self._send_stream(reply, identity)

    def _send_json(self, status: int, body: object, headers: Mapping[str, str]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self._send_headers({**headers, "Content-Type": "application/json", "Content-Length": str(len(data))})
        self.wfile.write(data)

    def _send_stream(self, stream: Stream, headers: Mapping[str, str]) -> None:
        self.send_response(200)
        kind = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
        self._send_headers({**headers, **kind, "Transfer-Encoding": "chunked"})
        for chunk in stream.chunks:
            if stream.pause_s:
                self._pause(stream.pause_s)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        if stream.complete:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True

    def _send_headers(self, headers: Mapping[str, str]) -> None:
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _pause(self, seconds: float | None) -> None:
        """Wait, unless the client leaves: it sends nothing while it waits, so input is its end."""
        poll = select.poll()
        poll.register(self.connection, select.POLLIN | select.POLLRDHUP)
        if poll.poll(None if seconds is None else seconds * 1000):
            raise ClientGone

    def _log(self, serial: int, api: Api | None, body: object, given: Answer) -> None:
        self.server.log.append(
            Request(
                time=time.time(),
                monotonic=time.monotonic(),
                n=serial,
                method=self.command,
                path=self.path,
                api=api,
                model=_model_of(body),
                key=key_of(self._headers()),
                turn=count_turns(body),
                proxied=self.proxied,
                client=self.client,
                step=given.step,
                status=given.status,
                body=body,
            )
        )

    def _log_departure(self, serial: int, body: object) -> None:
        self.server.log.append(
            Departure(
                time=time.time(),
                monotonic=time.monotonic(),
                n=serial,
                model=_model_of(body),
                key=key_of(self._headers()),
            )
        )


class Server:
    """The scripted model on loopback or a given address; a context manager that starts and stops it."""

    def __init__(
        self,
        scenarios: Mapping[str, Scenario],
        log: RequestLog | Path,
        *,
        address: tuple[str, int] = ("127.0.0.1", 0),
        sites: Mapping[str, Site | None] | None = None,
        certificate: Path | None = None,
    ) -> None:
        """Bind at once, so ``port`` is known. Raises OSError when the address is taken.

        ``sites``: more hosts for the proxy's table (None = the model). ``certificate``: PEM file with key and
        chain for TLS in tunnels.
        """
        self.log = log if isinstance(log, RequestLog) else RequestLog(log)
        self._server = ModelServer(address, self.log, scenarios, sites or {}, _context(certificate))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="model-accept")

    @property
    def port(self) -> int:
        """The TCP port it listens on."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """``http://address:port``, for clients that do not use the proxy."""
        return f"http://{self._server.server_address[0]!s}:{self.port}"

    def start(self) -> Server:
        """Begin to answer."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End every connection and wait for the threads; nothing is logged afterwards."""
        self._server.stop()
        self._thread.join()

    def __enter__(self) -> Server:
        """Start."""
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()


def _context(certificate: Path | None) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def _no_such_path(method: str, path: str) -> JsonReply:
    return JsonReply(404, openai.error_body(404, f"Invalid URL ({method} {path})"))


def _model_of(body: object) -> str | None:
    model = body.get("model") if isinstance(body, dict) else None
    return model if isinstance(model, str) else None

"""The request log: JSON lines, written before an answer starts, and a typed reader for tests.

The number of requests that reached the model is the only proof that a budget stopped a run exactly, so a line
is on disk before the first byte of its answer leaves. The reader works on the writer's own object and, from
another process, on the file.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

from .usage import Api

#: How often a reader in another process looks at the file, in seconds.
POLL_S = 0.05


@dataclass(frozen=True, kw_only=True)
class Request:
    """One HTTP request that asked for something (health checks are not logged)."""

    #: Unix time in seconds, and the clock of ``time.monotonic()``.
    time: float
    monotonic: float
    #: 1 for the server's first request.
    n: int
    method: str
    #: Path and query, without the host.
    path: str
    #: None for requests that ask for no answer, such as ``GET /v1/models``.
    api: Api | None
    #: None where the body names no model.
    model: str | None
    #: Bearer token or x-api-key; empty without one.
    key: str
    #: Number of assistant messages in the body.
    turn: int
    #: Whether it came through the proxy (a tunnel or an absolute-form request).
    proxied: bool
    #: ``address:port`` of the client.
    client: str
    #: Name of the step that answers, such as ``Call``; None when the request is refused before the script.
    step: str | None
    #: HTTP status of the answer; None when it will hang.
    status: int | None
    #: The whole body: JSON, or text where it is no JSON.
    body: object


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A proxy request to a host that is not in the table."""

    time: float
    monotonic: float
    method: str
    #: What was asked for: ``host:port`` or a URL.
    target: str
    client: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Departure:
    """A client that went away before its answer was complete."""

    time: float
    monotonic: float
    #: The request's ``n``.
    n: int
    model: str | None
    key: str


Entry: TypeAlias = Request | Refusal | Departure
E = TypeVar("E", Request, Refusal, Departure)
T = TypeVar("T")
KINDS: dict[str, type[Entry]] = {cls.__name__.lower(): cls for cls in (Request, Refusal, Departure)}


class RequestLog:
    """One log file. Safe to use from several threads; one process writes."""

    def __init__(self, path: Path) -> None:
        """The file and its folder are made when the first line is written."""
        self.path = path
        self._changed = threading.Condition()
        # Bodies repeat the whole conversation, so a long log is parsed once and only its news after that.
        self._parsed: list[Entry] = []
        self._offset = 0

    def append(self, entry: Entry) -> None:
        """Write one line and flush it."""
        line = json.dumps({"kind": type(entry).__name__.lower(), **asdict(entry)}) + "\n"
        with self._changed:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line)
            self._changed.notify_all()

    def entries(self) -> list[Entry]:
        """All lines so far, in order. A line still being written is left out."""
        with self._changed:
            if self.path.exists():
                with self.path.open("rb") as file:
                    file.seek(self._offset)
                    complete = file.read().rpartition(b"\n")[0]
                lines = complete.split(b"\n") if complete else []
                self._parsed.extend(_entry(json.loads(line)) for line in lines)
                self._offset += len(complete) + 1 if lines else 0
            return list(self._parsed)

    def requests(self, *, key: str | None = None, model: str | None = None) -> list[Request]:
        """Requests for an answer (both APIs), refused ones included, optionally of one key or model id."""
        return [
            entry
            for entry in self.entries()
            if isinstance(entry, Request) and entry.api is not None and _matches(entry, key, model)
        ]

    def lookups(self) -> list[Request]:
        """Every other request, such as the list of models or an unknown path."""
        return [entry for entry in self.entries() if isinstance(entry, Request) and entry.api is None]

    def refusals(self) -> list[Refusal]:
        """Proxy requests that were refused."""
        return [entry for entry in self.entries() if isinstance(entry, Refusal)]

    def departures(self, *, key: str | None = None, model: str | None = None) -> list[Departure]:
        """Clients that went away, optionally of one key or model id."""
        return [entry for entry in self.entries() if isinstance(entry, Departure) and _matches(entry, key, model)]

    def wait_for(self, n: int, timeout_s: float, *, key: str | None = None, model: str | None = None) -> list[Request]:
        """Wait until at least ``n`` such requests are logged. Raises TimeoutError."""

        def enough() -> list[Request] | None:
            found = self.requests(key=key, model=model)
            return found if len(found) >= n else None

        return self.wait_until(enough, timeout_s, f"{n} requests (key {key or 'any'}, model {model or 'any'})")

    def wait_until(self, probe: Callable[[], T | None], timeout_s: float, what: str) -> T:
        """Wait until ``probe`` answers something true, and return it. Raises TimeoutError naming ``what``."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not (found := probe()):
                left = deadline - time.monotonic()
                if left <= 0:
                    kinds = [f"{type(entry).__name__} {_named(entry)}" for entry in self.entries()]
                    raise TimeoutError(f"waited {timeout_s} s for {what}; {self.path} holds {kinds}")
                self._changed.wait(min(left, POLL_S))
        return found


def _entry(fields: dict[str, object]) -> Entry:
    kind = KINDS[str(fields.pop("kind"))]
    return kind(**fields)  # type: ignore[arg-type]


def _matches(entry: Request | Departure, key: str | None, model: str | None) -> bool:
    return (key is None or entry.key == key) and (model is None or entry.model == model)


def _named(entry: Entry) -> str:
    return entry.target if isinstance(entry, Refusal) else f"{entry.key}/{entry.model}"

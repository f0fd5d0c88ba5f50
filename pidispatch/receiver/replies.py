"""What the receiver answers, ready to be sent."""

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
#: After it nothing more is read of the connection.
_CLOSE: Final = (b"connection", b"close")


class Reply:
    """A status with a small JSON object, or with nothing. `close`: the rest of the request is not read."""

    def __init__(
        self, status: int, document: Mapping[str, str] | None = None, *, close: bool = False, allow: str | None = None
    ) -> None:
        self.status: Final = status
        headers: list[tuple[bytes, bytes]] = []
        self._body = b""
        if document is not None:
            self._body = json.dumps(document, separators=(",", ":")).encode()
            headers += [(b"content-type", b"application/json"), (b"content-length", str(len(self._body)).encode())]
        if allow is not None:
            headers.append((b"allow", allow.encode()))
        if close:
            headers.append(_CLOSE)
        self._headers = headers

    async def send(self, send: Send) -> None:
        """Send it."""
        await send({"type": "http.response.start", "status": self.status, "headers": self._headers})
        await send({"type": "http.response.body", "body": self._body})


def refusal(status: int, error: str, *, close: bool = False, allow: str | None = None) -> Reply:
    """A reply that says what was wrong."""
    return Reply(status, {"error": error}, close=close, allow=allow)


#: A job waits; also for a delivery that came before.
QUEUED: Final = Reply(202, {"status": "queued"})
#: Authentic, and nothing comes of it.
DROPPED: Final = Reply(204)


def coalesced(job_id: str) -> Reply:
    """Another job stands for the same wish."""
    return Reply(202, {"status": "coalesced", "job": job_id})

"""The body of a request: read within bounds of size and time, and understood only once it is known to be authentic."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from enum import Enum, auto
from typing import Any, Final, NoReturn

#: As of https://asgi.readthedocs.io/en/stable/specs/www.html
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

#: Bytes of one body.
MOST_BYTES: Final = 2 * 1024 * 1024
#: Bytes of all bodies that are being read, together.
_ALL_BYTES: Final = 64 * 1024 * 1024
#: Seconds in which a body must have come; forges themselves give up after about as long.
BODY_S: Final = 10.0
#: Digits of a length that can be right.
_DIGITS: Final = 12


class Unread(Enum):
    """Why there is no body."""

    TOO_LARGE = auto()
    #: It did not come in time.
    SLOW = auto()
    #: So much is being read that there is no room for it.
    BUSY = auto()
    #: Whoever sent it has gone.
    GONE = auto()


class Bodies:
    """Reads bodies, and knows how much of them is in memory."""

    def __init__(self, within_s: float = BODY_S, most: int = MOST_BYTES, together: int = _ALL_BYTES) -> None:
        self._within_s = within_s
        self._most = most
        self._together = together
        self._held = 0

    def too_large(self, headers: Mapping[str, str]) -> bool:
        """Whether a request says that its body is beyond the bound."""
        said = headers.get("content-length", "")
        return said.isdecimal() and (len(said) > _DIGITS or int(said) > self._most)

    async def read(self, receive: Receive) -> bytes | Unread:
        """The body, or why there is none."""
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._within_s):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return Unread.GONE
                    part: bytes = message.get("body", b"")
                    if size + len(part) > self._most:
                        return Unread.TOO_LARGE
                    if self._held + len(part) > self._together:
                        return Unread.BUSY
                    self._held += len(part)
                    size += len(part)
                    parts.append(part)
                    if not message.get("more_body", False):
                        return parts[0] if len(parts) == 1 else b"".join(parts)
        except TimeoutError:
            return Unread.SLOW
        finally:
            self._held -= size


def _no_number(_: str) -> NoReturn:
    raise ValueError


_DECODER: Final = json.JSONDecoder(parse_constant=_no_number)


def parsed(body: bytes) -> Any:
    """The body as strict JSON. Raises `ValueError`."""
    try:
        return _DECODER.decode(body.decode())
    except RecursionError:
        # Brackets without end.
        raise ValueError from None

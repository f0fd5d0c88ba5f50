"""One forge's webhook, from the head of a request to its answer.

The order is fixed: method, type, headers, size, body, signature; only then is anything of the body understood, and only
what the gate lets through reaches the store (docs/explanation/receiver.md).
"""

import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from pidispatch.config.log import log
from pidispatch.forges.protocol import Account, ForgeModule, Unverified, Wire
from pidispatch.receiver.body import Bodies, Receive, Unread, parsed
from pidispatch.receiver.deciding import ENQUEUE_FAILED, Deciding, Outcome
from pidispatch.receiver.desk import Desk
from pidispatch.receiver.lanes import Lane
from pidispatch.receiver.measures import Counted
from pidispatch.receiver.replies import DROPPED, QUEUED, Reply, coalesced, refusal
from pidispatch.receiver.sparing import Sparing
from pidispatch.triggers.rules import Rules
from pidispatch.values.clock import Clock
from pidispatch.values.event import Event, Identity
from pidispatch.values.forge import JobKind

#: Seconds from the head of a request in which all that others are asked for must be answered. GitHub waits for ten.
#: https://docs.github.com/en/webhooks/using-webhooks/best-practices-for-using-webhooks
ANSWER_S: Final = 9.0
#: An id that a forge gives a delivery.
_DELIVERY: Final = re.compile(r"[A-Za-z0-9._=+-]{1,150}")
_TYPE: Final = "application/json"


@dataclass(frozen=True)
class Served:
    """A forge that this receiver hears."""

    module: ForgeModule
    wire: Wire
    account: Account
    me: Identity


class Told(NamedTuple):
    """An answer, and what is counted of it."""

    reply: Reply
    verdict: str
    reason: str = ""
    event: Event | None = None


class Hook:
    """Answers the requests at one forge's path."""

    def __init__(
        self,
        served: Served,
        rules: Callable[[], Rules],
        desk: Desk,
        lookups: Lane,
        bodies: Bodies,
        clock: Clock,
        counted: Counted,
        answer_s: float = ANSWER_S,
    ) -> None:
        self._served = served
        self._kind = served.module.row.kind
        self._decide = Deciding(served.module, served.account, served.me, rules, desk, lookups, clock)
        self._bodies = bodies
        self._clock = clock
        self._counted = counted
        self._answer_s = answer_s
        self._sparing = Sparing(clock.monotonic)
        word = _worded(self._kind)
        self._method = refusal(405, word("method not allowed"), close=True, allow="POST")
        self._media = refusal(415, word("unsupported media type"), close=True)
        self._unread = {
            Unread.TOO_LARGE: refusal(413, word("payload too large"), close=True),
            Unread.SLOW: refusal(408, word("request timeout"), close=True),
            Unread.BUSY: refusal(503, "busy", close=True),
        }
        self._lookup_failed = refusal(503, served.module.lookup_failed)

    async def __call__(self, scope: Mapping[str, Any], receive: Receive) -> Reply | None:
        """The answer to a request; `None` where whoever sent it has gone."""
        began = self._clock.monotonic()
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            told = await self._answer(scope["method"], headers, receive, began + self._answer_s)
        except Exception as error:
            log().error("verify_handler_error", forge=self._kind, delivery=self._delivery(headers), **_place(error))
            told = Told(_BROKEN, "error")
        if told is None:
            return None
        known = told.event.event if told.event is not None and told.event.occasions else "other"
        self._counted(self._kind.value, known, told.verdict, told.reason, self._clock.monotonic() - began)
        return told.reply

    async def _answer(self, method: str, headers: Mapping[str, str], receive: Receive, until: float) -> Told | None:
        if method != "POST":
            return _refused(self._method)
        if headers.get("content-type", "").partition(";")[0].strip().lower() != _TYPE:
            return _refused(self._media)
        if (missing := self._served.wire.missing(headers)) is not None:
            return self._unverified(missing, headers, close=True)
        if self._bodies.too_large(headers):
            return _refused(self._unread[Unread.TOO_LARGE])
        body = await self._bodies.read(receive)
        if isinstance(body, bytes):
            return await self._read(headers, body, until)
        return None if body is Unread.GONE else _refused(self._unread[body])

    async def _read(self, headers: Mapping[str, str], body: bytes, until: float) -> Told:
        """A request with its body."""
        served = self._served
        if (wrong := served.wire.authentic(headers, body, self._clock.now())) is not None:
            return self._unverified(wrong, headers)
        given = served.wire.delivery(headers)
        if given is not None and not _DELIVERY.fullmatch(given):
            return self._unverified(_NO_DELIVERY, headers)
        try:
            document = parsed(body)
        except ValueError:
            return self._unverified(_NO_JSON, headers)
        event = served.module.event(headers, document)
        if isinstance(event, Unverified):
            return self._unverified(event, headers)
        if not _DELIVERY.fullmatch(event.delivery):
            return self._unverified(_NO_DELIVERY, headers)
        return self._told(event, await self._decide(event, until))

    def _told(self, event: Event, found: Outcome) -> Told:
        """How the forge is answered."""
        if found.verdict == "retry":
            reply = _ENQUEUE_FAILED if found.reason == ENQUEUE_FAILED else self._lookup_failed
        elif found.verdict == "dropped":
            reply = DROPPED
        else:
            reply = coalesced(found.job_id) if found.verdict == "coalesced" else QUEUED
        return Told(reply, found.verdict, found.reason, event)

    def _unverified(self, wrong: Unverified, headers: Mapping[str, str], *, close: bool = False) -> Told:
        """Tell it, and log it now and then: anybody can send such requests, and a wrong secret must be found."""
        if self._sparing(wrong.error):
            log().warning(
                "delivery_refused",
                forge=self._kind,
                status=wrong.status,
                error=wrong.error,
                delivery=self._delivery(headers),
            )
        return _refused(refusal(wrong.status, wrong.error, close=close))

    def _delivery(self, headers: Mapping[str, str]) -> str | None:
        """The id of a request that may be anybody's, for the log."""
        given = self._served.wire.delivery(headers)
        return given if given is not None and _DELIVERY.fullmatch(given) else None


_BROKEN: Final = refusal(500, "internal error", close=True)
_ENQUEUE_FAILED: Final = refusal(503, ENQUEUE_FAILED)
_NO_JSON: Final = Unverified(400, "invalid-json")
_NO_DELIVERY: Final = Unverified(400, "invalid delivery id")


def _refused(reply: Reply) -> Told:
    return Told(reply, "refused", str(reply.status))


def _worded(kind: JobKind) -> Callable[[str], str]:
    """How a forge is told what is wrong; Azure DevOps by tokens."""
    return lambda text: text.replace(" ", "-") if kind is JobKind.AZURE else text


def _place(error: Exception) -> dict[str, str]:
    """What kind of mistake it was, and where; its text may hold a part of a payload."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    return {"cause": type(error).__name__, "at": f"{Path(at.filename).name}:{at.lineno}"}

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
from pidispatch.forges.protocol import Account, Answer, ForgeModule, Unverified, Wire
from pidispatch.receiver.asking import delivery_of, jobs_of
from pidispatch.receiver.body import Bodies, Receive, Unread, parsed
from pidispatch.receiver.desk import Desk, Handed
from pidispatch.receiver.lanes import Busy, Lane, asked_of
from pidispatch.receiver.measures import Counted
from pidispatch.receiver.replies import DROPPED, QUEUED, Reply, coalesced, refusal
from pidispatch.receiver.sparing import Sparing
from pidispatch.triggers.matching import Ask, Fired, decide
from pidispatch.triggers.rules import Rules
from pidispatch.values.clock import Clock
from pidispatch.values.event import Authority, Drop, Event, Identity
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
        self._rules = rules
        self._desk = desk
        self._lookups = lookups
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
        return await self._decided(event, until)

    async def _decided(self, event: Event, until: float) -> Told:
        """What becomes of an authentic event. The rules are those of this moment, whatever is edited meanwhile."""
        rules, spent = self._rules(), set[int]()
        authority: Authority | None = None
        while True:
            found = decide(event, rules, self._served.me, authority, spent=spent)
            if isinstance(found, Drop):
                return self._dropped(event, found)
            if isinstance(found, Ask):
                answer = await self._asked(event, until)
                if answer.authority is Authority.UNKNOWN:
                    return self._undecided(event, answer)
                authority = answer.authority
                continue
            handed = await self._desk.hand_in(jobs_of(event, found), self._left(until))
            if handed.status != "spent":
                return self._handed(event, found, handed)
            # Another rule may take what this one, which fires once, does no more.
            spent.add(found.rule.index)

    async def _asked(self, event: Event, until: float) -> Answer:
        try:
            return await asked_of(self._lookups, lambda: self._served.account.authority(event), self._left(until))
        except Busy:
            return Answer(Authority.UNKNOWN, "busy")
        except TimeoutError:
            return Answer(Authority.UNKNOWN, "timed-out")

    def _left(self, until: float) -> float:
        return max(0.0, until - self._clock.monotonic())

    def _undecided(self, event: Event, answer: Answer) -> Told:
        word = self._served.module.lookup_failed
        log().warning("lookup_failed", forge=self._kind, delivery=event.delivery, reason=answer.reason)
        self._desk.note(self._kind, delivery_of(event, reason=word), "retry")
        return Told(self._lookup_failed, "retry", word, event)

    def _dropped(self, event: Event, drop: Drop) -> Told:
        log().info("dropped", delivery=event.delivery, reason=drop.value)
        self._desk.note(self._kind, delivery_of(event, reason=drop.value), "dropped")
        return Told(DROPPED, "dropped", drop.value, event)

    def _handed(self, event: Event, fired: Fired, handed: Handed) -> Told:
        if handed.status == "failed":
            log().error("enqueue_failed", delivery=event.delivery, cause=handed.cause)
            self._desk.note(self._kind, delivery_of(event, trigger=fired.rule.index, reason=_FAILED), "retry")
            return Told(_ENQUEUE_FAILED, "retry", _FAILED, event)
        if handed.status == "trigger-paused":
            # The store's own log tells of it already.
            log().info("dropped", delivery=event.delivery, reason=Drop.TRIGGER_PAUSED.value)
            return Told(DROPPED, "dropped", Drop.TRIGGER_PAUSED.value, event)
        if handed.status == "coalesced":
            log().info("coalesced", delivery=event.delivery, repo=event.repo, jobId=handed.job_id)
            return Told(coalesced(handed.job_id), "coalesced", event=event)
        if handed.status == "duplicate":
            log().info("redelivered", delivery=event.delivery, repo=event.repo, jobId=handed.job_id)
            return Told(QUEUED, "duplicate", event=event)
        run, target = fired.rule.run, event.target
        log().info(
            "enqueued",
            delivery=event.delivery,
            repo=event.repo,
            target=target.number if target is not None else None,
            flow=fired.flow if run.command is None else None,
            replicas=handed.new,
        )
        return Told(QUEUED, "queued", event=event)

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
_FAILED: Final = "enqueue-failed"
_ENQUEUE_FAILED: Final = refusal(503, _FAILED)
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

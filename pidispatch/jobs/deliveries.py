"""The log of deliveries: what became of the last events of each forge. Ids and fixed words, nothing of a payload."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from pidispatch.jobs.calls import Calls
from pidispatch.jobs.delivered import Delivery
from pidispatch.jobs.keys import DELIVERIES, SOURCE
from pidispatch.values.base import Value
from pidispatch.values.epoch import from_ms
from pidispatch.values.forge import JobKind

#: How long a receiver's word stands that it hears a forge.
_SOURCE_MS: Final = 14 * 86_400_000
#: How the store's words for what was submitted are told.
_VERDICTS: Final = {"submitted": "queued"}


class Delivered(Value):
    """An entry of the log."""

    #: Its place there.
    entry: str
    at: datetime
    forge: JobKind
    delivery: Delivery
    #: `queued`, `duplicate`, `coalesced`, `dropped`, or `retry`.
    verdict: str
    #: The job; where it was coalesced, the one that stands for it.
    job_id: str | None = None


class Source(Value):
    """A forge that receivers hear."""

    forge: JobKind
    #: Since when.
    since: datetime
    #: Whether the receiver that spoke last has a triggers file that was edited into something broken.
    faulty: bool = False
    #: The last authentic delivery; `None` where none came.
    last: datetime | None = None


class Deliveries(Calls):
    """Written by receivers, for who looks."""

    def log_delivery(self, forge: JobKind, delivery: Delivery, verdict: str) -> None:
        """Keep what became of an event that made no job. Raises `InfraError`."""
        key = self._key(DELIVERIES, forge.value)
        entry: dict[Any, Any] = {"delivery": delivery.stored(), "verdict": verdict, "job": ""}
        self._ask(lambda: self._client.xadd(key, entry, maxlen=self._limits.deliveries, approximate=False))

    def deliveries(self, forge: JobKind, most: int, after: str = "") -> list[Delivered]:
        """The last `most` entries of a forge, oldest first; only those after the entry `after`. Raises `InfraError`."""
        key = self._key(DELIVERIES, forge.value)
        begin = f"({after}" if after else "-"
        found: Any = self._ask(lambda: self._client.xrevrange(key, "+", begin, count=most))
        read = (_delivered(forge, entry, fields) for entry, fields in reversed(found))
        return [one for one in read if one is not None]

    def hear(self, forges: Iterable[JobKind], *, faulty: bool = False) -> None:
        """Say that a receiver hears these forges; for two weeks. Raises `InfraError`.

        `faulty`: its triggers file was edited into something broken, so that older rules are in force.
        """
        names = [self._key(SOURCE, forge.value) for forge in forges]
        if not names:
            return
        since = self._now_ms()
        with self._client.pipeline(transaction=False) as said:
            for name in names:
                said.hsetnx(name, "since", str(since))
                said.hset(name, "faulty", int(faulty))
                said.pexpire(name, _SOURCE_MS)
            self._ask(said.execute)

    def sources(self) -> list[Source]:
        """The forges that receivers hear, or heard lately. Raises `InfraError`."""
        forges = [one for one in JobKind if one is not JobKind.LOCAL]
        with self._client.pipeline(transaction=False) as asked:
            for forge in forges:
                asked.hmget(self._key(SOURCE, forge.value), ["since", "faulty"])
                asked.xrevrange(self._key(DELIVERIES, forge.value), count=1)
            answers = self._ask(asked.execute)
        found = []
        for forge, (since, faulty), last in zip(forges, answers[::2], answers[1::2], strict=True):
            if since is not None:
                at = _at(last[0][0]) if last else None
                found.append(Source(forge=forge, since=from_ms(int(since)), faulty=faulty == "1", last=at))
        return found


def _at(entry: str) -> datetime:
    """When, by the server's clock: an entry is known by it (https://valkey.io/topics/streams-intro/)."""
    return from_ms(int(entry.partition("-")[0]))


def _delivered(forge: JobKind, entry: str, fields: dict[str, Any]) -> Delivered | None:
    try:
        delivery = Delivery.model_validate(json.loads(fields["delivery"]))
        verdict = str(fields["verdict"])
        if verdict == "trigger-paused":
            delivery, verdict = delivery.model_copy(update={"reason": verdict}), "dropped"
        return Delivered(
            entry=entry,
            at=_at(entry),
            forge=forge,
            delivery=delivery,
            verdict=_VERDICTS.get(verdict, verdict),
            job_id=fields.get("job") or None,
        )
    except (ValueError, KeyError, ValidationError):
        # One of a later version.
        return None

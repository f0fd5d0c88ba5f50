"""What the store remembers of triggers: those that are paused because their runs come to nothing, and those spent."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from pydantic import ConfigDict, Field, ValidationError

from pidispatch.jobs.calls import Calls
from pidispatch.jobs.keys import (
    DEDUP,
    JOB,
    ONESHOT,
    TRIGGER_PAUSED,
    TRIGGER_RESUMED,
    TRIGGER_RUNS,
    TRIGGERS_PAUSED,
    TRIGGERS_TRIPPED,
)
from pidispatch.values.base import Value
from pidispatch.values.epoch import from_ms

#: Pauses that are told by one look.
_MOST_TOLD: Final = 100
#: As long as a row may wait for its end.
_RESUMED_MS: Final = 31 * 86_400_000


class _Noted(Value):
    """What a script wrote; one of a later version may write more."""

    model_config = ConfigDict(extra="ignore")

    at_ms: int = Field(alias="at")

    @property
    def at(self) -> datetime:
        """When, by the server's clock."""
        return from_ms(self.at_ms)


class TriggerPaused(_Noted):
    """Why a trigger is paused."""

    #: Runs that came to nothing, one after the other.
    runs: int
    #: The last of them, the reason of its end (empty where it only changed nothing), and what may be shown of it.
    job_id: str
    reason: str = ""
    label: str = ""


class Spent(_Noted):
    """A rule that fires once has fired."""

    #: The job that spent it.
    job_id: str


class Triggered(Calls):
    """Pauses and marks, under the names that the triggers file gives its entries (docs/reference/keys.md)."""

    def paused_triggers(self) -> dict[str, TriggerPaused]:
        """Every paused trigger. Raises `InfraError`."""
        names = sorted(str(one) for one in self._ask(lambda: self._client.smembers(self._key(TRIGGERS_PAUSED))))
        if not names:
            return {}
        found = self._ask(lambda: self._client.mget([self._key(TRIGGER_PAUSED, one) for one in names]))
        read = {one: _read(TriggerPaused, text) for one, text in zip(names, found, strict=True)}
        return {one: paused for one, paused in read.items() if paused is not None}

    def tripped(self) -> list[str]:
        """Names of triggers that were paused since anybody asked; each is told to one who asks. Raises `InfraError`."""
        told = self._ask(lambda: self._client.lpop(self._key(TRIGGERS_TRIPPED), _MOST_TOLD))
        return [str(one) for one in told or ()]

    def spent(self, oneshots: list[str]) -> Mapping[str, Spent]:
        """Those of these rules that have fired, and with which job. Raises `InfraError`."""
        if not oneshots:
            return {}
        found = self._ask(lambda: self._client.mget([self._key(ONESHOT, one) for one in oneshots]))
        read = {one: _read(Spent, text) for one, text in zip(oneshots, found, strict=True)}
        return {one: spent for one, spent in read.items() if spent is not None}

    def rearm(self, *, oneshot: str = "", breaker: str = "") -> tuple[bool, bool]:
        """Forget that a rule has fired, or that it is paused; whether each stood. Raises `InfraError`.

        The next event of the rule makes a job at once, though one like it made one a moment ago. Jobs of the trigger
        that were handed in before now do not count against it any more.
        """
        since = self._now_ms()
        held = self._held_key(oneshot)
        with self._client.pipeline(transaction=True) as forgotten:
            forgotten.delete(self._key(ONESHOT, oneshot))
            forgotten.delete(self._key(TRIGGER_PAUSED, breaker))
            forgotten.delete(self._key(TRIGGER_RUNS, breaker))
            forgotten.srem(self._key(TRIGGERS_PAUSED), breaker)
            if breaker:
                forgotten.set(self._key(TRIGGER_RESUMED, breaker), since, px=_RESUMED_MS)
            if held is not None:
                forgotten.delete(held)
            spent, paused, *_ = self._ask(forgotten.execute)
        return bool(spent), bool(paused)

    def _held_key(self, oneshot: str) -> str | None:
        """The key by which the job that spent a rule still swallows another one; `None` where it does not."""
        spent = self.spent([oneshot]).get(oneshot) if oneshot else None
        key = self._ask(lambda: self._client.hget(self._key(JOB, spent.job_id), "dedupKey")) if spent else None
        if spent is None or key is None:
            return None
        held = self._key(DEDUP, str(key))
        return held if self._ask(lambda: self._client.get(held)) == spent.job_id else None


def _read(kind: type[Any], text: Any) -> Any:
    try:
        return None if text is None else kind.model_validate(json.loads(text))
    except (ValueError, ValidationError):
        return None

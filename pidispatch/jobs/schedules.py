"""What all schedulers of a deployment share: up to when each schedule is dealt with, and how often it lost a worker."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from pidispatch.jobs.calls import Calls
from pidispatch.jobs.keys import CRON_LAST, SCHED_STALLS
from pidispatch.values.epoch import from_ms, to_ms

#: A schedule that falls due once a year must not be taken for a new one.
_TTL_MS: Final = 400 * 86_400_000
#: Rolling: a schedule that loses a worker a day goes on.
_STALL_TTL_MS: Final = 86_400_000


class Schedules(Calls):
    """The last occurrence of each schedule, and its stalls."""

    def dealt_with(self, ids: Sequence[str]) -> dict[str, datetime | None]:
        """Up to when each of these schedules is dealt with; `None` for one that was never seen. Raises `InfraError`."""
        if not ids:
            return {}
        found = self._ask(lambda: self._client.mget([self._key(CRON_LAST, one) for one in ids]))
        return {one: None if text is None else from_ms(int(text)) for one, text in zip(ids, found, strict=True)}

    def count_stall(self, job_id: str) -> None:
        """Count that a job was lost with its worker, where it is an occurrence of a schedule. Raises `InfraError`."""
        kind, _, rest = job_id.partition(":")
        schedule, colon, _ = rest.rpartition(":")
        if kind != "repeat" or not colon:
            return
        key = self._key(SCHED_STALLS, schedule)
        with self._client.pipeline(transaction=True) as both:
            both.incr(key)
            both.pexpire(key, _STALL_TTL_MS)
            self._ask(both.execute)

    def stalls(self, ids: Sequence[str]) -> dict[str, int]:
        """How many of each schedule's jobs were lost so, lately. Raises `InfraError`."""
        if not ids:
            return {}
        found = self._ask(lambda: self._client.mget([self._key(SCHED_STALLS, one) for one in ids]))
        return {one: int(text or 0) for one, text in zip(ids, found, strict=True)}

    def forget_stalls(self, ids: Sequence[str]) -> None:
        """Begin to count anew. Raises `InfraError`."""
        if ids:
            self._ask(lambda: self._client.delete(*(self._key(SCHED_STALLS, one) for one in ids)))

    def deal_with(self, last: Mapping[str, datetime]) -> None:
        """Move schedules on; none of them is ever moved back. Raises `InfraError`."""
        if last:
            parts = [part for one, at in last.items() for part in (one, to_ms(at))]
            self._script("dealt", _TTL_MS, *parts)

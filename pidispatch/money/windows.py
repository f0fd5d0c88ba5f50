"""The windows in which runs are counted: which counter an instant falls into, and when the next one begins.

All of them are of the calendar in UTC, so that every worker counts into the same one (docs/explanation/money.md).
"""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

#: What the keys of counters begin with, after the prefix of all keys.
DEPLOYMENT: Final = "budget"
_DAY: Final = timedelta(days=1)


class Window(StrEnum):
    """A stretch of the calendar. The order is that in which a refusal names one."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"

    def first(self, now: datetime) -> datetime:
        """Midnight, UTC, on which the window that holds `now` began."""
        midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        if self is Window.DAY:
            return midnight
        if self is Window.WEEK:
            return midnight - timedelta(days=midnight.weekday())
        return midnight.replace(day=1)

    def ends(self, now: datetime) -> datetime:
        """When the next window begins, and its counter with nothing in it."""
        first = self.first(now)
        if self is Window.DAY:
            return first + _DAY
        if self is Window.WEEK:
            return first + 7 * _DAY
        return (first + 31 * _DAY).replace(day=1)

    def key(self, now: datetime, ledger: str = DEPLOYMENT) -> str:
        """Name of the counter, without the prefix of all keys: `budget:2026-01-31`, `budget:w:...`, `budget:m:2026-01`.

        A week has the date of its Monday.
        """
        day = self.first(now).date().isoformat()
        if self is Window.DAY:
            return f"{ledger}:{day}"
        if self is Window.WEEK:
            return f"{ledger}:w:{day}"
        return f"{ledger}:m:{day[:7]}"

    @property
    def ttl_ms(self) -> int:
        """How long a counter stays after its first run: longer than its window, so that a late refund finds it."""
        return _TTL_DAYS[self] * 86_400_000


_TTL_DAYS: Final = {Window.DAY: 2, Window.WEEK: 9, Window.MONTH: 40}


def token_key(now: datetime) -> str:
    """Name of the counter of a day's tokens, without the prefix of all keys."""
    return f"{DEPLOYMENT}:t:{Window.DAY.first(now).date().isoformat()}"

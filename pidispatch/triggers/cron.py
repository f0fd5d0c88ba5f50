"""When a schedule falls due: a cron pattern in a time zone, right on the days on which the clocks are changed.

A pattern with a fixed hour means what a person's clock shows: it falls due once for each date on which it matches,
at the first instant after the gap where the clocks skip it, and the first time where they show it twice. A pattern
whose hour is a wildcard follows the time that passes: it falls due at every instant whose local time matches
(docs/how-to/schedules.md).

cronsim reads the pattern and finds the next match on a clock that is never changed; everything about zones is here. Its
own treatment of them hangs on the minute's spelling and on the number of fields too: https://github.com/cuu508/cronsim
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from cronsim import CronSim, CronSimError

_DAY: Final = timedelta(days=1)
_SECOND: Final = timedelta(seconds=1)
_HOURS: Final = 24
#: From where a pattern is tried for ever falling due; cronsim looks 50 years ahead.
_SOME_DAY: Final = datetime(2000, 1, 1)  # noqa: DTZ001 - on a clock without a zone


@dataclass(frozen=True)
class Schedule:
    """A pattern that falls due again and again. Its instants are whole seconds, aware, in UTC."""

    pattern: str
    zone: tzinfo
    #: Whether it follows the time that passes instead of the clock on the wall.
    every_hour: bool

    @classmethod
    def parse(cls, pattern: str, zone: tzinfo) -> "Schedule":
        """The schedule of 5 fields (minute first) or 6 (second first). Raises `ValueError` with the reason.

        Names of days and months, lists, ranges, steps, `L`, `LW` and `#` are cronsim's. As in Debian's cron, both the
        day of the month and that of the week must match where one of them begins with `*`; else one is enough.
        """
        fields = pattern.split()
        if len(fields) not in (5, 6):
            raise ValueError("must have 5 fields (minute first) or 6 (second first)")
        try:
            read = CronSim(pattern, _SOME_DAY)
        except CronSimError as error:
            raise ValueError(f"is no cron pattern: {str(error).lower()}") from None
        except ValueError:
            # A number of thousands of digits.
            raise ValueError("is no cron pattern: a number is out of bounds") from None
        if next(read, None) is None:
            raise ValueError("never falls due: no date matches it")
        return cls(pattern, zone, fields[-4].startswith("*") or len(read.hours) == _HOURS)

    def next_after(self, instant: datetime) -> datetime:
        """The first instant at which it falls due after the aware `instant`, never at it."""
        return self._by_time(instant) if self.every_hour else self._by_clock(instant)

    def upcoming(self, instant: datetime, count: int) -> list[datetime]:
        """The first `count` instants after `instant`."""
        found: list[datetime] = []
        while len(found) < count:
            instant = self.next_after(instant)
            found.append(instant)
        return found

    def due(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Its instants after `after` and up to `until`, oldest first."""
        while (after := self.next_after(after)) <= until:
            yield after

    def latest_due(self, after: datetime, until: datetime) -> datetime | None:
        """The last of them, however many there are."""
        latest = None
        # It lies after `after`, and never after `until`: each step either finds a later one or halves what is left.
        low, high = after, until
        while low < high:
            half = low + (high - low) / 2 if high - low > _SECOND else low
            found = self.next_after(half)
            if found <= high:
                latest = low = found
            else:
                high = half
        return latest

    def _by_clock(self, instant: datetime) -> datetime:
        shown = _shown(instant, _offset(self.zone, instant))
        # Where a clock shows an hour twice, several matches can lie behind already.
        return next(due for match in CronSim(self.pattern, shown) if (due := self._first_shown(match)) > instant)

    def _first_shown(self, match: datetime) -> datetime:
        """When a clock first shows the local time `match`, or first shows a later one where it skips that."""
        found = match.replace(tzinfo=self.zone, fold=0).astimezone(UTC)
        if _shown(found, _offset(self.zone, found)) == match:
            return found
        # In a gap the two readings lie on both sides of the change.
        before = match.replace(tzinfo=self.zone, fold=1).astimezone(UTC)
        return _change(self.zone, before, found) or found

    def _by_time(self, instant: datetime) -> datetime:
        begin = since = instant.astimezone(UTC)
        # Between two changes of the clocks local time goes on as UTC does, so the next match there is the right one.
        while True:
            offset = _offset(self.zone, since)
            due = (next(CronSim(self.pattern, _shown(begin, offset))) - offset).replace(tzinfo=UTC)
            changed = _change(self.zone, since, due)
            if changed is None:
                return due
            # The instant of the change can be a match itself.
            begin, since = changed - _SECOND, changed


def _offset(zone: tzinfo, instant: datetime) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta()


def _shown(instant: datetime, offset: timedelta) -> datetime:
    """The local time of `instant` on a clock that is `offset` ahead of UTC, without a zone."""
    return instant.astimezone(UTC).replace(tzinfo=None) + offset


def _change(zone: tzinfo, after: datetime, until: datetime) -> datetime | None:
    """The first instant after `after` and up to `until` at which the clocks are changed, in UTC.

    Two changes within a day that take each other back are not seen; no zone has ever had them.
    """
    offset = _offset(zone, after)
    low = after.astimezone(UTC).replace(microsecond=0)
    while low < until:
        high = min(low + _DAY, until)
        if _offset(zone, high) != offset:
            return _halved(zone, offset, low, high)
        low = high
    return None


def _halved(zone: tzinfo, offset: timedelta, low: datetime, high: datetime) -> datetime:
    """The first whole second with another `offset` than at `low`; `high` has another one."""
    while high - low > _SECOND:
        half = low + timedelta(seconds=(high - low) // _SECOND // 2)
        low, high = (low, half) if _offset(zone, half) != offset else (half, high)
    return high

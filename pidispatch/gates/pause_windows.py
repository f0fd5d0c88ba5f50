"""Quiet hours: the file of pause windows, and until when a job has to wait at an instant (docs/how-to/quiet-hours.md).

Everything here is a value: a zone's rules are read once, and the clock is handed in.
"""

import re
import unicodedata
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Self
from zoneinfo import ZoneInfo

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator, model_validator
from pydantic.config import JsonDict

from pidispatch.config.operator_file import at_index, parse_file
from pidispatch.config.zone import zone_of

#: Kinds of job that a scope can name before its colon.
KINDS: Final = ("local", "github", "gitlab", "forgejo", "azure")
#: The scope of every job.
EVERYTHING: Final = "*"
#: The days of a week by their names; Monday is 0, as for `date.weekday`.
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SHORT_DAY: Final = 3
_TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DAY: Final = timedelta(days=1)
_SECOND: Final = timedelta(seconds=1)


def _time(value: object) -> time:
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("is no time of day from 00:00 to 23:59")
    return time(int(found[1]), int(found[2]))


def _zone(value: object) -> ZoneInfo:
    # What is no text has no name that a machine could know.
    return ZoneInfo("UTC") if value is None else zone_of(value if isinstance(value, str) else "")


def _day(value: object) -> int:
    name = value.lower() if isinstance(value, str) else ""
    if len(name) >= _SHORT_DAY:
        for number, day in enumerate(_DAYS):
            if day.startswith(name):
                return number
    raise ValueError("is no day of the week")


def _date(value: object) -> date | None:
    if value is None:
        return None
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise ValueError("is no date that there is, as year-month-day")


_EXAMPLE: Final[JsonDict] = {"scope": "*", "from": "22:00", "to": "06:00", "tz": "Europe/Berlin"}
_TIME_SCHEMA: Final[dict[str, Any]] = {"type": "string", "pattern": f"^(?:{_TIME.pattern})$"}
_DATE_SCHEMA: Final[dict[str, Any]] = {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}
_ZONE_SCHEMA: Final[dict[str, Any]] = {"anyOf": [{"type": "string"}, {"type": "null"}]}
_DAY_SCHEMA: Final[dict[str, Any]] = {
    "type": "string",
    "pattern": "^[A-Za-z]{3,9}$",
    "description": "The English name of a day, or its first letters, at least three; case does not matter.",
    "examples": ["sat"],
}
TimeOfDay = Annotated[time, BeforeValidator(_time), WithJsonSchema(_TIME_SCHEMA)]
Zone = Annotated[ZoneInfo, BeforeValidator(_zone), WithJsonSchema(_ZONE_SCHEMA)]
Day = Annotated[int, BeforeValidator(_day), WithJsonSchema(_DAY_SCHEMA)]
Date = Annotated[date | None, BeforeValidator(_date), WithJsonSchema(_DATE_SCHEMA)]


class PauseWindow(BaseModel):
    """A time in which no job of a scope starts."""

    # Unknown fields are dropped: the file has no version, and an older worker must be able to read a later one's.
    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        arbitrary_types_allowed=True,
        json_schema_extra={"examples": [_EXAMPLE]},
    )

    scope: str = Field(
        min_length=1,
        description="Whose jobs it is for: `*` for all, a repository as its forge writes it, the path of a folder, "
        "or either after its kind and a colon. Compared letter by letter.",
        examples=["/srv/site"],
    )
    from_: TimeOfDay = Field(alias="from", description="When it begins, by the clock of `tz`.", examples=["22:00"])
    to: TimeOfDay = Field(
        description="When it ends; this minute itself is outside. Before `from`: on the next day.", examples=["06:00"]
    )
    tz: Zone = Field(
        default_factory=lambda: ZoneInfo("UTC"),
        description="IANA time zone; UTC where it is left out.",
        examples=["Europe/Berlin"],
        json_schema_extra={"default": "UTC"},
    )
    days: tuple[Day, ...] | None = Field(
        default=None,
        min_length=1,
        description="Days of the week on which it begins; every day where they are left out.",
        examples=[["sat", "sun"]],
    )
    date_from: Date = Field(
        default=None, alias="dateFrom", description="The first day on which it begins.", examples=["2026-12-24"]
    )
    date_to: Date = Field(
        default=None, alias="dateTo", description="The last day on which it begins.", examples=["2026-12-31"]
    )

    @field_validator("scope", mode="after")
    @classmethod
    def _known_kind(cls, scope: str) -> str:
        kind, colon, rest = scope.partition(":")
        if colon and "/" not in kind:
            if kind not in KINDS:
                raise ValueError(f"begins with no known kind of job; known are {', '.join(f'{one}:' for one in KINDS)}")
            if not rest:
                raise ValueError("names nothing after its colon")
        return scope

    @model_validator(mode="after")
    def _some_time(self) -> Self:
        if self.from_ == self.to:
            raise ValueError('fields "from" and "to" are the same time')
        if self.date_from is not None and self.date_to is not None and self.date_from > self.date_to:
            raise ValueError('field "dateTo" lies before "dateFrom"')
        return self

    def covers(self, kind: str, scope: str) -> bool:
        """Whether it is for the jobs of this kind in this folder or repository."""
        if self.scope in (EVERYTHING, scope):
            return True
        return unicodedata.normalize("NFC", self.scope) == unicodedata.normalize("NFC", f"{kind}:{scope}")

    def end_at(self, now: datetime) -> datetime | None:
        """When what is active at `now` (aware) ends, in UTC; `None` where it is not active."""
        there = now.astimezone(self.tz)
        today, clock = there.date(), there.time()
        if self.from_ < self.to:
            begins, ends, active = today, today, self.from_ <= clock < self.to
        elif clock >= self.from_:
            begins, ends, active = today, today + _DAY, True
        else:
            begins, ends, active = today - _DAY, today, clock < self.to
        if not active or not self._begins_on(begins):
            return None
        return _first_after(now, datetime.combine(ends, self.to), self.tz)

    def _begins_on(self, day: date) -> bool:
        if self.days is not None and day.weekday() not in self.days:
            return False
        return (self.date_from is None or self.date_from <= day) and (self.date_to is None or day <= self.date_to)


class PauseWindowsFile(BaseModel):
    """The file: all of them."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        title="pause-windows.json",
        json_schema_extra={"examples": [{"windows": [_EXAMPLE]}]},
    )

    windows: tuple[PauseWindow, ...] = Field(
        description="The windows; none pauses nothing. Where several are active, the latest end counts.",
        examples=[[_EXAMPLE]],
    )


def parse_pause_windows(text: str, path: Path) -> tuple[PauseWindow, ...]:
    """The windows of the file's text. Raises `ConfigError`, which names index and field of each that cannot stand."""
    return parse_file(PauseWindowsFile, text, path, named=at_index("window")).windows


def paused_until(windows: Iterable[PauseWindow], kind: str, scope: str, now: datetime) -> datetime | None:
    """The latest end, in UTC, of the windows that are active at `now` for such a job; `None` where it may start.

    A job without a folder or a repository is never paused.
    """
    if not scope:
        return None
    ends = [end for one in windows if one.covers(kind, scope) and (end := one.end_at(now)) is not None]
    return max(ends, default=None)


def _first_after(now: datetime, wall: datetime, zone: ZoneInfo) -> datetime:
    """The first instant after `now` at which the clocks of the zone show `wall` or later. In UTC."""
    instants = [wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)]
    if instants[0].astimezone(zone).replace(tzinfo=None) == wall:
        # Where the clocks are set back they show it twice.
        return instants[0] if instants[0] > now else instants[1]
    # They never show it: they are set forward past it. `fold` then stands for the offset before and after that.
    late, early = instants
    while late - early > _SECOND:
        middle = early + (late - early) // 2
        if middle.astimezone(zone).replace(tzinfo=None) < wall:
            early = middle
        else:
            late = middle
    return late.replace(microsecond=0)

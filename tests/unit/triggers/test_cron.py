"""A schedule falls due when a person with a clock would say so, also on the days on which the clocks change."""

import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

from pidispatch.triggers.cron import Schedule

BERLIN, NEW_YORK = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")
#: With a change by half an hour, a gap at midnight, no change at all, and a day that was left out.
ODD = [ZoneInfo(name) for name in ("Australia/Lord_Howe", "Africa/Cairo", "Asia/Kolkata", "Pacific/Apia")]
ZONES = [BERLIN, NEW_YORK, *ODD, UTC]
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

#: Zone, day of a change, pattern: the instants of that local day (its first and last where there are many), in UTC.
NIGHTS = {
    (BERLIN, date(2026, 3, 29)): {
        "30 2 * * *": ["01:00"],
        "0 * * * *": [*(f"{hour:02}:00" for hour in (23, *range(22)))],
        "*/15 * * * *": [*(f"{hour:02}:{minute:02}" for hour in (23, *range(22)) for minute in (0, 15, 30, 45))],
        "4 16 * * *": ["14:04"],
    },
    (BERLIN, date(2026, 10, 25)): {
        "30 2 * * *": ["00:30"],
        "0 * * * *": [*(f"{hour:02}:00" for hour in (22, 23, *range(23)))],
        "*/15 * * * *": [*(f"{hour:02}:{minute:02}" for hour in (22, 23, *range(23)) for minute in (0, 15, 30, 45))],
        "4 16 * * *": ["15:04"],
    },
    (NEW_YORK, date(2026, 3, 8)): {
        "30 2 * * *": ["07:00"],
        "0 * * * *": [*(f"{hour:02}:00" for hour in (*range(5, 24), *range(4)))],
        "*/15 * * * *": [
            *(f"{hour:02}:{minute:02}" for hour in (*range(5, 24), *range(4)) for minute in (0, 15, 30, 45))
        ],
        "4 16 * * *": ["20:04"],
    },
    (NEW_YORK, date(2026, 11, 1)): {
        "30 2 * * *": ["07:30"],
        "30 1 * * *": ["05:30"],
        "0 * * * *": [*(f"{hour:02}:00" for hour in (*range(4, 24), *range(5)))],
        "*/15 * * * *": [
            *(f"{hour:02}:{minute:02}" for hour in (*range(4, 24), *range(5)) for minute in (0, 15, 30, 45))
        ],
        "4 16 * * *": ["21:04"],
    },
}


def midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)


@pytest.mark.example(
    "ch8 F8", "On the nights of 2026 on which the clocks change, a fixed hour comes once and every real hour counts."
)
@pytest.mark.parametrize(
    ("zone", "day", "pattern"),
    [(zone, day, pattern) for (zone, day), patterns in NIGHTS.items() for pattern in patterns],
)
def test_a_day_on_which_the_clocks_change(zone: ZoneInfo, day: date, pattern: str) -> None:
    begin, end = midnight(day, zone), midnight(day + DAY, zone)
    found = list(Schedule.parse(pattern, zone).due(begin - timedelta(seconds=1), end - timedelta(seconds=1)))
    assert [f"{instant:%H:%M}" for instant in found] == NIGHTS[zone, day][pattern]
    assert {instant.astimezone(zone).date() for instant in found} == {day}


@pytest.mark.parametrize(
    ("pattern", "spring", "autumn"),
    [
        # All four quarters of the missing hour are one instant; those of the doubled one come once each.
        ("*/15 2 * * *", ["03:00"], ["02:00", "02:15", "02:30", "02:45"]),
        # Two fixed hours of which one is missing, and whose instant is the other's.
        ("0 2,3 * * *", ["03:00"], ["02:00", "03:00"]),
        ("0 30 2 * * *", ["03:00"], ["02:30"]),
        ("15 30 2 * * *", ["03:00"], ["02:30"]),
        ("10 0-23 * * *", ["00:10", "01:10", "03:10"], ["00:10", "01:10", "02:10", "02:10", "03:10"]),
        ("0 */2 * * *", ["00:00"], ["00:00", "02:00", "02:00"]),
        ("0 0 * * * *", ["00:00", "01:00", "03:00"], ["00:00", "01:00", "02:00", "02:00", "03:00"]),
    ],
)
def test_the_hour_alone_says_which_clock_counts(pattern: str, spring: list[str], autumn: list[str]) -> None:
    schedule = Schedule.parse(pattern, BERLIN)
    for day, expected in ((date(2026, 3, 29), spring), (date(2026, 10, 25), autumn)):
        begin = midnight(day, BERLIN) - timedelta(seconds=1)
        until = datetime(day.year, day.month, day.day, 3, 59, tzinfo=BERLIN)
        assert [f"{instant.astimezone(BERLIN):%H:%M}" for instant in schedule.due(begin, until)] == expected


def test_seconds_and_microseconds_are_left_behind() -> None:
    schedule = Schedule.parse("*/20 * * * * *", UTC)
    assert schedule.upcoming(datetime(2026, 5, 5, 3, 0, 0, 1, tzinfo=UTC), 2) == [
        datetime(2026, 5, 5, 3, 0, 20, tzinfo=UTC),
        datetime(2026, 5, 5, 3, 0, 40, tzinfo=UTC),
    ]
    on_it = datetime(2026, 5, 5, 3, 0, 20, tzinfo=UTC)
    assert schedule.next_after(on_it - timedelta(microseconds=1)) == on_it
    assert schedule.next_after(on_it) == on_it + timedelta(seconds=20)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("* * * *", "must have 5 fields"),
        ("* * * * * * *", "must have 5 fields"),
        ("", "must have 5 fields"),
        ("@daily", "must have 5 fields"),
        ("60 * * * *", "bad minute"),
        ("* 24 * * *", "bad hour"),
        ("60 * * * * *", "bad second"),
        ("* * 0 * *", "bad day-of-month"),
        ("* * * 13 *", "bad month"),
        ("* * * * FUN", "bad day-of-week"),
        ("*/0 * * * *", "bad minute"),
        ("9-5 * * * *", "bad minute"),
        ("1,, * * * *", "bad minute"),
        ("² * * * *", "bad minute"),
        ("0 0 30 2 *", "bad day-of-month"),
        (f"{'9' * 5000} * * * *", "a number is out of bounds"),
        ("0 0 31 4,6 *", "bad day-of-month"),
    ],
)
def test_what_is_no_pattern_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Schedule.parse(pattern, UTC)


def test_a_pattern_that_no_date_matches_is_refused() -> None:
    # Both days count, as one begins with a star; and no month has its fifth Monday on the first.
    with pytest.raises(ValueError, match="never falls due"):
        Schedule.parse("0 0 */32 * 1#5,2#5", BERLIN)


def _numbers(low: int, high: int) -> st.SearchStrategy[str]:
    return st.lists(st.integers(low, high), min_size=1, max_size=3).map(lambda some: ",".join(map(str, some)))


#: Patterns whose meaning the tests can tell by themselves: minute and hour, each a wildcard, a step or a list.
_MINUTES = st.one_of(st.just("*"), st.just("*/7"), _numbers(0, 59))
_HOURS = st.one_of(st.just("*"), st.just("*/5"), _numbers(0, 23))
_ZONES = st.sampled_from(ZONES)
#: Around the changes of a year, where there is something to get wrong.
_CHANGES = [
    datetime(2026, 3, 29, 1, tzinfo=UTC),
    datetime(2026, 10, 25, 1, tzinfo=UTC),
    datetime(2026, 3, 8, 7, tzinfo=UTC),
    datetime(2026, 11, 1, 6, tzinfo=UTC),
    datetime(2026, 4, 4, 15, tzinfo=UTC),
    datetime(2026, 10, 3, 15, 30, tzinfo=UTC),
    datetime(2026, 4, 23, 22, tzinfo=UTC),
    datetime(2026, 10, 29, 21, tzinfo=UTC),
    datetime(2011, 12, 30, 10, tzinfo=UTC),
]
_NEAR = st.builds(
    lambda change, seconds: change + timedelta(seconds=seconds),
    st.sampled_from(_CHANGES),
    st.integers(-36 * 3600, 36 * 3600),
)


def _values(field: str, size: int) -> set[int]:
    if field.startswith("*"):
        return set(range(0, size, int(field[2:] or 1)))
    return {int(part) for part in field.split(",")}


def _slow(minutes: str, hours: str, zone: ZoneInfo, after: datetime, until: datetime) -> list[datetime]:
    """What falls due after `after` and up to `until`, by looking at every minute and at every local time."""
    first = after.replace(second=0, microsecond=0)
    instants = [first + MINUTE * step for step in range(int((until - first) / MINUTE) + 1)]
    wanted = {(hour, minute) for hour in _values(hours, 24) for minute in _values(minutes, 60)}
    found: set[datetime] = set()
    shown: set[datetime] = set()
    # A clock that goes forward passes local times at once; one that goes back shows some twice.
    wall = (first - 2 * DAY).astimezone(zone).replace(tzinfo=None)
    every_hour = hours.startswith("*")
    for instant in [first - 2 * DAY + MINUTE * step for step in range(2 * 24 * 60)] + instants:
        local = instant.astimezone(zone).replace(tzinfo=None)
        if every_hour:
            due = (local.hour, local.minute) in wanted
        else:
            passed = [wall + MINUTE * step for step in range(1, int((local - wall) / MINUTE) + 1)] or [local]
            due = any((one.hour, one.minute) in wanted and one not in shown for one in passed)
            shown.update(passed)
        wall = max(wall, local)
        if due and after < instant <= until:
            found.add(instant)
    return sorted(found)


@given(_MINUTES, _HOURS, _ZONES, _NEAR)
@example("45", "*", ODD[0], datetime(2026, 10, 3, 14, 50, tzinfo=UTC))
@example("0", "*/5", ODD[0], datetime(2026, 4, 4, 12, tzinfo=UTC))
@settings(max_examples=60)
def test_it_falls_due_as_a_look_at_every_minute_says(minutes: str, hours: str, zone: ZoneInfo, after: datetime) -> None:
    schedule = Schedule.parse(f"{minutes} {hours} * * *", zone)
    until = after + timedelta(hours=30)
    assert list(schedule.due(after, until)) == _slow(minutes, hours, zone, after, until)


_PATTERNS = st.builds(
    lambda *fields: " ".join(field for field in fields if field),
    st.sampled_from(["", "*/17", "0,30", "59"]),
    _MINUTES,
    _HOURS,
    st.sampled_from(["*", "1,15", "L", "LW", "*/3"]),
    st.sampled_from(["*", "2", "MAR-OCT"]),
    st.sampled_from(["*", "MON", "0,6", "5#2", "1L"]),
)


@given(_PATTERNS, _ZONES, _NEAR)
@settings(max_examples=60)
def test_it_goes_on_strictly_and_in_whole_seconds(pattern: str, zone: ZoneInfo, after: datetime) -> None:
    found = Schedule.parse(pattern, zone).upcoming(after, 6)
    assert all(one < two for one, two in zip([after, *found], found, strict=False))
    assert all(one.microsecond == 0 and one.tzinfo is UTC for one in found)


@given(_PATTERNS, _ZONES, _NEAR, st.integers(0, 10**6))
@settings(max_examples=60)
def test_nothing_lies_between_an_instant_and_the_next(pattern: str, zone: ZoneInfo, after: datetime, part: int) -> None:
    schedule = Schedule.parse(pattern, zone)
    due = schedule.next_after(after)
    between = after + (due - after) * part / 10**6
    assert schedule.next_after(min(between, due - timedelta(microseconds=1))) == due


@given(st.integers(0, 59), st.integers(0, 23), _ZONES, st.booleans())
@settings(max_examples=25)
def test_a_fixed_hour_comes_once_on_every_date_of_a_year(minute: int, hour: int, zone: ZoneInfo, seconds: bool) -> None:
    begin = datetime(2025, 12, 31, 23, 59, 59, tzinfo=zone)
    until = datetime(2026, 12, 31, 23, 59, 59, tzinfo=zone)
    pattern = f"{'0 ' if seconds else ''}{minute} {hour} * * *"
    dates = [instant.astimezone(zone).date() for instant in Schedule.parse(pattern, zone).due(begin, until)]
    assert dates == [date(2026, 1, 1) + DAY * day for day in range(365)]


@given(st.sampled_from([1, 5, 15, 30, 60]), _ZONES, _NEAR, st.integers(1, 300))
@settings(max_examples=60)
def test_a_wildcard_hour_comes_as_often_as_time_passes(every: int, zone: ZoneInfo, after: datetime, hours: int) -> None:
    minutes = "0" if every == 60 else f"*/{every}"
    step = every * MINUTE
    # From an instant on which it falls due, where offsets are whole steps.
    begin = Schedule.parse(f"{minutes} * * * *", zone).next_after(after)
    until = begin + hours * HOUR
    offsets = {(begin + HOUR * hour).astimezone(zone).utcoffset() or timedelta() for hour in range(hours + 1)}
    if any((one - two) % step for one in offsets for two in offsets):
        reject()
    assert len(list(Schedule.parse(f"{minutes} * * * *", zone).due(begin, until))) == hours * HOUR // step


@given(_PATTERNS, _ZONES, _NEAR, st.timedeltas(min_value=-HOUR, max_value=timedelta(hours=60)))
@settings(max_examples=60)
def test_the_latest_is_the_last_of_all(pattern: str, zone: ZoneInfo, after: datetime, span: timedelta) -> None:
    schedule = Schedule.parse(pattern, zone)
    # Seconds of a wildcard minute are too many to count one by one.
    until = after + min(span, HOUR) if len(pattern.split()) == 6 else after + span
    found = list(schedule.due(after, until))
    assert schedule.latest_due(after, until) == (found[-1] if found else None)
    # Up to an instant on which it falls due, that is the latest; and after it there is none.
    due = schedule.next_after(until)
    assert schedule.latest_due(after, due) == (due if due > after else None)
    assert schedule.latest_due(due, due) is None


def test_the_latest_of_years_of_seconds_is_found_at_once() -> None:
    until = datetime(2026, 5, 5, 3, 0, 0, 1, tzinfo=UTC)
    schedule = Schedule.parse("* * * * * *", BERLIN)
    assert schedule.latest_due(until - 3650 * DAY, until) == until.replace(microsecond=0)


def test_instants_of_any_zone_are_the_same_instants() -> None:
    schedule = Schedule.parse("30 2 * * *", BERLIN)
    after = datetime(2026, 3, 28, 12, tzinfo=UTC)
    assert schedule.next_after(after.astimezone(NEW_YORK)) == schedule.next_after(after)
    assert re.fullmatch(r"2026-03-29T01:00:00\+00:00", schedule.next_after(after).isoformat())

"""Quiet hours: what may stand in their file, and until when a job has to wait."""

import json
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pidispatch.gates.pause_windows import KINDS, PauseWindow, parse_pause_windows, paused_until
from pidispatch.values.errors import ConfigError
from tests.unit.gates.job import job

PATH = Path("/etc/pi-dispatch/pause-windows.json")
#: Its clocks jump at other hours, by other spans, or never, and one of them has skipped a whole day.
ZONES = (
    *("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Santiago"),
    "Pacific/Apia",
)
NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
NIGHT = {"scope": "*", "from": "22:00", "to": "08:00"}


def windows(*rows: dict[str, Any]) -> tuple[PauseWindow, ...]:
    return parse_pause_windows(json.dumps({"windows": rows}), PATH)


def window(**changes: Any) -> PauseWindow:
    return windows({**NIGHT, **changes})[0]


def at(text: str, zone: str = "UTC", fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC)


# -- the file


def refusal(**changes: Any) -> str:
    good = {"scope": "acme/web", "from": "1:00", "to": "02:00"}
    with pytest.raises(ConfigError) as caught:
        windows(good, {**NIGHT, **changes})
    assert caught.value.cause == "operator-file"
    head = f"{PATH}: window at index 1"
    assert caught.value.message.startswith(head)
    return caught.value.message.removeprefix(head)


def test_all_fields_and_those_that_are_left_out() -> None:
    full = window(
        scope="github:acme/web",
        tz="Europe/Berlin",
        days=["Mon", "tuesday", "SAT", "thurs"],
        dateFrom="2026-01-01",
        dateTo="2026-01-01",
    )
    assert (full.from_, full.to, full.tz.key, full.days) == (time(22), time(8), "Europe/Berlin", (0, 1, 5, 3))
    assert (full.date_from, full.date_to) == (date(2026, 1, 1), date(2026, 1, 1))
    short = window(to="8:05", tz=None, days=None, dateFrom=None, dateTo=None)
    assert (short.to, short.tz.key, short.days, short.date_from, short.date_to) == (time(8, 5), "UTC", None, None, None)
    assert windows() == ()


def test_unknown_fields_are_dropped() -> None:
    text = json.dumps({"windows": [{**NIGHT, "note": "x"}], "version": 9})
    assert parse_pause_windows(text, PATH) == windows(NIGHT)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"from": "8:00"}, ': fields "from" and "to" are the same time. '),
        (
            {"from": "24:00"},
            ', field "from": is no time of day from 00:00 to 23:59. Write for example: "from": "22:00"',
        ),
        *[
            ({"to": value}, ', field "to": is no time')
            for value in ("8", "08:60", "8:0", " 8:00", "８:00", "", 800, None)
        ],
        ({"scope": ""}, ', field "scope": must not be empty. '),
        ({"scope": 1}, ', field "scope": must be text. '),
        *[
            ({"scope": scope}, ', field "scope": begins with no known kind of job; known are local:, github:, gitlab:')
            for scope in ("gitea:acme/web", "GitHub:acme/web", "github :acme/web", ":acme/web", "model:a/b", "C:\\x")
        ],
        ({"scope": "github:"}, ', field "scope": names nothing after its colon. '),
        *[
            ({"tz": zone}, ', field "tz": is no IANA time zone that this machine knows. ')
            for zone in ("Europe/Berln", "Europe", "", "+02:00", "../UTC", "/etc/localtime", "a\0b", "x" * 9999, 1)
        ],
        *[
            ({"days": [day]}, ', field "days[0]": is no day of the week. ')
            for day in ("mo", "monkey", "", 1, "mondays")
        ],
        ({"days": []}, ', field "days": must not be empty. '),
        ({"days": "mon"}, ', field "days": must be a list. '),
        *[
            ({"dateTo": day}, ', field "dateTo": is no date that there is')
            for day in ("2026-02-31", "2026-13-01", "0000-01-01", "2026-1-1", "20260101", "2026-01-01T00:00", 20260101)
        ],
        ({"dateFrom": "2026-01-02", "dateTo": "2026-01-01"}, ': field "dateTo" lies before "dateFrom". '),
    ],
)
def test_what_cannot_stand_refuses_the_file_and_names_index_and_field(changes: dict[str, Any], message: str) -> None:
    assert refusal(**changes).startswith(message)


# -- whose jobs


@pytest.mark.parametrize(
    ("scope", "kind", "own", "covered"),
    [
        ("*", "local", "/srv/site", True),
        ("*", "github", "acme/web", True),
        ("/srv/site", "local", "/srv/site", True),
        ("/srv/site/", "local", "/srv/site", False),
        ("/srv//site", "local", "/srv/site", False),
        ("/srv/Site", "local", "/srv/site", False),
        ("/srv/a:b", "local", "/srv/a:b", True),
        ("/srv/cafe\u0301", "local", "/srv/caf\u00e9", False),
        ("local:/srv/cafe\u0301", "local", "/srv/caf\u00e9", True),
        ("acme/web", "gitlab", "acme/web", True),
        ("github:acme/web", "github", "acme/web", True),
        ("github:acme/web", "gitlab", "acme/web", False),
        ("github:Acme/web", "github", "acme/web", False),
        *[(f"{kind}:a/b", kind, "a/b", True) for kind in KINDS],
        ("*", "github", "", False),
    ],
)
def test_whose_jobs_it_is_for(scope: str, kind: str, own: str, covered: bool) -> None:
    until = paused_until(windows({**NIGHT, "scope": scope}), kind, own, at("2026-01-01T23:00"))
    assert until == (at("2026-01-02T08:00") if covered else None)


def test_the_scope_of_a_local_job_is_its_folder() -> None:
    assert job(1, "/srv/site").scope == "/srv/site"


# -- when


@pytest.mark.parametrize(
    ("changes", "now", "end"),
    [
        # Half open, on one day.
        ({"from": "12:00", "to": "13:00"}, "2026-01-01T11:59:59", None),
        ({"from": "12:00", "to": "13:00"}, "2026-01-01T12:00", "2026-01-01T13:00"),
        ({"from": "12:00", "to": "13:00"}, "2026-01-01T12:59:59.999", "2026-01-01T13:00"),
        ({"from": "12:00", "to": "13:00"}, "2026-01-01T13:00", None),
        # Into the next day.
        ({}, "2026-01-01T22:00", "2026-01-02T08:00"),
        ({}, "2026-01-01T00:00", "2026-01-01T08:00"),
        ({}, "2026-01-01T08:00", None),
        # The 5th is a Monday.
        ({"days": ["mon"]}, "2026-01-06T07:00", "2026-01-06T08:00"),
        ({"days": ["mon"]}, "2026-01-05T07:00", None),
        ({"days": ["mon"]}, "2026-01-06T22:00", None),
        ({"days": ["mon"], "to": "23:00"}, "2026-01-05T22:30", "2026-01-05T23:00"),
        ({"days": ["mon"], "to": "23:00"}, "2026-01-06T22:30", None),
        # Dates are those of the beginning, and both belong to it.
        ({"dateFrom": "2026-01-02"}, "2026-01-02T07:00", None),
        ({"dateFrom": "2026-01-02"}, "2026-01-02T22:00", "2026-01-03T08:00"),
        ({"dateTo": "2026-01-02"}, "2026-01-03T07:00", "2026-01-03T08:00"),
        ({"dateTo": "2026-01-02"}, "2026-01-03T22:00", None),
        # To midnight.
        ({"from": "22:00", "to": "00:00"}, "2026-01-01T23:59", "2026-01-02T00:00"),
        ({"from": "22:00", "to": "0:00"}, "2026-01-02T00:00", None),
    ],
)
def test_when_it_is_active_and_ends(changes: dict[str, Any], now: str, end: str | None) -> None:
    assert window(**changes).end_at(at(now)) == (None if end is None else at(end))


@pytest.mark.parametrize(
    ("to", "now", "fold", "end"),
    [
        # 2026-03-29 in Berlin: 02:00 is 03:00, at 01:00Z.
        ("08:00", "2026-03-28T23:00", 0, "2026-03-29T06:00"),
        ("02:30", "2026-03-29T01:30", 0, "2026-03-29T01:00"),
        ("03:00", "2026-03-29T01:30", 0, "2026-03-29T01:00"),
        # 2026-10-25: 03:00 is 02:00 again, at 01:00Z.
        ("08:00", "2026-10-24T23:00", 0, "2026-10-25T07:00"),
        ("02:30", "2026-10-25T02:10", 0, "2026-10-25T00:30"),
        ("02:30", "2026-10-25T02:10", 1, "2026-10-25T01:30"),
    ],
)
def test_it_ends_by_the_clocks_of_its_zone(to: str, now: str, fold: int, end: str) -> None:
    assert window(to=to, tz="Europe/Berlin").end_at(at(now, "Europe/Berlin", fold)) == at(end)


def test_of_several_the_latest_end_counts_and_of_others_none() -> None:
    rows = [{**NIGHT, "to": to} for to in ("08:00", "09:00", "07:00")]
    others = [{**NIGHT, "scope": "/srv/other", "to": "21:00"}, {**NIGHT, "from": "10:00", "to": "21:00"}]
    assert paused_until(windows(*rows, *others), "local", "/srv/site", at("2026-01-01T23:00")) == at("2026-01-02T09:00")
    assert paused_until((), "local", "/srv/site", at("2026-01-01T23:00")) is None


# -- against a slow model: the clocks on the wall, and what each day would begin


def _days(one: PauseWindow, day: date) -> bool:
    named = one.days is None or f"{day:%a}".lower() in [NAMES[number] for number in one.days]
    return named and (one.date_from or date.min) <= day <= (one.date_to or date.max)


def _occurrence(one: PauseWindow, now: datetime) -> datetime | None:
    """The end on the wall of what `now` falls into."""
    wall = now.astimezone(one.tz).replace(tzinfo=None)
    for back in (0, 1, 2):
        day = wall.date() - timedelta(days=back)
        begin, end = datetime.combine(day, one.from_), datetime.combine(day, one.to)
        end += timedelta(days=1 if end < begin else 0)
        if _days(one, day) and begin <= wall < end:
            return end
    return None


def _end(one: PauseWindow, now: datetime) -> datetime | None:
    """The first minute after `now` at which the wall shows the end or later."""
    shown = _occurrence(one, now)
    if shown is None:
        return None
    later = now.replace(second=0, microsecond=0)
    while True:
        later += timedelta(minutes=1)
        if later.astimezone(one.tz).replace(tzinfo=None) >= shown:
            return later


_CLOCK = st.times(min_value=time(0), max_value=time(23, 59)).map(lambda one: f"{one:%H:%M}")
_AROUND = ("2011-12-29", "2026-03-07", "2026-03-28", "2026-04-04", "2026-09-05", "2026-10-24", "2026-11-01")


@st.composite
def _cases(draw: st.DrawFn) -> tuple[PauseWindow, datetime]:
    start = date.fromisoformat(draw(st.sampled_from(_AROUND)))
    begin = draw(_CLOCK)
    near = st.dates(start - timedelta(days=2), start + timedelta(days=3))
    limits = sorted(draw(st.lists(near, min_size=2, max_size=2)))
    changes: dict[str, Any] = {
        "from": begin,
        "to": draw(_CLOCK.filter(lambda one: one != begin)),
        "tz": draw(st.sampled_from(ZONES)),
        "days": draw(st.none() | st.lists(st.sampled_from(NAMES), min_size=1)),
        "dateFrom": draw(st.none() | st.just(str(limits[0]))),
        "dateTo": draw(st.none() | st.just(str(limits[1]))),
    }
    now = datetime.combine(start, time(0), UTC) + timedelta(seconds=draw(st.integers(0, 3 * 86_400)))
    return window(**changes), now


@given(_cases())
@example((window(tz="Pacific/Apia", **{"from": "23:00", "to": "12:00"}), at("2011-12-30T09:30")))
@example((window(tz="Europe/Berlin", to="02:30"), at("2026-03-29T00:59")))
@example((window(tz="Australia/Lord_Howe", to="01:45"), at("2026-04-04T14:50")))
def test_it_is_active_and_ends_as_the_clocks_on_the_wall_say(case: tuple[PauseWindow, datetime]) -> None:
    one, now = case
    assert one.end_at(now) == _end(one, now)

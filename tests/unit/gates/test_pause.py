"""The gate of quiet hours: a job sleeps to their end, and nothing is held for it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from pidispatch.gates.pause import PauseWindows
from pidispatch.gates.pause_windows import PauseWindow, parse_pause_windows
from pidispatch.values.limits import Limits
from pidispatch.values.verdict import Admit, Defer, Why
from tests.unit.gates.job import job

#: A Monday, 22:00 to 08:00 in Amsterdam, which is two hours ahead of UTC in May.
MONDAY = {"scope": "*", "from": "22:00", "to": "08:00", "tz": "Europe/Amsterdam", "days": ["mon"]}
TUESDAY_8 = datetime(2026, 5, 5, 6, tzinfo=UTC)


def gate(*rows: dict[str, Any]) -> PauseWindows:
    windows = parse_pause_windows(json.dumps({"windows": rows}), Path("windows.json"))
    return PauseWindows(lambda: windows, Limits())


@pytest.mark.example(
    "ch2 EX-14", "a job that falls into quiet hours sleeps to their end, and runs from a second before it"
)
def test_a_job_in_a_monday_night_is_put_off_to_tuesday_morning() -> None:
    with capture_logs() as events:
        verdict = gate(MONDAY).check(job(1), TUESDAY_8 - timedelta(hours=1))
    assert verdict == Defer(why=Why.QUIET_HOURS, delay_ms=3_600_000)
    told = {"event": "pause_deferred", "jobId": "local-1", "until": "2026-05-05T06:00:00Z", "log_level": "info"}
    assert events == [told]
    with capture_logs() as events:
        assert gate(MONDAY).check(job(1), TUESDAY_8 - timedelta(milliseconds=500)) == Admit()
    assert events == []


@pytest.mark.example("ch2 EX-15", "of two windows the later end counts, so that the job sleeps once")
def test_one_deferral_clears_all_windows() -> None:
    both = gate(MONDAY, {**MONDAY, "to": "09:00"})
    now = TUESDAY_8 - timedelta(hours=1)
    verdict = both.check(job(1), now)
    assert verdict == Defer(why=Why.QUIET_HOURS, delay_ms=2 * 3_600_000)
    assert both.check(job(1), now + timedelta(hours=2)) == Admit()


@pytest.mark.parametrize(("before", "delay_ms"), [(1_001, 1_001), (1_000, None), (999, None), (0, None), (-1, None)])
def test_the_last_second_is_no_time_to_sleep(before: int, delay_ms: int | None) -> None:
    verdict = gate(MONDAY).check(job(1), TUESDAY_8 - timedelta(milliseconds=before))
    assert verdict == (Admit() if delay_ms is None else Defer(why=Why.QUIET_HOURS, delay_ms=delay_ms))


def test_between_two_windows_that_adjoin_there_is_no_second_to_start_in() -> None:
    whole = gate({"scope": "*", "from": "00:00", "to": "12:00"}, {"scope": "*", "from": "12:00", "to": "00:00"})
    noon = datetime(2026, 5, 5, 12, tzinfo=UTC)
    assert whole.check(job(1), noon - timedelta(milliseconds=500)) == Defer(why=Why.QUIET_HOURS, delay_ms=500)
    assert whole.check(job(1), noon) == Defer(why=Why.QUIET_HOURS, delay_ms=12 * 3_600_000)


def test_the_delay_is_rounded_up() -> None:
    verdict = gate(MONDAY).check(job(1), TUESDAY_8 - timedelta(seconds=2, microseconds=1))
    assert verdict == Defer(why=Why.QUIET_HOURS, delay_ms=2_001)


def test_the_windows_are_asked_for_each_job() -> None:
    windows: list[PauseWindow] = []
    now = TUESDAY_8 - timedelta(hours=1)
    one = PauseWindows(lambda: windows, Limits())
    assert one.check(job(1), now) == Admit()
    windows.extend(parse_pause_windows(json.dumps({"windows": [{**MONDAY, "scope": "/srv/site"}]}), Path("x")))
    assert one.check(job(1, "/srv/other"), now) == Admit()
    assert isinstance(one.check(job(2), now), Defer)


def test_nothing_is_held_and_nothing_to_give_back() -> None:
    one = gate()
    assert [one.check(job(1), TUESDAY_8) for _ in range(2)] == [Admit(), Admit()]
    for _ in range(2):
        one.release(job(1))

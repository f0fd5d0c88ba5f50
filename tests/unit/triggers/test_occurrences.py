"""What one look of a scheduler starts: what is due now, and nothing that was due for somebody else."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from pidispatch.triggers.cron import Schedule
from pidispatch.triggers.entry import CronTrigger, Missed
from pidispatch.triggers.occurrences import Occurrence, Passed, Planned, edited, job_of, look, next_due, planned
from pidispatch.values.forge import JobKind
from pidispatch.values.job import LocalJob, Matched
from pidispatch.values.limits import Limits
from tests.unit.triggers.entries import entry, parsed

LIMITS = Limits()
BERLIN = ZoneInfo("Europe/Berlin")
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def at(hour: int, minute: int = 0, second: int = 0, *, day: int = 5) -> datetime:
    return datetime(2026, 5, day, hour, minute, second, tzinfo=UTC)


def plan(name: str, pattern: str, missed: Missed = Missed.SKIP) -> Planned:
    return Planned(name, Schedule.parse(pattern, UTC), missed)


@pytest.mark.example(
    "ch8 F9", "Begun at 10:57: what was due at 02:00 is skipped (or run once), 19:30 keeps its time, the new one waits."
)
@pytest.mark.parametrize("missed", Missed)
def test_a_start_after_downtime(missed: Missed) -> None:
    schedules = [
        plan("early", "0 2 * * *", missed),
        plan("late", "30 19 * * *", missed),
        plan("new", "0 1 * * *", missed),
    ]
    last = {"early": at(2, day=4), "late": at(19, 30, day=4), "new": None}
    begun = look(schedules, last, at(10, 57), LIMITS)

    once = missed is Missed.ONCE
    assert begun.fire == ((Occurrence("early", at(2)),) if once else ())
    assert begun.passed == (Passed("early", at(2), at(2), caught_up=once),)
    assert begun.last == {"early": at(2), "late": at(19, 30, day=4), "new": at(10, 57)}
    assert begun.ahead == ()
    # The next look has nothing left of it.
    assert look(schedules, begun.last, at(10, 58), LIMITS).fire == ()
    assert look(schedules, begun.last, at(19, 30), LIMITS).fire == (Occurrence("late", at(19, 30)),)
    assert next_due(schedules, at(10, 57)) == Occurrence("late", at(19, 30))


def test_of_many_that_were_missed_the_latest_is_run_once() -> None:
    often = plan("often", "*/10 * * * *", Missed.ONCE)
    found = look([often], {"often": at(2)}, at(10, 57), LIMITS)
    assert found.fire == (Occurrence("often", at(10, 50)),)
    assert found.passed == (Passed("often", at(2, 10), at(10, 50), caught_up=True),)
    assert look([often], found.last, at(10, 57), LIMITS).fire == ()


def test_one_that_falls_due_just_now_comes_after_the_one_that_is_caught_up() -> None:
    often = plan("often", "*/10 * * * *", Missed.ONCE)
    found = look([often], {"often": at(2)}, at(11, 0, 5), LIMITS)
    assert found.fire == (Occurrence("often", at(10, 50)), Occurrence("often", at(11)))
    assert found.last == {"often": at(11)}


@pytest.mark.parametrize(
    ("late", "fires"), [(timedelta(), True), (59.999 * SECOND, True), (60 * SECOND, False), (61 * SECOND, False)]
)
def test_it_is_on_time_for_a_minute(late: timedelta, fires: bool) -> None:
    nightly = plan("nightly", "0 3 * * *")
    found = look([nightly], {"nightly": at(3, day=4)}, at(3) + late, LIMITS)
    assert bool(found.fire) is fires
    assert bool(found.passed) is not fires
    assert found.last == {"nightly": at(3)}


def test_nothing_comes_before_its_time() -> None:
    nightly = plan("nightly", "0 3 * * *")
    before = at(3) - timedelta(microseconds=1)
    assert look([nightly], {"nightly": at(3, day=4)}, before, LIMITS).fire == ()


def test_how_long_is_on_time_is_a_limit() -> None:
    found = look([plan("a", "* * * * *")], {"a": at(3)}, at(3, 5), Limits(on_time_s=150))
    assert [each.at for each in found.fire] == [at(3, 3), at(3, 4), at(3, 5)]
    assert found.passed == (Passed("a", at(3, 1), at(3, 2), caught_up=False),)


def test_a_clock_set_back_runs_nothing_twice_and_says_that_it_waits() -> None:
    often = plan("often", "* * * * *")
    assert look([often], {"often": at(3, 5)}, at(3, 2), LIMITS).ahead == ("often",)
    back = look([often], {"often": at(3, 5)}, at(3, 2), LIMITS)
    assert (back.fire, back.last) == ((), {"often": at(3, 5)})
    again = look([often], back.last, at(3, 6), LIMITS)
    assert (again.fire, again.ahead) == ((Occurrence("often", at(3, 6)),), ())


def test_a_clock_set_forward_is_time_without_a_worker() -> None:
    found = look([plan("nightly", "0 3 * * *")], {"nightly": at(3)}, at(12, day=7), LIMITS)
    assert (found.fire, found.passed) == ((), (Passed("nightly", at(3, day=6), at(3, day=7), caught_up=False),))


def test_one_that_is_put_in_or_edited_begins_anew() -> None:
    before = [plan("same", "0 2 * * *"), plan("other", "0 2 * * *"), plan("gone", "0 2 * * *")]
    after = [plan("same", "0 2 * * *", Missed.ONCE), plan("other", "30 2 * * *", Missed.ONCE), plan("new", "0 2 * * *")]
    fresh = edited(before, after)
    assert fresh == {"other", "new"}
    last = {one.id: at(2, day=4) for one in after}
    found = look(after, last, at(2, 45), LIMITS, fresh=fresh)
    assert found.fire == (Occurrence("same", at(2)),)
    assert found.last == {"same": at(2), "other": at(2, 45), "new": at(2, 45)}
    # Not even then does what is dealt with move back.
    assert look(after, {"other": at(3)}, at(2, 45), LIMITS, fresh=fresh).last["other"] == at(3)


def schedule_of(written: dict[str, Any]) -> CronTrigger:
    [(_, found)] = parsed(written).schedules
    return found


def test_another_zone_is_another_schedule() -> None:
    schedules = [schedule_of(entry())]
    assert edited(planned(schedules, UTC), planned(schedules, BERLIN)) == {"nightly"}
    assert edited(planned(schedules, BERLIN), planned(schedules, ZoneInfo("Europe/Berlin"))) == set()
    [one] = planned(schedules, BERLIN)
    assert (one.schedule.next_after(at(0)), one.missed) == (at(1), Missed.SKIP)


def test_without_schedules_nothing_is_due() -> None:
    found = look([], {"gone": at(3)}, at(3), LIMITS)
    assert (found.fire, found.passed, found.last, found.ahead) == ((), (), {}, ())
    assert next_due([], at(3)) is None


@pytest.mark.example("ch1 E11", "The occurrence of a schedule has the id that its id and its instant make.")
def test_an_occurrence_is_a_job_with_an_id_of_its_own() -> None:
    run = {"provider": "openai", "model": "m", "maxTurns": 3, "maxTokens": 9_000}
    job = job_of(schedule_of(entry({"missed": "once"}, run)), 0, Occurrence("nightly", at(3)).job_id)
    assert job == LocalJob(
        id="repeat:nightly:1777950000000",
        kind=JobKind.LOCAL,
        folder=Path("/srv/site"),
        task="run the nightly tidy",
        flow="tidy",
        provider="openai",
        model="m",
        max_turns=3,
        max_tokens=9_000,
        breaker="nightly",
        trigger=Matched(id="nightly", index=0),
    )


def test_a_schedule_of_the_longest_name_is_a_job_too() -> None:
    name = "a" * 128
    schedule = schedule_of(entry({"id": name}, {"image": "pi-job:latest"}))
    job = job_of(schedule, 0, Occurrence(name, datetime(9999, 12, 31, tzinfo=UTC)).job_id)
    assert job.id.startswith(f"repeat:{name}:")
    assert (job.image, job.provider, job.allow_dirty) == ("pi-job:latest", None, False)

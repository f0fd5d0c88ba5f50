"""Schedulers on a real store: any number of them, clocks that are stepped, deaths between any two of their steps."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar
from zoneinfo import ZoneInfo

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from pidispatch.jobs.rows import Ticket
from pidispatch.jobs.store import JobStore
from pidispatch.triggers.file import parse_triggers
from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits
from pidispatch.worker.scheduler import Placed, Scheduler
from tests.support.server import OwnServer
from tests.support.settings import settings_of

T = TypeVar("T")
START = datetime(2026, 5, 4, 12, tzinfo=UTC)
LIMITS = Limits()
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    """A client of a server of the tests' own."""
    with OwnServer("valkey", tmp_path_factory.mktemp("server")) as server:
        client = server.client()
        yield client
        client.close()


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = START

    def now(self) -> datetime:
        """Where it stands."""
        return self.at

    def monotonic(self) -> float:
        """Likewise."""
        return self.at.timestamp()


def entries(*patterns: str, missed: str | None = None, folder: str = "/srv/site") -> tuple[Placed, ...]:
    """A file with a schedule of each pattern, named `s0`, `s1`, ..."""
    listed = []
    for number, pattern in enumerate(patterns):
        on = {"type": "cron", "id": f"s{number}", "pattern": pattern} | ({"missed": missed} if missed else {})
        listed.append({"on": on, "run": {"kind": "local", "folder": folder, "flow": "tidy", "task": "tidy up"}})
    return parse_triggers(json.dumps({"triggers": listed}), Path("triggers.json")).schedules


@dataclass
class Place:
    """A store, a file that all schedulers serve, and what they published."""

    client: redis.Redis
    entries: tuple[Placed, ...]
    clock: Hand = field(default_factory=Hand)
    tickets: list[Ticket] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.client.flushdb()
        self.store = JobStore(self.client, "pi:", LIMITS)

    def scheduler(self, clock: Hand | None = None, store: JobStore | None = None) -> Scheduler:
        """One of them."""
        return Scheduler(
            lambda: self.entries,
            BERLIN,
            store or self.store,
            self.tickets.append,
            settings_of({}),
            LIMITS,
            clock or self.clock,
        )

    def fired(self) -> list[str]:
        """The ids of all jobs that were accepted."""
        heads = [str(name) for name in self.client.scan_iter("pi:job:repeat:*")]
        return sorted(name.removeprefix("pi:job:") for name in heads)


def ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)


def test_a_new_schedule_does_not_fire_at_boot(client: redis.Redis) -> None:
    place = Place(client, entries("0 * * * *"))
    scheduler = place.scheduler()
    scheduler()
    assert place.fired() == []
    place.clock.at += timedelta(hours=1)
    scheduler()
    scheduler()
    assert place.fired() == [f"repeat:s0:{ms(START + timedelta(hours=1))}"]


def test_an_occurrence_is_a_job_of_one_attempt_that_says_where_it_comes_from(client: redis.Redis) -> None:
    place = Place(client, entries("0 * * * *"))
    scheduler = place.scheduler()
    scheduler()
    place.clock.at += timedelta(hours=1)
    scheduler()
    [job_id] = place.fired()
    row = place.store.row(job_id)
    assert row is not None
    assert (row.max_attempts, row.label, row.job.matched and row.job.matched.id) == (1, "local site tidy", "s0")
    assert [ticket.job_id for ticket in place.tickets] == [job_id]


@pytest.mark.example(
    "ch8 F9", "after downtime what fell due is skipped, or made up for once; what comes keeps its time"
)
@pytest.mark.parametrize(("missed", "caught_up"), [(None, False), ("skip", False), ("once", True)])
def test_after_downtime(client: redis.Redis, missed: str | None, caught_up: bool) -> None:
    # By Berlin's clock: 02:00 and 19:30. The last worker was there yesterday.
    place = Place(client, entries("0 2 * * *", "30 19 * * *", missed=missed))
    place.clock.at = datetime(2026, 5, 3, 20, tzinfo=UTC)
    place.scheduler()()
    place.clock.at = datetime(2026, 5, 4, 8, 57, tzinfo=UTC)
    scheduler = place.scheduler()
    with capture_logs() as logs:
        scheduler()
    two = f"repeat:s0:{ms(datetime(2026, 5, 4, 0, tzinfo=UTC))}"
    assert place.fired() == ([two] if caught_up else [])
    [told] = [one for one in logs if one["event"] == "schedule_missed"]
    assert (told["scheduleId"], told["caughtUp"]) == ("s0", caught_up)
    place.clock.at = datetime(2026, 5, 4, 17, 30, 1, tzinfo=UTC)
    scheduler()
    assert f"repeat:s1:{ms(datetime(2026, 5, 4, 17, 30, tzinfo=UTC))}" in place.fired()


def test_a_schedule_that_is_put_in_while_it_runs_waits_for_its_next_instant(client: redis.Redis) -> None:
    place = Place(client, entries("0 * * * *"))
    scheduler = place.scheduler()
    scheduler()
    # Known from an earlier life of the file.
    place.store.deal_with({"s1": START - timedelta(days=1)})
    place.clock.at += timedelta(minutes=30)
    place.entries = entries("0 * * * *", "*/10 * * * *", missed="once")
    scheduler()
    assert place.fired() == []
    place.clock.at += timedelta(minutes=10)
    scheduler()
    assert place.fired() == [f"repeat:s1:{ms(START + timedelta(minutes=40))}"]


def test_a_clock_that_is_set_back_is_told_once_and_fires_nothing_twice(client: redis.Redis) -> None:
    place = Place(client, entries("*/10 * * * *"))
    scheduler = place.scheduler()
    scheduler()
    for _ in range(3):
        place.clock.at += timedelta(minutes=10)
        scheduler()
    before = place.fired()
    assert len(before) == 3
    place.clock.at -= timedelta(minutes=25)
    with capture_logs() as logs:
        for _ in range(20):
            scheduler()
            place.clock.at += timedelta(minutes=1)
    assert place.fired() == before
    assert [one["event"] for one in logs] == ["schedule_ahead"]


class Dying(JobStore):
    """A store whose user is killed at its nth question."""

    def __init__(self, client: redis.Redis, left: int) -> None:
        super().__init__(client, "pi:", LIMITS)
        self._left = left

    def _ask(self, call: Callable[[], T]) -> T:
        self._left -= 1
        if self._left < 0:
            raise InfraError("gone", "store-unreachable")
        return super()._ask(call)


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from([-1800, -61, -1, 0, 1, 1, 1, 30, 59, 61, 600]), st.integers(1, 9)),
        max_size=40,
    )
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_three_schedulers_and_their_clocks_make_one_job_of_an_occurrence(
    client: redis.Redis, steps: list[tuple[int, int, int]]
) -> None:
    """Each has a clock of its own, which is stepped both ways, and dies in the middle of a look now and then."""
    place = Place(client, entries("* * * * *", "*/5 * * * *"))
    clocks = [Hand() for _ in range(3)]
    for clock in clocks:
        place.scheduler(clock)()
    for who, seconds, lives in steps:
        clocks[who].at += timedelta(seconds=seconds)
        scheduler = place.scheduler(clocks[who], Dying(client, lives))
        try:
            scheduler()
        except InfraError:
            place.scheduler(clocks[who])()
    fired = place.fired()
    # One ticket for each, and each on an instant of its pattern after the beginning.
    assert {ticket.job_id for ticket in place.tickets} <= set(fired)
    assert len({ticket.job_id for ticket in place.tickets}) == len(place.tickets)
    for job_id in fired:
        _, name, text = job_id.split(":")
        at = datetime.fromtimestamp(int(text) / 1000, UTC)
        assert START < at <= max(clock.at for clock in clocks) + timedelta(hours=1)
        assert (at.second, at.minute % (5 if name == "s1" else 1)) == (0, 0)


@pytest.mark.parametrize("count", [1, 3])
def test_with_a_steady_clock_every_instant_comes_once(client: redis.Redis, count: int) -> None:
    place = Place(client, entries("* * * * *"))
    schedulers = [place.scheduler() for _ in range(count)]
    for scheduler in schedulers:
        scheduler()
    for _ in range(600):
        place.clock.at += timedelta(seconds=1)
        for scheduler in schedulers:
            scheduler()
    assert place.fired() == [f"repeat:s0:{ms(START + timedelta(minutes=minute))}" for minute in range(1, 11)]
    assert len(place.tickets) == 10


def test_a_ticket_that_cannot_be_published_is_not_lost(client: redis.Redis) -> None:
    place = Place(client, entries("* * * * *"))

    def gone(_: Ticket) -> None:
        raise InfraError("gone", "store-unreachable")

    scheduler = Scheduler(lambda: place.entries, BERLIN, place.store, gone, settings_of({}), LIMITS, place.clock)
    scheduler()
    place.clock.at += timedelta(minutes=1)
    with capture_logs() as logs:
        scheduler()
    assert [one["event"] for one in logs] == ["schedule_fired", "ticket_unpublished"]
    assert len(place.fired()) == 1
    scheduler()
    assert len(place.fired()) == 1


def test_a_schedule_that_loses_one_worker_after_the_other_is_torn_down(client: redis.Redis) -> None:
    place = Place(client, entries("* * * * *", "* * * * *"))
    scheduler = place.scheduler()
    scheduler()
    for number in range(3):
        place.store.count_stall(f"repeat:s0:{number}")
        place.store.count_stall(f"local-{number}")
        place.clock.at += timedelta(minutes=1)
        with capture_logs() as logs:
            scheduler()
        torn = [one for one in logs if one["event"] == "scheduler_torn_down"]
        assert [(one["scheduleId"], one["stalls"]) for one in torn] == ([("s0", 3)] if number == 2 else [])
    names = [job_id.split(":")[1] for job_id in place.fired()]
    assert (names.count("s0"), names.count("s1")) == (2, 3)
    assert 86_000_000 < client.pttl("pi:sched-stalls:s0") <= 86_400_000
    place.clock.at += timedelta(minutes=1)
    with capture_logs() as logs:
        scheduler()
    assert not [one for one in logs if one["event"] == "scheduler_torn_down"]
    # The file again, with a mark at a rule that has fired: nobody has seen to the schedule.
    place.entries = entries("* * * * *", "* * * * *")
    place.clock.at += timedelta(minutes=1)
    scheduler()
    assert place.store.stalls(["s0"]) == {"s0": 3}
    assert f"repeat:s0:{ms(place.clock.at)}" not in place.fired()
    # An edit of a schedule, or another start, begins anew.
    place.entries = entries("* * * * *", "*/2 * * * *")
    scheduler()
    assert place.store.stalls(["s0"]) == {"s0": 0}
    place.clock.at += timedelta(minutes=1)
    scheduler()
    assert f"repeat:s0:{ms(place.clock.at)}" in place.fired()


def test_what_is_dealt_with_is_never_moved_back(client: redis.Redis) -> None:
    place = Place(client, ())
    assert (place.store.dealt_with([]), place.store.stalls([])) == ({}, {})
    place.store.forget_stalls([])
    place.store.deal_with({})
    place.store.deal_with({"a": START, "b": START})
    place.store.deal_with({"a": START - timedelta(hours=1), "b": START + timedelta(hours=1)})
    assert place.store.dealt_with(["a", "b", "c"]) == {"a": START, "b": START + timedelta(hours=1), "c": None}
    assert 399 * 86_400_000 < client.pttl("pi:cron:last:a") <= 400 * 86_400_000

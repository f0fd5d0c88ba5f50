"""Three schedulers, clocks set both ways: no occurrence is run twice, and with steady clocks each one is run once."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pidispatch.triggers.cron import Schedule
from pidispatch.triggers.entry import Missed
from pidispatch.triggers.occurrences import Look, Occurrence, Planned, look
from pidispatch.values.limits import Limits

LIMITS = Limits()
#: The evening before the clocks go back.
BEGIN = datetime(2026, 10, 24, 20, 0, tzinfo=UTC)
_PATTERNS = ["* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "*/20 * * * * *", "4 16 * * *"]
PLANNED = [
    Planned(f"s{at}-{missed}", Schedule.parse(pattern, ZoneInfo("Europe/Berlin")), missed)
    for at, pattern in enumerate(_PATTERNS)
    for missed in Missed
]
_SPANS = st.one_of(st.integers(0, 90), st.integers(0, 7200), st.sampled_from([59, 60, 61, 86_400, 3 * 86_400])).map(
    lambda seconds: timedelta(seconds=seconds)
)
_SCHEDULERS = st.integers(0, 2)


class Shared:
    """What schedulers share: the last of each schedule, which never moves back, and a store that takes an id once."""

    def __init__(self) -> None:
        self.last: dict[str, datetime] = {}
        self.ids: set[str] = set()
        self.runs: Counter[Occurrence] = Counter()
        #: How often the store had the job already.
        self.again = 0

    def submit(self, found: Look) -> None:
        for each in found.fire:
            if each.job_id in self.ids:
                self.again += 1
            else:
                self.ids.add(each.job_id)
                self.runs[each] += 1

    def move_on(self, last: Mapping[str, datetime]) -> None:
        for name, instant in last.items():
            self.last[name] = max(instant, self.last.get(name, instant))


class Schedulers(RuleBasedStateMachine):
    """Looks of three schedulers, broken into their steps, each by a clock of its own; any can be killed in between."""

    @initialize()
    def begin(self) -> None:
        """Nobody has looked yet."""
        self.shared = Shared()
        self.clocks = [BEGIN] * 3
        self.found: list[Look | None] = [None] * 3
        self.before: dict[str, datetime] = {}

    @rule(which=_SCHEDULERS, span=_SPANS, back=st.booleans())
    def step_one_clock(self, which: int, span: timedelta, back: bool) -> None:
        """Somebody sets a clock."""
        self.clocks[which] += -span if back else span

    @rule(span=_SPANS)
    def pass_time(self, span: timedelta) -> None:
        """Time goes on for all."""
        self.clocks = [clock + span for clock in self.clocks]

    @rule(which=_SCHEDULERS)
    def decide(self, which: int) -> None:
        """A scheduler reads what is known, and decides."""
        self.found[which] = found = look(PLANNED, self.shared.last, self.clocks[which], LIMITS)
        schedules = {one.id: one.schedule for one in PLANNED}
        for each in found.fire:
            assert self.shared.last[each.id] < each.at <= self.clocks[which], "dealt with already, or before its time"
            assert schedules[each.id].next_after(each.at - timedelta(seconds=1)) == each.at, "no instant of it"
            assert found.last[each.id] >= each.at, "to be decided once more"

    @rule(which=_SCHEDULERS, killed=st.booleans())
    def submit(self, which: int, killed: bool) -> None:
        """It submits what it decided, however long ago that was, and moves the last on, unless it is killed then."""
        found, self.found[which] = self.found[which], None
        if found is not None:
            self.shared.submit(found)
            if not killed:
                self.shared.move_on(found.last)

    @invariant()
    def each_is_run_once(self) -> None:
        """No occurrence is two jobs, no two occurrences are one, and what is dealt with never moves back."""
        if hasattr(self, "shared"):
            assert all(count == 1 for count in self.shared.runs.values())
            assert len(self.shared.ids) == len(self.shared.runs)
            assert all(self.shared.last[name] >= instant for name, instant in self.before.items())
            self.before = dict(self.shared.last)


TestSchedulers = Schedulers.TestCase
TestSchedulers.settings = settings(max_examples=40, stateful_step_count=25)


@given(st.lists(st.tuples(_SCHEDULERS, _SPANS, st.booleans()), max_size=30))
@settings(max_examples=60)
def test_one_after_the_other_they_run_nothing_twice_without_a_store(steps: list[tuple[int, timedelta, bool]]) -> None:
    shared, clocks = Shared(), [BEGIN] * 3
    for which, span, back in steps:
        clocks[which] += -span if back else span
        found = look(PLANNED, shared.last, clocks[which], LIMITS)
        shared.submit(found)
        shared.move_on(found.last)
    assert shared.again == 0


@given(st.lists(st.tuples(_SCHEDULERS, st.floats(0.001, 59.9), st.booleans()), min_size=1, max_size=80))
@settings(max_examples=40)
def test_with_steady_clocks_each_instant_is_run_once(looks: list[tuple[int, float, bool]]) -> None:
    shared, now = Shared(), BEGIN
    begun = look(PLANNED, shared.last, now, LIMITS)
    shared.move_on(begun.last)
    #: What each one read when it last looked: it may act on what others have changed since.
    read = [dict(shared.last)] * 3
    for which, seconds, stale in looks:
        now += timedelta(seconds=seconds)
        known = read[which] if stale else shared.last
        read[which] = dict(shared.last)
        found = look(PLANNED, known, now, LIMITS)
        shared.submit(found)
        shared.move_on(found.last)
    due = {Occurrence(one.id, instant) for one in PLANNED for instant in one.schedule.due(BEGIN, now)}
    assert set(shared.runs) == due
    assert set(shared.runs.values()) <= {1}

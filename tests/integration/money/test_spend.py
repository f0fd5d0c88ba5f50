"""What a run is counted for: on a real server, one step at a time."""

import contextlib
from datetime import UTC, datetime, timedelta

import pytest

from pidispatch.jobs.charges import Ask, Counter, Ledger, Reserved, TurnedAway
from pidispatch.jobs.rows import Answer, Deferred, JobState, Lease
from pidispatch.money.budget import Budget
from pidispatch.values.errors import InfraError
from pidispatch.values.outcome import InfraFailed
from pidispatch.values.reason import Reason
from pidispatch.values.record import RunRecord
from tests.integration.jobs.world import BROKEN, DONE, PREFIX, World, record
from tests.support.settings import settings_of

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
NEVER = InfraFailed(reason=Reason.CONTAINER_NEVER_STARTED)


def budget(**variables: str) -> Budget:
    return Budget(settings_of(variables))


def spend(world: World, of: Budget, job_id: str, now: datetime = NOW) -> Reserved | TurnedAway:
    found = world.store.spend(world.active(job_id), of.ask(now))
    assert isinstance(found, Reserved | TurnedAway)
    return found


def count(world: World, key: str) -> int:
    return int(world.client.get(f"{PREFIX}{key}") or 0)


def charged(of: RunRecord, found: Reserved | TurnedAway) -> RunRecord:
    return of.model_copy(update={"charged": found.charged})


@pytest.mark.example("ch2 EX-1", "with a cap of two, the third run of a day is refused; its try is counted")
def test_the_third_run_of_two_is_refused_and_counted(world: World) -> None:
    found = [spend(world, budget(PI_DAILY_CAP="2"), f"local-{number}") for number in range(3)]
    assert [one.kind for one in found] == ["reserved", "reserved", "over"]
    last = found[2]
    assert isinstance(last, TurnedAway)
    assert (last.window, last.amount, last.cap, last.charged) == ("day", 3, 2, {"budget:2026-05-04": 1})
    assert count(world, "budget:2026-05-04") == 3
    # Only what may run counts as paid from here on.
    assert [world.row(f"local-{number}").spend_ms is not None for number in range(3)] == [True, True, False]


@pytest.mark.example("ch2 EX-3", "80 percent of 25 let 20 runs in; up to the cap new ones are held, then refused")
def test_a_soft_hold_comes_before_the_cap(world: World) -> None:
    soft = budget(PI_DAILY_CAP="25", PI_SOFT_HOLD_PCT="80")
    kinds = [spend(world, soft, f"local-{number}").kind for number in range(1, 27)]
    assert kinds == ["reserved"] * 20 + ["soft"] * 5 + ["over"]


@pytest.mark.example("ch2 EX-4", "a full week refuses a run of a day with room; the day's counter rises too")
def test_a_full_week_refuses_and_the_day_counts_the_try(world: World) -> None:
    world.client.mset({f"{PREFIX}budget:2026-05-04": 3, f"{PREFIX}budget:w:2026-05-04": 5})
    found = spend(world, budget(PI_DAILY_CAP="25", PI_WEEKLY_CAP="5"), "local-1")
    assert isinstance(found, TurnedAway)
    assert (found.kind, found.window, found.amount, found.cap) == ("over", "week", 6, 5)
    assert (count(world, "budget:2026-05-04"), count(world, "budget:w:2026-05-04")) == (4, 6)


def test_over_a_cap_anywhere_comes_before_a_hold_anywhere(world: World) -> None:
    world.client.mset({f"{PREFIX}budget:2026-05-04": 20, f"{PREFIX}budget:m:2026-05": 9})
    found = spend(world, budget(PI_DAILY_CAP="25", PI_MONTHLY_CAP="9", PI_SOFT_HOLD_PCT="80"), "local-1")
    assert isinstance(found, TurnedAway)
    assert (found.kind, found.window) == ("over", "month")


@pytest.mark.example("ch2 EX-8", "what is given back after midnight is taken from the day it was counted on")
def test_what_is_given_back_after_midnight_is_yesterdays(world: World) -> None:
    late = datetime(2026, 5, 4, 23, 59, 59, tzinfo=UTC)
    lease = world.active("local-1")
    assert isinstance(world.store.spend(lease, budget().ask(late)), Reserved)
    assert isinstance(spend(world, budget(), "local-2", late + timedelta(seconds=6)), Reserved)
    assert isinstance(world.store.fail(lease, record(outcome=NEVER), never_started=True), Deferred)
    assert (count(world, "budget:2026-05-04"), count(world, "budget:2026-05-05")) == (0, 1)


@pytest.mark.example("ch3 E24", "a container that never started is given back to every window it was counted in")
def test_a_run_that_never_started_leaves_no_trace(world: World) -> None:
    caps = budget(PI_WEEKLY_CAP="9", PI_MONTHLY_CAP="9")
    lease = world.active("local-1")
    world.store.spend(lease, caps.ask(NOW))
    before = {key: count(world, key) for key in ("budget:2026-05-04", "budget:w:2026-05-04", "budget:m:2026-05")}
    assert set(before.values()) == {1}
    world.store.fail(lease, record(outcome=NEVER), never_started=True)
    assert {count(world, key) for key in before} == {0}
    row = world.row("local-1")
    assert (row.charged, row.spend_ms, row.state) == ({}, None, JobState.DEFERRED)
    # The next attempt is counted anew.
    assert isinstance(world.store.spend(world.take("local-1").lease, caps.ask(NOW)), Reserved)
    assert {count(world, key) for key in before} == {1}


def test_an_attempt_that_ran_stays_counted_and_the_next_is_counted_again(world: World) -> None:
    lease = world.active("local-1")
    found = world.store.spend(lease, budget().ask(NOW))
    assert isinstance(found, Reserved)
    assert isinstance(world.store.fail(lease, charged(record(outcome=BROKEN), found), never_started=False), Deferred)
    lease = world.take("local-1").lease
    found = world.store.spend(lease, budget().ask(NOW))
    assert isinstance(found, Reserved)
    world.store.finish(lease, charged(record(attempt=2), found))
    assert count(world, "budget:2026-05-04") == 2


def test_asked_again_it_is_the_same_answer_and_counts_once(world: World) -> None:
    """The answer may have been lost on its way."""
    lease = world.active("local-1")
    answers = [world.store.spend(lease, budget().ask(NOW + timedelta(days=day))) for day in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert [count(world, f"budget:2026-05-0{day}") for day in (4, 5, 6)] == [1, 0, 0]
    refused = world.active("local-2")
    tight = budget(PI_DAILY_CAP="1")
    assert world.store.spend(refused, tight.ask(NOW)) == world.store.spend(refused, tight.ask(NOW))
    assert count(world, "budget:2026-05-04") == 2


def test_a_job_put_back_before_its_container_is_given_back(world: World) -> None:
    lease = world.active("local-1")
    world.store.spend(lease, budget().ask(NOW))
    assert world.store.defer(lease, 0, "worker-stopped") is Answer.STALE
    assert isinstance(world.store.defer(lease, 0, "worker-stopped", never_started=True), Deferred)
    assert (count(world, "budget:2026-05-04"), world.row("local-1").spend_ms) == (0, None)


@pytest.mark.example("ch2 EX-38", "a worker that is killed while its container runs: the job fails, its slot stays")
def test_a_worker_that_is_gone_keeps_its_slot(world: World) -> None:
    lease = world.active("local-1")
    world.store.spend(lease, budget().ask(NOW))
    assert world.later(200).store.sweep(rest=False).lost == ("local-1",)
    assert count(world, "budget:2026-05-04") == 1
    lost = world.record("local-1")
    assert (lost.reason, lost.budget_reserved, lost.charged) == ("worker-lost", True, {"budget:2026-05-04": 1})


def test_a_settled_attempt_whose_container_was_never_made_is_given_back(world: World) -> None:
    lease = world.active("local-1")
    world.store.spend(lease, budget().ask(NOW))
    assert world.store.settle("local-1", lease.attempt, None, spent=False).status == "unspent"
    assert (count(world, "budget:2026-05-04"), world.state("local-1")) == (0, JobState.QUEUED)


def test_whose_job_it_is_not_any_more_counts_nothing(world: World) -> None:
    lease = world.active("local-1").model_copy(update={"owner": "another"})
    assert world.store.spend(lease, budget().ask(NOW)) is Answer.STALE
    assert world.store.book(lease, "budget:t:2026-05-04", 1000, 5) is Answer.STALE
    assert (count(world, "budget:2026-05-04"), count(world, "budget:t:2026-05-04")) == (0, 0)


def test_a_job_that_the_server_forgot_is_counted_all_the_same(world: World) -> None:
    leases = [world.active(f"local-{number}") for number in range(3)]
    world.client.flushdb()
    found = [world.store.spend(lease, budget(PI_DAILY_CAP="2").ask(NOW)) for lease in leases]
    assert [one.kind for one in found if not isinstance(one, Answer)] == ["reserved", "reserved", "over"]
    assert {one.known for one in found if not isinstance(one, Answer)} == {False}
    assert world.store.book(leases[0], "budget:t:2026-05-04", 1000, 5) is Answer.UNKNOWN


@pytest.mark.example("ch2 EX-12", "at 999 of 1000 tokens a run starts and is booked whole; the next is refused")
def test_a_token_cap_lags_by_what_its_last_run_uses(world: World) -> None:
    caps = budget(PI_DAILY_TOKEN_CAP="1000")
    world.client.set(f"{PREFIX}budget:t:2026-05-04", 999)
    lease = world.active("local-1")
    assert isinstance(world.store.spend(lease, caps.ask(NOW)), Reserved)
    booked = caps.tokens(NOW, 500)
    assert booked is not None
    assert world.store.book(lease, *booked) is Answer.WON
    assert world.row("local-1").charged == {"budget:2026-05-04": 1, "budget:t:2026-05-04": 500}
    found = spend(world, caps, "local-2")
    assert isinstance(found, TurnedAway)
    assert (found.kind, found.amount, found.cap, found.charged) == ("tokens", 1499, 1000, {})
    assert count(world, "budget:2026-05-04") == 1


def test_tokens_are_booked_once_however_often_it_is_said(world: World) -> None:
    lease = world.active("local-1")
    for _ in range(3):
        assert world.store.book(lease, "budget:t:2026-05-04", 172_800_000, 500) is Answer.WON
    assert count(world, "budget:t:2026-05-04") == 500
    assert 172_000_000 < world.client.pttl(f"{PREFIX}budget:t:2026-05-04") <= 172_800_000


def test_a_busy_window_does_not_put_off_its_own_end(world: World) -> None:
    spend(world, budget(), "local-1")
    world.client.pexpire(f"{PREFIX}budget:2026-05-04", 5000)
    spend(world, budget(), "local-2")
    assert world.client.pttl(f"{PREFIX}budget:2026-05-04") <= 5000


def test_a_wide_ledger_that_refuses_gives_the_narrow_one_back(world: World) -> None:
    narrow = Counter(window="day", key="budget:s:86f279ce9c29f106:2026-05-04", ttl_ms=1000, cap=5)
    wide = Counter(window="day", key="budget:2026-05-04", ttl_ms=1000, cap=1)
    ask = Ask(ledgers=(Ledger(counters=(narrow,)), Ledger(counters=(wide,))))
    found = [world.store.spend(world.active(f"local-{number}"), ask) for number in range(3)]
    assert [one.kind for one in found if not isinstance(one, Answer)] == ["reserved", "over", "over"]
    assert (count(world, narrow.key), count(world, wide.key)) == (1, 3)
    assert isinstance(found[1], TurnedAway)
    assert (found[1].ledger, found[1].charged) == (1, {wide.key: 1})


def test_a_narrow_ledger_that_refuses_leaves_the_wide_one_alone(world: World) -> None:
    narrow = Counter(window="day", key="budget:s:86f279ce9c29f106:2026-05-04", ttl_ms=1000, cap=1)
    wide = Counter(window="day", key="budget:2026-05-04", ttl_ms=1000, cap=25)
    ask = Ask(ledgers=(Ledger(counters=(narrow,)), Ledger(counters=(wide,))))
    for number in range(2):
        world.store.spend(world.active(f"local-{number}"), ask)
    assert (count(world, narrow.key), count(world, wide.key)) == (2, 1)


def test_an_attempt_that_ends_as_done_keeps_its_count(world: World) -> None:
    lease: Lease = world.active("local-1")
    found = world.store.spend(lease, budget().ask(NOW))
    assert isinstance(found, Reserved)
    assert world.store.finish(lease, charged(record(outcome=DONE), found)) is Answer.WON
    assert count(world, "budget:2026-05-04") == 1


@pytest.mark.parametrize("value", ["x", "1.5", "-3"])
def test_a_counter_that_holds_no_number_stops_the_run_before_anything_is_counted(world: World, value: str) -> None:
    """By hand, or by another program: a script that fails half-way would not be undone."""
    world.client.set(f"{PREFIX}budget:w:2026-05-04", value)
    lease = world.active("local-1")
    for _ in range(2):
        with pytest.raises(InfraError, match="refused a command"):
            world.store.spend(lease, budget(PI_WEEKLY_CAP="5").ask(NOW))
    assert count(world, "budget:2026-05-04") == 0
    assert (world.row("local-1").spend_ms, world.row("local-1").charged) == (None, {})


def test_what_is_given_back_is_given_back_once_whatever_the_counters_hold(world: World) -> None:
    caps = budget(PI_WEEKLY_CAP="50", PI_MONTHLY_CAP="50")
    lease = world.active("local-1")
    world.client.mset({f"{PREFIX}budget:w:2026-05-04": 10, f"{PREFIX}budget:m:2026-05": 10})
    world.store.spend(lease, caps.ask(NOW))
    world.client.set(f"{PREFIX}budget:2026-05-04", "1.5")
    for _ in range(4):
        with contextlib.suppress(InfraError):
            world.store.fail(lease, record(outcome=NEVER), never_started=True)
    assert count(world, "budget:w:2026-05-04") >= 10
    assert count(world, "budget:m:2026-05") >= 10
    # Mended, so that the indexes can be looked at.
    world.client.set(f"{PREFIX}budget:2026-05-04", "1")

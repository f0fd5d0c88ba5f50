"""Every move of the store in every state, and what each of them leaves behind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pidispatch.jobs.charges import Reserved
from pidispatch.jobs.rows import Acquired, Answer, Cancelled, Deferred, Ignored, JobState, Lease, RowUnreadable
from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import InfraFailed
from pidispatch.values.reason import Reason
from tests.integration.jobs.world import BROKEN, CANCELLED, DONE, PREFIX, QUEUE, World, job, record

JOB = "local-1"
ROW = f"{PREFIX}job:{JOB}"
LOCK = f"{PREFIX}job:lock:{JOB}"
_HOUR_MS = 3_600_000


def _absent(world: World) -> Lease:
    return Lease(job_id=JOB, owner=world.owner(), gen=0, attempt=1)


def _queued(world: World) -> Lease:
    world.submit()
    return _absent(world)


def _deferred(world: World) -> Lease:
    lease = world.active()
    world.store.defer(lease, 5000, "host-busy")
    return lease


def _without_lock(world: World) -> Lease:
    lease = world.active()
    world.client.delete(LOCK)
    return lease


def _foreign_lock(world: World) -> Lease:
    lease = world.active()
    world.client.set(LOCK, "other#engine#9", px=60_000)
    return lease


def _others(world: World) -> Lease:
    world.active()
    return _absent(world)


def _others_without_lock(world: World) -> Lease:
    lease = _others(world)
    world.client.delete(LOCK)
    return lease


def _other_generation(world: World) -> Lease:
    return world.active().model_copy(update={"gen": 1})


def _completed(world: World) -> Lease:
    lease = world.active()
    world.store.finish(lease, record())
    return lease


def _failed(world: World) -> Lease:
    lease = world.active()
    world.store.finish(lease, record(outcome=BROKEN))
    return lease


def _cancelled(world: World) -> Lease:
    world.submit()
    world.store.cancel(JOB, record(outcome=CANCELLED, spent=False))
    return _absent(world)


STATES: dict[str, Callable[[World], Lease]] = {
    "absent": _absent,
    "queued": _queued,
    "deferred": _deferred,
    "active": World.active,
    "lock gone": _without_lock,
    "foreign lock": _foreign_lock,
    "another's": _others,
    "another's, lock gone": _others_without_lock,
    "another generation": _other_generation,
    "completed": _completed,
    "failed": _failed,
    "cancelled": _cancelled,
}
OWNERS_MOVES: dict[str, Callable[[World, Lease], Any]] = {
    "renew": lambda world, lease: world.store.renew([lease])[lease.job_id],
    "defer": lambda world, lease: world.store.defer(lease, 5000, "scope-busy"),
    "spend": lambda world, lease: world.store.spend(lease),
    "finish": lambda world, lease: world.store.finish(lease, record()),
    "fail": lambda world, lease: world.store.fail(lease, record(outcome=BROKEN), never_started=False),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("move", OWNERS_MOVES)
def test_only_the_lease_of_an_active_job_moves_it(world: World, state: str, move: str) -> None:
    lease = STATES[state](world)
    before = world.raw()
    answer = OWNERS_MOVES[move](world, lease)
    if state in ("active", "lock gone"):
        assert answer in (Answer.WON, Reserved()) or isinstance(answer, Deferred)
    elif state == "absent" and move == "spend":
        # The caps hold whatever the server has forgotten.
        assert answer == Reserved(known=False)
    else:
        assert answer is (Answer.UNKNOWN if state == "absent" else Answer.STALE)
        assert world.raw() == before


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("absent", "unknown"),
        ("queued", "acquired"),
        ("deferred", "acquired"),
        ("active", "active"),
        ("lock gone", "active"),
        ("foreign lock", "active"),
        ("another's", "active"),
        ("completed", "finished"),
        ("failed", "finished"),
        ("cancelled", "finished"),
    ],
)
def test_a_job_is_taken_only_while_it_waits(world: World, state: str, expected: str) -> None:
    STATES[state](world)
    row = world.store.row(JOB)
    # A cancelled job has moved on; its ticket is of the generation before.
    gen = 0 if row is None or state == "cancelled" else row.gen
    before = world.raw()
    answer = world.store.acquire(JOB, gen, world.owner())
    if expected == "acquired":
        assert isinstance(answer, Acquired)
        assert world.state() is JobState.ACTIVE
    else:
        assert answer == Ignored.model_validate({"state": expected})
        assert world.raw() == before


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("absent", Cancelled(status="unknown")),
        ("queued", Cancelled(status="cancelled", changed=True)),
        ("deferred", Cancelled(status="cancelled", changed=True)),
        ("active", Cancelled(status="requested")),
        ("another's", Cancelled(status="requested")),
        ("completed", Cancelled(status="completed")),
        ("failed", Cancelled(status="failed")),
        ("cancelled", Cancelled(status="cancelled")),
    ],
)
def test_a_cancel_ends_what_waits_and_asks_for_what_runs(world: World, state: str, expected: Cancelled) -> None:
    STATES[state](world)
    before = world.raw()
    assert world.store.cancel(JOB, record(outcome=CANCELLED, spent=False)) == expected
    if expected.changed:
        assert (world.state(), world.record().reason) == (JobState.CANCELLED, "operator-cancel")
    assert world.store.cancel_requested([JOB, "local-2"]) == ({JOB} if expected.status == "requested" else set())
    if not expected.changed and expected.status != "requested":
        assert world.raw() == before


@pytest.mark.parametrize("state", STATES)
def test_a_known_id_is_a_duplicate_in_any_state(world: World, state: str) -> None:
    STATES[state](world)
    before = world.raw()
    answer = world.store.submit(job(), queue=QUEUE, dedup_key="acme/web#1:fix")
    if state == "absent":
        assert answer.status == "submitted"
        assert answer.ticket is not None
    else:
        # The semantic key is not touched either.
        assert (answer.status, answer.job_id, answer.ticket) == ("duplicate", JOB, None)
        assert world.raw() == before


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("absent", Answer.UNKNOWN),
        ("queued", Answer.STALE),
        ("deferred", Answer.STALE),
        ("active", Answer.STALE),
        ("completed", Answer.WON),
        ("failed", Answer.WON),
        ("cancelled", Answer.WON),
    ],
)
def test_a_record_is_noted_where_one_is_owed(world: World, state: str, expected: Answer) -> None:
    STATES[state](world)
    assert world.store.recorded(JOB, 2) is (Answer.UNKNOWN if state == "absent" else Answer.STALE)
    assert world.store.recorded(JOB, 1) is expected
    row = world.store.row(JOB)
    assert row is None or row.recorded is (True if expected is Answer.WON else None)


@pytest.mark.example("ch5 s9 three copies", "Of three copies of one ticket one is taken, and two are ignored.")
@pytest.mark.example("ch2 EX-37", "A ticket that is delivered three times is one run.")
def test_three_copies_of_one_ticket_are_one_acquire(world: World) -> None:
    ticket = world.submit()
    answers = [world.store.acquire(JOB, ticket.gen, world.owner()) for _ in range(3)]
    assert isinstance(answers[0], Acquired)
    assert answers[1:] == [Ignored(state="active")] * 2
    world.store.finish(answers[0].lease, record())
    assert world.store.acquire(JOB, ticket.gen, world.owner()) == Ignored(state="finished")


def test_a_ticket_of_an_earlier_generation_is_stale(world: World) -> None:
    lease = world.active()
    deferred = world.store.defer(lease, 5000, "host-busy")
    assert isinstance(deferred, Deferred)
    assert (deferred.gen, deferred.delay_ms) == (lease.gen + 1, 5000)
    assert world.store.acquire(JOB, lease.gen, world.owner()) == Ignored(state="stale")
    again = world.take(gen=deferred.gen)
    assert again.lease.attempt == 1
    assert world.store.acquire(JOB, lease.gen, world.owner()) == Ignored(state="stale")


def test_a_delivery_whose_answer_was_lost_may_ask_again(world: World) -> None:
    ticket, owner = world.submit(), world.owner()
    first = world.store.acquire(JOB, ticket.gen, owner)
    assert world.store.acquire(JOB, ticket.gen, owner) == first


def test_what_is_acquired_says_all_of_the_job(world: World) -> None:
    world.submit(max_attempts=3)
    acquired = world.take()
    assert (acquired.job, acquired.queue, acquired.max_attempts) == (job(), QUEUE, 3)
    assert acquired.label == "local site tidy"
    assert acquired.previous is None
    row = world.row()
    assert row.owner == acquired.lease.owner == world.client.get(LOCK)
    assert 0 < world.client.pttl(LOCK) <= 60_000
    assert row.acquired_ms is not None
    assert world.client.zscore(f"{PREFIX}jobs:active", JOB) == row.acquired_ms + 60_000


def test_a_deferred_job_says_when_and_why_and_keeps_its_attempt(world: World) -> None:
    lease = world.active()
    deferred = world.store.defer(lease, 5000, "scope-busy")
    row = world.row()
    assert isinstance(deferred, Deferred)
    assert (row.due_ms, row.why, row.attempt, row.gen) == (deferred.due_ms, "scope-busy", 1, deferred.gen)
    assert 5000 <= deferred.due_ms - world.now_ms < 6000
    world.take()
    assert (world.row().due_ms, world.row().why) == (None, None)


def test_what_may_have_cost_something_never_sleeps(world: World) -> None:
    lease = world.active()
    assert world.store.spend(lease) == Reserved()
    spent = world.row().spend_ms
    assert world.later(1).store.spend(lease) == Reserved()
    assert world.row().spend_ms == spent is not None
    assert world.store.defer(lease, 5000, "scope-busy") is Answer.STALE
    assert world.state() is JobState.ACTIVE


def test_the_first_failure_is_followed_by_a_second_attempt_and_that_by_none(world: World) -> None:
    lease = world.active()
    world.store.spend(lease)
    first = record(outcome=BROKEN)
    deferred = world.store.fail(lease, first, never_started=False)
    assert isinstance(deferred, Deferred)
    assert deferred.delay_ms == 60_000
    row = world.row()
    assert (row.state, row.attempt, row.spend_ms, row.why) == (JobState.DEFERRED, 2, None, "retry")
    assert (row.recorded, row.record_attempt, world.record()) == (False, 1, first)
    assert world.store.recorded(JOB, 1) is Answer.WON
    again = world.take()
    assert (again.lease.attempt, again.previous) == (2, first)
    second = record(outcome=BROKEN, attempt=2, previous=first)
    assert world.store.fail(again.lease, second, never_started=False) is Answer.WON
    assert (world.state(), world.record(), world.row().recorded) == (JobState.FAILED, second, False)
    assert world.store.recorded(JOB, 1) is Answer.STALE


def test_the_time_between_attempts_doubles(world: World) -> None:
    world.submit(max_attempts=4)
    for attempt, delay in ((1, 60_000), (2, 120_000), (3, 240_000)):
        told = world.store.fail(world.take().lease, record(outcome=BROKEN, attempt=attempt), never_started=True)
        assert isinstance(told, Deferred)
        assert told.delay_ms == delay


def test_an_end_that_nobody_can_tell_the_cost_of_is_not_followed_by_an_attempt(world: World) -> None:
    lease = world.active()
    lost = record(outcome=InfraFailed(reason=Reason.WORKER_LOST))
    assert world.store.fail(lease, lost, never_started=False) is Answer.WON
    assert world.state() is JobState.FAILED


@pytest.mark.parametrize("never_started", [True, False])
def test_a_last_attempt_that_never_started_counts_as_unspent(world: World, never_started: bool) -> None:
    lease = world.active(max_attempts=1)
    world.store.spend(lease)
    world.store.fail(lease, record(outcome=BROKEN, spent=False), never_started=never_started)
    assert (world.row().spend_ms is None) is never_started


def test_an_end_is_won_once(world: World) -> None:
    lease = world.active()
    assert [world.store.finish(lease, record()) for _ in range(3)] == [Answer.WON, Answer.STALE, Answer.STALE]
    assert world.record() == record()


@pytest.mark.parametrize(
    ("outcome", "state", "hours"),
    [(DONE, "completed", 24), (CANCELLED, "completed", 24), (BROKEN, "failed", 7 * 24)],
)
def test_a_row_stays_for_its_retention(world: World, outcome: Any, state: str, hours: int) -> None:
    lease = world.active()
    world.store.finish(lease, record(outcome=outcome))
    assert world.state() == state
    # Until its record is written the row alone holds it.
    assert world.client.pttl(ROW) > 6 * 24 * _HOUR_MS
    assert world.store.recorded(JOB, 1) is Answer.WON
    assert hours * _HOUR_MS - 60_000 < world.client.pttl(ROW) < hours * _HOUR_MS + 1000


def test_the_row_of_a_job_that_was_cancelled_stays_for_a_day(world: World) -> None:
    _cancelled(world)
    assert world.client.pttl(ROW) > 6 * 24 * _HOUR_MS
    world.store.recorded(JOB, 1)
    assert 23 * _HOUR_MS < world.client.pttl(ROW) < 24 * _HOUR_MS + 1000


def test_the_semantic_key_is_held_for_ten_minutes_whatever_becomes_of_its_job(world: World) -> None:
    key = "acme/web#1:fix"
    world.submit(dedup_key=key)
    assert world.client.pttl(f"{PREFIX}dedup:{key}") <= 600_000
    world.store.finish(world.take().lease, record())
    assert world.row().dedup_key == key
    world.later(599)
    told = world.store.submit(job("local-2"), queue=QUEUE, dedup_key=key)
    assert (told.status, told.job_id, told.ticket) == ("coalesced", JOB, None)
    assert world.store.row("local-2") is None
    # It was not made longer by the one that came in between.
    assert world.later(2).store.submit(job("local-2"), queue=QUEUE, dedup_key=key).status == "submitted"
    assert world.store.submit(job("local-3"), queue=QUEUE, dedup_key=key).job_id == "local-2"


def test_a_semantic_key_without_a_row_swallows_nothing(world: World) -> None:
    world.client.set(f"{PREFIX}dedup:k", "local-9")
    assert world.store.submit(job(), queue=QUEUE, dedup_key="k").status == "submitted"


def test_a_lease_that_the_server_forgot_is_taken_again_and_another_ones_is_not(world: World) -> None:
    mine, other = world.active(), world.active("local-2")
    gone = Lease(job_id="local-3", owner="w#e#1", gen=0, attempt=1)
    world.client.delete(LOCK)
    world.client.set(f"{PREFIX}job:lock:local-2", "other#engine#1", px=60_000)
    answers = world.later(10).store.renew([mine, other, gone])
    assert answers == {JOB: Answer.WON, "local-2": Answer.STALE, "local-3": Answer.UNKNOWN}
    assert world.client.get(LOCK) == mine.owner
    assert float(world.client.zscore(f"{PREFIX}jobs:active", JOB) or 0) > world.now_ms + 59_000
    assert world.store.renew([]) == {}


def test_a_live_lock_beside_a_waiting_row_keeps_others_out(world: World) -> None:
    # As a server could be left that was restored from two copies.
    ticket = world.submit()
    world.client.set(LOCK, "other#engine#1", px=60_000)
    world.client.zadd(f"{PREFIX}jobs:active", {JOB: world.now_ms + 60_000})
    assert world.store.acquire(JOB, ticket.gen, world.owner()) == Ignored(state="active")
    assert isinstance(world.later(61).store.acquire(JOB, ticket.gen, world.owner()), Acquired)


def test_a_job_that_this_version_cannot_read_is_taken_and_can_be_failed(world: World) -> None:
    ticket = world.submit()
    world.client.hset(ROW, "data", '{"id": "local-1", "from": "a later version"}')
    with pytest.raises(RowUnreadable) as caught:
        world.store.acquire(JOB, ticket.gen, world.owner())
    assert (caught.value.queue, caught.value.label, caught.value.max_attempts) == (QUEUE, "local site tidy", 2)
    with pytest.raises(InfraError, match="submit it again"):
        _ = world.row().job
    assert world.store.finish(caught.value.lease, record(spent=False)) is Answer.WON


@pytest.mark.parametrize("text", ["no record", "{}"])
def test_a_record_that_cannot_be_read_is_none(world: World, text: str) -> None:
    lease = world.active()
    world.store.fail(lease, record(outcome=BROKEN), never_started=False)
    world.client.hset(ROW, "record", text)
    assert world.store.record_of(world.row()) is None
    assert world.take().previous is None


def test_a_job_without_an_end_has_no_record(world: World) -> None:
    world.submit()
    assert world.store.record_of(world.row()) is None


@pytest.mark.parametrize("job_id", ["lock:local-1", "progress:1", "told:1"])
def test_an_id_that_would_be_another_key_is_refused(world: World, job_id: str) -> None:
    with pytest.raises(ConfigError) as caught:
        world.store.submit(job(job_id), queue=QUEUE)
    assert caught.value.cause == "job-id"


def test_a_folder_that_is_not_text_is_refused(world: World) -> None:
    with pytest.raises(ConfigError) as caught:
        world.store.submit(job().model_copy(update={"folder": Path("/srv/\udcff")}), queue=QUEUE)
    assert caught.value.cause == "folder-name"


def test_every_queue_is_known(world: World) -> None:
    world.submit()
    world.submit("local-2", queue="pi-jobs@build-1")
    assert world.client.smembers(f"{PREFIX}queues") == {QUEUE, "pi-jobs@build-1"}
    assert world.client.zcard(f"{PREFIX}jobs:queued:pi-jobs@build-1") == 1


def test_the_instants_of_a_row_are_the_servers(world: World) -> None:
    begin = world.now_ms
    world.submit()
    lease = world.later(10).take().lease
    world.later(10).store.finish(lease, record())
    row = world.row()
    assert row.acquired_ms is not None
    assert row.finished_ms is not None
    stamps = (row.created_ms, row.published_ms, row.acquired_ms, row.finished_ms)
    assert [(stamp - begin) // 10_000 for stamp in stamps] == [0, 0, 1, 2]


def test_the_bounds_are_those_handed_in(world: World) -> None:
    world.limits = Limits(lease_s=3, retry_base_ms=10)
    lease = world.active()
    assert world.client.pttl(LOCK) <= 3000
    told = world.store.fail(lease, record(outcome=BROKEN), never_started=False)
    assert isinstance(told, Deferred)
    assert told.delay_ms == 10

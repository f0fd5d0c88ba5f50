"""The kill switch: what it stops from the moment it stands, and what it leaves alone."""

from datetime import timedelta

import pytest

from pidispatch.jobs.charges import Reserved
from pidispatch.jobs.pausing import EVERY
from pidispatch.jobs.rows import Acquired, Deferred, JobState, Paused
from pidispatch.values.verdict import Why
from tests.integration.jobs.world import BROKEN, PREFIX, QUEUE, World, record

OTHER = "pi-jobs@build-1"


def asleep(world: World, job_id: str = "local-1") -> Paused:
    """A job that a pause put to sleep."""
    answer = world.store.acquire(job_id, world.row(job_id).gen, world.owner())
    assert isinstance(answer, Paused), answer
    return answer


@pytest.mark.parametrize("queue", [QUEUE, EVERY])
def test_a_job_of_a_paused_queue_sleeps_for_thirteen_seconds_and_uses_up_nothing(world: World, queue: str) -> None:
    world.submit()
    world.store.pause([queue])
    before = world.row()
    answer = asleep(world)
    row = world.row()
    assert (answer.delay_ms, answer.ticket) == (13_000, row.ticket)
    assert (row.state, row.why, row.attempt, row.gen) == (JobState.DEFERRED, Why.PAUSED, 1, before.gen + 1)
    assert row.due_ms is not None
    assert 13_000 <= row.due_ms - world.now_ms < 14_000
    assert (row.owner, row.acquired_ms, row.spend_ms) == (None, None, None)
    assert not world.client.exists(f"{PREFIX}job:lock:local-1")


def test_it_is_looked_at_again_until_the_queue_is_resumed_and_then_runs(world: World) -> None:
    world.submit()
    world.store.pause([QUEUE])
    for _ in range(3):
        asleep(world.later(13))
    assert world.store.resume([QUEUE, OTHER]) == (QUEUE,)
    taken = world.take()
    assert (taken.lease.attempt, taken.lease.gen) == (1, 3)


def test_a_second_attempt_waits_too_and_is_still_the_second(world: World) -> None:
    lease = world.active(max_attempts=2)
    assert isinstance(world.store.fail(lease, record(outcome=BROKEN), never_started=False), Deferred)
    world.store.pause([EVERY])
    asleep(world.later(61))
    world.store.resume([EVERY])
    taken = world.take()
    assert taken.lease.attempt == 2
    assert taken.previous is not None


def test_a_job_that_runs_goes_on(world: World) -> None:
    lease = world.active()
    world.store.pause([QUEUE, EVERY])
    assert world.store.renew([lease]) == {"local-1": "won"}
    assert world.store.spend(lease) == Reserved()
    assert world.store.finish(lease, record()) == "won"
    assert world.state() is JobState.COMPLETED


def test_other_queues_go_on(world: World) -> None:
    world.submit("local-1", OTHER)
    world.store.pause([QUEUE])
    assert isinstance(world.take(), Acquired)


def test_a_queue_that_never_had_a_job_is_paused_with_all_of_them(world: World) -> None:
    world.store.pause([EVERY])
    world.submit("local-1", OTHER)
    assert asleep(world).ticket.queue == OTHER


def test_what_is_paused_is_told_with_the_instant_of_the_first_who_did_it(world: World) -> None:
    assert world.store.paused() == {}
    world.store.pause([QUEUE])
    first = world.store.paused()
    world.store.pause([QUEUE, OTHER])
    later = world.store.paused()
    assert set(first) == {QUEUE}
    assert set(later) == {QUEUE, OTHER}
    assert later[QUEUE] == first[QUEUE]
    assert later[OTHER] - first[QUEUE] < timedelta(minutes=1)


def test_resuming_what_was_not_paused_changes_nothing(world: World) -> None:
    before = world.raw()
    assert world.store.resume([QUEUE, EVERY]) == ()
    assert world.raw() == before


def test_the_sweep_breeds_no_ticket_for_a_paused_queue(world: World) -> None:
    world.publish(world.submit("local-1"), world.submit("local-2"))
    world.store.pause([QUEUE])
    swept = world.later(1_000).store.sweep(rest=False)
    assert swept.publish == ()

"""A request to cancel against everything else that can happen to its job at the same time."""

import pytest

from pidispatch.jobs.rows import Answer, Deferred, Ignored, JobState
from tests.integration.jobs.world import BROKEN, CANCELLED, DONE, PREFIX, World, record

JOB = "local-1"


def ask(world: World) -> str:
    """Cancel the job."""
    return world.store.cancel(JOB, record(outcome=CANCELLED, spent=False)).status


def test_the_ticket_of_a_cancelled_job_is_of_no_use(world: World) -> None:
    ticket = world.submit()
    assert ask(world) == "cancelled"
    row = world.row()
    assert (row.state, row.gen, row.reason, row.recorded) == (
        JobState.CANCELLED,
        ticket.gen + 1,
        CANCELLED.reason,
        False,
    )
    for gen in (ticket.gen, row.gen):
        assert world.store.acquire(JOB, gen, world.owner()) == Ignored(state="finished")


def test_a_sleeping_job_is_cancelled_with_the_attempt_it_had(world: World) -> None:
    first = record(outcome=BROKEN)
    world.store.fail(world.active(), first, never_started=False)
    told = record(outcome=CANCELLED, attempt=2, previous=first, spent=False)
    assert world.store.cancel(JOB, told).changed
    assert (world.record(), world.row().record_attempt) == (told, 2)
    assert world.client.zcard(f"{PREFIX}jobs:due") == 0


@pytest.mark.example("ch2 EX-42", "A cancel that is asked for while the next attempt is decided on ends the job.")
def test_a_request_ends_a_job_that_would_come_again(world: World) -> None:
    lease = world.active()
    assert ask(world) == "requested"
    before = world.raw()
    assert world.store.fail(lease, record(outcome=BROKEN), never_started=False) is Answer.CANCEL
    assert world.store.defer(lease, 5000, "host-busy") is Answer.CANCEL
    assert world.raw() == before
    assert world.store.finish(lease, record(outcome=CANCELLED)) is Answer.WON
    assert (world.record().reason, world.state()) == ("operator-cancel", JobState.COMPLETED)
    assert world.store.cancel_requested([JOB]) == set()


def test_a_request_does_not_keep_a_last_attempt_from_its_end(world: World) -> None:
    lease = world.active(max_attempts=1)
    ask(world)
    assert world.store.fail(lease, record(outcome=BROKEN), never_started=False) is Answer.WON
    assert (world.state(), world.store.cancel_requested([JOB])) == (JobState.FAILED, set())


def test_a_request_that_came_after_the_end_finds_it(world: World) -> None:
    world.store.finish(world.active(), record(outcome=DONE))
    assert ask(world) == "completed"
    assert world.store.cancel_requested([JOB]) == set()


def test_an_answer_names_the_worker_and_ends_the_request(world: World) -> None:
    lease = world.active()
    ask(world)
    assert 0 < world.client.pttl(f"{PREFIX}cancel:req:{JOB}") <= 60_000
    assert world.store.cancel_answer(JOB) is None
    world.store.acknowledge_cancel(JOB, "build-1")
    assert (world.store.cancel_answer(JOB), world.store.cancel_requested([JOB])) == ("build-1", set())
    assert 0 < world.client.pttl(f"{PREFIX}cancel:ack:{JOB}") <= 300_000
    # What was answered stands: the job comes no more.
    assert world.store.fail(lease, record(outcome=BROKEN), never_started=False) is Answer.CANCEL
    assert ask(world) == "requested"
    assert world.store.cancel_answer(JOB) == "build-1"


def test_a_request_can_be_taken_back_while_nobody_answered(world: World) -> None:
    lease = world.active()
    ask(world)
    assert world.store.withdraw_cancel(JOB)
    assert not world.store.withdraw_cancel(JOB)
    assert isinstance(world.store.fail(lease, record(outcome=BROKEN), never_started=False), Deferred)


def test_a_job_whose_cancel_was_answered_is_not_queued_again_when_its_worker_is_lost(world: World) -> None:
    world.active()
    ask(world)
    world.store.acknowledge_cancel(JOB, "w")
    swept = world.later(61).store.sweep(rest=False)
    assert (swept.requeued, swept.lost) == ((), ())
    found = world.record()
    assert (world.state(), world.row().recorded) == (JobState.CANCELLED, False)
    assert (found.outcome, found.reason, found.budget_reserved) == ("policy", "operator-cancel", False)


def test_a_paid_run_that_is_lost_stays_lost_whoever_asked_to_cancel_it(world: World) -> None:
    world.store.spend(world.active())
    ask(world)
    assert world.later(61).store.sweep(rest=False).lost == (JOB,)
    assert world.record().reason == "worker-lost"


def test_nobody_asked_for_nothing(world: World) -> None:
    assert world.store.cancel_requested([]) == set()


def test_what_an_attempt_cost_that_ended_meanwhile_is_not_overwritten(world: World) -> None:
    """Whoever cancels made the record from a row that has moved on."""
    world.store.fail(world.active(), record(outcome=BROKEN), never_started=False)
    assert world.state() == "deferred"
    assert ask(world) == "stale"
    assert (world.state(), world.record()) == ("deferred", record(outcome=BROKEN))
    assert world.store.cancel(JOB, record(outcome=CANCELLED, spent=False, attempt=2)).status == "cancelled"

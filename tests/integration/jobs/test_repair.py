"""The sweep's cases and the settling of broken-off attempts, with numbers."""

from datetime import UTC, datetime

import pytest
import redis

from pidispatch.jobs.charges import Reserved
from pidispatch.jobs.rows import Acquired, Answer, Deferred, Ignored, JobState, Settled, Swept, Ticket
from pidispatch.values.limits import Limits
from tests.integration.jobs.world import BROKEN, DONE, PREFIX, QUEUE, TELEMETRY, World, record
from tests.support.server import until

JOB = "local-1"
NOTHING = Swept()


def sweep(world: World) -> Swept:
    """Sweep, and publish what is missing, as a worker does."""
    swept = world.store.sweep(rest=False)
    world.publish(*swept.requeued, *swept.publish)
    return swept


# Leases that ran out.


@pytest.mark.example("ch2 EX-38", "A job whose worker is lost while it may cost something fails, and is not run again.")
def test_a_paid_run_without_a_worker_fails_and_never_runs_again(world: World) -> None:
    lease = world.active()
    world.store.spend(lease)
    assert sweep(world.later(59)) == NOTHING
    assert sweep(world.later(2)) == Swept(lost=(JOB,))
    row, found = world.row(), world.record()
    assert (row.state, row.recorded, row.reason, row.lost_owner) == (JobState.FAILED, False, "worker-lost", lease.owner)
    assert (found.outcome, found.reason, found.cause, found.budget_reserved) == ("failed", "worker-lost", None, True)
    assert (found.host, found.target, found.attempt, found.exit_code) == ("w", "local:site", 1, None)
    assert row.acquired_ms is not None
    assert found.started_at == datetime.fromtimestamp(row.acquired_ms / 1000, UTC)
    assert world.store.acquire(JOB, row.gen, world.owner()) == Ignored(state="finished")
    assert world.store.finish(lease, record()) is Answer.STALE
    assert world.store.recorded(JOB, 1) is Answer.WON


@pytest.mark.example("ch2 EX-39", "A job lost before it spent anything is queued again; the third such death fails it.")
def test_an_unpaid_run_without_a_worker_is_queued_again_twice(world: World) -> None:
    world.submit()
    for death in (1, 2):
        lease = world.take().lease
        gen = world.row().gen
        swept = sweep(world.later(61))
        assert swept == Swept(requeued=(Ticket(job_id=JOB, gen=gen + 1, queue=QUEUE, label="local site tidy"),))
        row = world.row()
        assert (row.state, row.lost, row.attempt, row.owner) == (JobState.QUEUED, death, 1, None)
        assert world.store.record_of(row) is None
        assert world.store.spend(lease) is Answer.STALE
        assert world.fetch() == (JOB, gen + 1)
        assert sweep(world) == NOTHING
    world.take()
    assert sweep(world.later(61)) == Swept(lost=(JOB,))
    found = world.record()
    assert (found.reason, found.cause, found.budget_reserved) == ("worker-lost", "before-spending", False)
    assert (found.attempt, found.host) == (1, "w")


def test_the_record_of_a_lost_attempt_keeps_the_one_before(world: World) -> None:
    first = record(outcome=BROKEN)
    world.store.fail(world.active(), first, never_started=False)
    world.store.spend(world.take().lease)
    assert sweep(world.later(61)).lost == (JOB,)
    found = world.record()
    assert (found.attempt, found.reason, found.attempts) == (2, "worker-lost", first.as_earlier)


def test_a_renewed_lease_does_not_run_out(world: World) -> None:
    lease = world.active()
    for _ in range(4):
        assert world.later(40).store.renew([lease]) == {JOB: Answer.WON}
        assert sweep(world) == NOTHING


def test_a_lease_that_ran_out_counts_until_somebody_takes_the_job(world: World) -> None:
    lease = world.active()
    assert world.later(3600).store.spend(lease) == Reserved()
    assert sweep(world) == NOTHING
    assert world.later(3600).store.finish(lease, record()) is Answer.WON


#: A rest that a server has been up for after a second.
QUICK = Limits(lease_s=0.9, renew_every_s=0.01, sweep_rest_s=0)


def test_a_server_that_was_just_started_takes_no_lease_away(world: World) -> None:
    world.active()
    until(lambda: world.client.info("server")["uptime_in_seconds"] >= 1, "the server to be up for a second")
    world.later(61).limits = Limits(sweep_rest_s=1e6)
    assert world.store.sweep() == NOTHING
    world.limits = QUICK
    # The first sweep of all begins the time in which leases could be renewed.
    assert world.store.sweep() == NOTHING
    assert world.later(0.5).store.sweep() == NOTHING
    assert [one.job_id for one in world.later(0.5).store.sweep().requeued] == [JOB]


def test_a_server_that_hung_takes_no_lease_away(world: World) -> None:
    """Its uptime goes on, and the first it does then may be a sweep."""
    lease = world.active()
    until(lambda: world.client.info("server")["uptime_in_seconds"] >= 1, "the server to be up for a second")
    world.limits = QUICK
    for _ in range(5):
        assert world.store.renew([lease]) == {JOB: Answer.WON}
        assert world.later(0.5).store.sweep() == NOTHING
    assert world.later(30).store.sweep() == NOTHING
    assert world.later(0.5).store.renew([lease]) == {JOB: Answer.WON}
    assert world.store.sweep() == NOTHING


def test_a_name_in_an_index_without_a_row_is_taken_out(world: World) -> None:
    for index in ("jobs:active", "jobs:due", "jobs:unrecorded", f"jobs:queued:{QUEUE}", "jobs:failed"):
        world.client.zadd(PREFIX + index, {"local-9": 1})
    world.client.sadd(f"{PREFIX}queues", QUEUE)
    assert sweep(world.later(8 * 24 * 3600)) == NOTHING
    assert world.client.keys(f"{PREFIX}jobs:*") == []


# Tickets that went missing.


def test_a_backlog_breeds_no_tickets(world: World) -> None:
    for number in range(100):
        world.publish(world.submit(f"local-{number}"))
    surplus, taken = 0, 0
    for _ in range(100):
        surplus += len(sweep(world.later(301)).publish)
        ticket = world.fetch()
        assert ticket is not None
        taken += isinstance(acquired := world.store.acquire(*ticket, world.owner()), Acquired)
        assert isinstance(acquired, Acquired)
        world.store.finish(acquired.lease, record(ticket[0]))
    assert (surplus, taken, world.fetch()) == (0, 100, None)


def test_lost_tickets_are_published_again_once(world: World) -> None:
    for number in range(100):
        ticket = world.submit(f"local-{number:03}")
        world.later(1)
        if number % 10:
            world.publish(ticket)
    assert sweep(world.later(199)) == NOTHING
    first = sweep(world.later(102))
    # As many as are missing: not those that are, which nobody can tell, but the oldest.
    assert [one.job_id for one in first.publish] == [f"local-{number:03}" for number in range(10)]
    assert sum(len(sweep(world.later(60)).publish) for _ in range(20)) == 0
    seen = set()
    for _ in range(3):
        while (ticket_of := world.fetch()) is not None:
            if isinstance(acquired := world.store.acquire(*ticket_of, world.owner()), Acquired):
                seen.add(ticket_of[0])
                world.store.finish(acquired.lease, record(ticket_of[0]))
        sweep(world.later(301))
    assert len(seen) == 100


def test_a_ticket_that_is_on_its_way_is_not_published_again_at_once(world: World) -> None:
    world.submit()
    assert len(sweep(world.later(301)).publish) == 1
    # A worker has fetched it and says nothing yet.
    assert world.fetch() == (JOB, 0)
    assert sum(len(sweep(world.later(60)).publish) for _ in range(4)) == 0
    assert len(sweep(world.later(61)).publish) == 1


def test_each_queue_is_looked_at_for_itself(world: World) -> None:
    for number in range(5):
        world.publish(world.submit(f"local-{number}", queue="pi-jobs@away"))
    world.submit("local-9")
    assert [one.job_id for one in sweep(world.later(301)).publish] == ["local-9"]


def test_a_job_that_overslept_waits_in_its_queue_and_its_lost_ticket_is_published_once(world: World) -> None:
    deferred = world.store.defer(world.active(), 5000, "host-busy")
    assert isinstance(deferred, Deferred)
    assert sweep(world.later(64)) == NOTHING
    assert world.state() is JobState.DEFERRED
    swept = sweep(world.later(2))
    assert swept == Swept(publish=(Ticket(job_id=JOB, gen=deferred.gen, queue=QUEUE, label="local site tidy"),))
    assert (world.state(), world.row().due_ms, world.row().attempt) == (JobState.QUEUED, None, 1)
    assert sum(len(sweep(world.later(301)).publish) for _ in range(10)) == 0
    assert world.fetch() == (JOB, deferred.gen)
    # Lost a second time, it is missed again.
    assert len(sweep(world).publish) == 1


def test_a_job_that_overslept_and_whose_ticket_waits_gets_no_other(world: World) -> None:
    deferred = world.store.defer(world.active(), 5000, "host-busy")
    assert isinstance(deferred, Deferred)
    world.publish(world.row().ticket)
    assert sum(len(sweep(world.later(70)).publish) for _ in range(10)) == 0
    world.take(gen=deferred.gen)


def test_many_that_overslept_in_a_queue_without_a_worker_hide_no_other(world: World) -> None:
    world.limits = Limits(sweep_batch=3)
    for number in range(10):
        world.store.defer(world.active(f"local-{number}", queue="pi-jobs@away"), 1000, "host-busy")
        world.publish(world.row(f"local-{number}").ticket)
    world.store.defer(world.active("local-99"), 2000, "host-busy")
    world.later(120)
    found = [one.job_id for _ in range(5) for one in sweep(world).publish]
    assert found == ["local-99"]


def test_a_pass_is_bounded(world: World) -> None:
    world.limits = Limits(sweep_batch=3)
    for number in range(5):
        world.submit(f"local-q{number}")
        world.submit(f"local-p{number}", queue="pi-jobs@b")
        world.active(f"local-a{number}")
    first = sweep(world.later(301))
    assert (len(first.requeued), len(first.publish)) == (3, 3)
    # What is queued again needs no look for a ticket in the same pass.
    found = [sweep(world) for _ in range(4)]
    assert sum(len(one.requeued) for one in found) == 2
    assert sum(len(one.publish) for one in found) == 7


# Records that nobody wrote.


def test_a_record_that_nobody_wrote_is_asked_for_every_minute(world: World) -> None:
    world.store.finish(world.active(), record())
    assert sweep(world.later(59)).unrecorded == ()
    assert sweep(world.later(2)).unrecorded == (JOB,)
    assert sweep(world.later(30)).unrecorded == ()
    assert sweep(world.later(31)).unrecorded == (JOB,)
    assert world.record() == record()
    world.store.recorded(JOB, 1)
    assert sweep(world.later(61)).unrecorded == ()


def test_also_that_of_an_attempt_which_another_follows(world: World) -> None:
    world.store.fail(world.active(), record(outcome=BROKEN), never_started=False)
    assert sweep(world.later(61)).unrecorded == (JOB,)


def test_failed_jobs_leave_the_index_with_their_row(world: World) -> None:
    for job_id in (JOB, "local-2"):
        world.store.finish(world.active(job_id), record(job_id, BROKEN))
        world.store.recorded(job_id, 1)
    world.client.delete(f"{PREFIX}job:{JOB}")
    sweep(world.later(7 * 24 * 3600 + 1))
    assert world.client.zrange(f"{PREFIX}jobs:failed", 0, -1) == ["local-2"]


# Settling.


def test_a_run_that_ended_while_its_worker_was_gone_has_its_true_end(world: World) -> None:
    world.store.spend(world.active())
    assert world.store.settle(JOB, 1, record(), spent=True, engine="engine") == Settled(status="won")
    assert (world.state(), world.record(), world.row().recorded) == (JobState.COMPLETED, record(), False)
    assert world.store.settle(JOB, 1, record(), spent=True) == Settled(status="stale")


def test_a_paid_run_that_broke_is_not_followed_by_an_attempt(world: World) -> None:
    world.store.spend(world.active())
    assert world.store.settle(JOB, 1, record(outcome=BROKEN), spent=True).status == "won"
    assert (world.state(), world.row().attempt) == (JobState.FAILED, 1)


@pytest.mark.parametrize("noted", [True, False])
def test_a_run_that_left_no_report_is_lost(world: World, noted: bool) -> None:
    lease = world.active()
    if noted:
        world.store.spend(lease)
    assert world.store.settle(JOB, 1, None, spent=True) == Settled(status="won")
    found = world.record()
    assert (found.reason, found.budget_reserved, found.cause) == ("worker-lost", True, None)


@pytest.mark.parametrize("noted", [True, False])
def test_a_run_that_never_started_is_queued_again(world: World, noted: bool) -> None:
    lease = world.active()
    if noted:
        world.store.spend(lease)
    settled = world.store.settle(JOB, 1, None, spent=False, engine="engine")
    assert settled == Settled(status="unspent", ticket=world.row().ticket)
    assert (world.state(), world.row().lost, world.row().spend_ms) == (JobState.QUEUED, 1, None)
    world.take(gen=world.row().gen)


def test_a_record_does_not_make_an_unspent_run_a_paid_one(world: World) -> None:
    world.active()
    assert world.store.settle(JOB, 1, record(outcome=BROKEN, spent=False), spent=False).status == "unspent"


def test_a_note_of_spending_and_a_report_are_a_paid_run(world: World) -> None:
    world.store.spend(world.active())
    assert world.store.settle(JOB, 1, record(), spent=False).status == "won"


def test_the_third_death_before_spending_is_an_end_here_too(world: World) -> None:
    world.limits = Limits(lost_requeues=0)
    world.active()
    assert world.store.settle(JOB, 1, None, spent=False) == Settled(status="unspent")
    assert (world.state(), world.record().cause) == (JobState.FAILED, "before-spending")


def test_an_attempt_that_another_engine_took_up_is_left_alone(world: World) -> None:
    world.active()
    sweep(world.later(61))
    world.take()
    before = world.raw()
    assert world.store.settle(JOB, 1, None, spent=False, engine="another") == Settled(status="stale")
    assert world.raw() == before


def test_a_lost_run_is_completed_with_what_it_used(world: World) -> None:
    world.store.spend(world.active())
    sweep(world.later(61))
    world.store.recorded(JOB, 1)
    assert world.store.settle(JOB, 1, None, spent=True) == Settled(status="stale")
    assert world.store.settle(JOB, 1, record(), spent=True) == Settled(status="completed-telemetry")
    found = world.record()
    assert (found.outcome, found.reason) == ("failed", "worker-lost")
    assert (found.exit_code, found.turns, found.tokens) == (0, TELEMETRY.turns, TELEMETRY.tokens)
    assert found.context == TELEMETRY.context
    assert world.row().recorded is False
    assert world.store.settle(JOB, 1, record(), spent=True) == Settled(status="stale")


@pytest.mark.parametrize("state", ["queued", "deferred", "completed", "failed"])
def test_what_does_not_run_needs_no_settling(world: World, state: str) -> None:
    if state == "queued":
        world.submit()
    elif state == "deferred":
        world.store.defer(world.active(), 5000, "host-busy")
    else:
        world.store.finish(world.active(), record(outcome=DONE if state == "completed" else BROKEN))
    before = world.raw()
    assert world.store.settle(JOB, 1, record(), spent=True) == Settled(status="stale")
    assert world.store.settle("local-9", 1, record(), spent=True) == Settled(status="unknown")
    assert world.raw() == before


def test_another_attempt_is_not_settled(world: World) -> None:
    world.store.fail(world.active(), record(outcome=BROKEN), never_started=False)
    world.take()
    assert world.store.settle(JOB, 1, record(), spent=True) == Settled(status="stale")
    assert world.state() is JobState.ACTIVE


def test_a_sweep_of_an_empty_store_makes_nothing(client: redis.Redis, world: World) -> None:
    assert sweep(world) == NOTHING
    assert client.dbsize() == 0

"""What a worker does beside its deliveries: leases kept, records that are due, tickets that went missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pidispatch.jobs.rows import Acquired, JobState, Lease, Swept, Ticket
from pidispatch.jobs.store import JobStore
from pidispatch.values.errors import InfraError
from pidispatch.values.outcome import Completed
from pidispatch.values.progress import TurnEnded
from pidispatch.values.reason import AbortReason
from pidispatch.values.record import RunRecord
from pidispatch.worker.sweeper import Sweeper
from tests.integration.worker.bench import JOB, LIMITS, PREFIX, Bench
from tests.support.ends import record_of

Logs = list[dict[str, object]]
LONG_AGO = 1


def named(logs: Logs, event: str) -> list[dict[str, object]]:
    return [one for one in logs if one["event"] == event]


def taken(bench: Bench, job_id: str = JOB) -> Lease:
    """A job that this worker holds."""
    acquired = bench.store.acquire(job_id, bench.submit(job_id).gen, bench.owner())
    assert isinstance(acquired, Acquired)
    return acquired.lease


def past(bench: Bench, index: str, job_id: str = JOB) -> None:
    """Let the instant that an index keeps for the job be long ago."""
    bench.client.zadd(f"pi:jobs:{index}", {job_id: LONG_AGO})


@contextmanager
def unwritable(bench: Bench) -> Iterator[None]:
    """Something else lies where the folder of the records was."""
    folder = bench.records.folder
    aside = folder.rename(folder.with_name("aside"))
    folder.write_text("in the way")
    try:
        yield
    finally:
        folder.unlink()
        aside.rename(folder)


class Restless(JobStore):
    """A store whose server has been up for long: no sweep rests after its start."""

    def sweep(self, rest: bool = False) -> Swept:
        """Sweep at once."""
        return super().sweep(rest)


class Tickets:
    """Where tickets are published to."""

    def __init__(self) -> None:
        self.seen: list[Ticket] = []
        self.away = False

    def publish(self, ticket: Ticket) -> None:
        """Publish one."""
        if self.away:
            raise InfraError("no broker", "ticket-unpublished")
        self.seen.append(ticket)


@pytest.fixture
def tickets() -> Tickets:
    return Tickets()


@pytest.fixture
def sweeper(bench: Bench, tickets: Tickets) -> Sweeper:
    return Sweeper(bench.store, tickets.publish, bench.recorder)


def ended(bench: Bench) -> RunRecord:
    """The record of a job that ended, not written yet."""
    lease = taken(bench)
    record = record_of(JOB, Completed())
    bench.store.finish(lease, record)
    return record


def test_a_record_is_written_and_marked(bench: Bench) -> None:
    record = ended(bench)
    assert bench.row().recorded is False
    assert bench.recorder(record) is True
    assert (bench.row().recorded, bench.records.find(JOB)) == (True, record)


def test_a_record_that_cannot_be_written_stays_due_and_a_sweep_writes_it(
    bench: Bench, sweeper: Sweeper, logs: Logs
) -> None:
    record = ended(bench)
    with unwritable(bench):
        assert bench.recorder(record) is False
        past(bench, "unrecorded")
        sweeper()
    assert bench.row().recorded is False
    assert {one["cause"] for one in named(logs, "run_record_due")} == {"logs-dir"}
    past(bench, "unrecorded")
    sweeper()
    assert (bench.row().recorded, bench.records.find(JOB)) == (True, record)
    assert bench.client.zcard("pi:jobs:unrecorded") == 0


def test_a_record_that_could_not_be_marked_is_written_again(bench: Bench, sweeper: Sweeper, logs: Logs) -> None:
    record = ended(bench)
    with bench.away():
        assert bench.recorder(record) is True
    assert len(named(logs, "record_unmarked")) == 1
    past(bench, "unrecorded")
    sweeper()
    assert (bench.row().recorded, bench.records.find(JOB)) == (True, record)


def test_a_ticket_that_nobody_took_is_published_again(bench: Bench, sweeper: Sweeper, tickets: Tickets) -> None:
    ticket = bench.submit()
    sweeper()
    assert tickets.seen == []
    past(bench, "queued:pi-jobs")
    sweeper()
    assert tickets.seen == [ticket]


def test_one_that_cannot_be_published_is_found_by_a_later_sweep(
    bench: Bench, sweeper: Sweeper, tickets: Tickets, logs: Logs
) -> None:
    bench.submit()
    tickets.away = True
    past(bench, "queued:pi-jobs")
    sweeper()
    assert len(named(logs, "ticket_unpublished")) == 1
    tickets.away = False
    past(bench, "queued:pi-jobs")
    sweeper()
    assert (len(tickets.seen), len(named(logs, "ticket_published_again"))) == (1, 1)


def test_a_paid_job_whose_worker_is_gone_is_recorded_as_lost(bench: Bench, tickets: Tickets, logs: Logs) -> None:
    lease = taken(bench)
    bench.store.spend(lease)
    bench.client.delete(f"pi:job:lock:{JOB}")
    past(bench, "active")
    Sweeper(Restless(bench.connection, PREFIX, LIMITS), tickets.publish, bench.recorder)()
    record = bench.records.find(JOB)
    assert record is not None
    assert (record.outcome, record.reason, record.budget_reserved) == ("failed", "worker-lost", True)
    assert (bench.row().state, bench.row().recorded, tickets.seen) == (JobState.FAILED, True, [])
    assert len(named(logs, "job_lost")) == 1


def test_an_unpaid_one_gets_a_new_ticket(bench: Bench, tickets: Tickets) -> None:
    lease = taken(bench)
    bench.client.delete(f"pi:job:lock:{JOB}")
    past(bench, "active")
    Sweeper(Restless(bench.connection, PREFIX, LIMITS), tickets.publish, bench.recorder)()
    assert [(one.job_id, one.gen) for one in tickets.seen] == [(JOB, lease.gen + 1)]
    assert bench.records.find(JOB) is None


def test_a_row_that_went_away_meanwhile_needs_no_record(bench: Bench, sweeper: Sweeper) -> None:
    bench.client.zadd("pi:jobs:unrecorded", {"local-9": LONG_AGO})
    sweeper()
    assert bench.records.find("local-9") is None


def test_leases_are_renewed_and_only_those_that_another_has_are_lost(bench: Bench, logs: Logs) -> None:
    bench.leases.renew()
    bench.leases.watch()
    with bench.leases.hold(taken(bench)) as mine, bench.leases.hold(taken(bench, "local-2")) as other:
        bench.client.delete(f"pi:job:lock:{JOB}")
        bench.take_away("local-2")
        bench.leases.renew()
        assert bench.client.get(f"pi:job:lock:{JOB}") == mine.lease.owner
        assert (mine.abort.reason, mine.lost) == (None, False)
        assert (other.abort.reason, other.lost) == (AbortReason.LEASE_LOST, True)
        bench.leases.renew()
    assert [one["jobId"] for one in named(logs, "lease_lost")] == ["local-2"]


def test_a_server_that_is_away_or_has_lost_everything_takes_no_lease(bench: Bench) -> None:
    with bench.leases.hold(taken(bench)) as held:
        with bench.away(), pytest.raises(InfraError):
            bench.leases.renew()
        bench.forget()
        bench.leases.renew()
        assert held.abort.reason is None


def test_a_lease_that_ended_while_it_was_renewed_is_not_lost(bench: Bench, logs: Logs) -> None:
    lease = taken(bench)
    with bench.leases.hold(lease) as held:
        bench.take_away()
        renew = bench.store.renew

        def ended_meanwhile(leases: Any) -> Any:
            answers = renew(leases)
            bench.leases._held.clear()
            return answers

        vars(bench.store)["renew"] = ended_meanwhile
        bench.leases.renew()
        del vars(bench.store)["renew"]
    assert (held.abort.reason, named(logs, "lease_lost")) == (None, [])


def test_of_two_holds_of_one_job_the_later_one_is_the_one(bench: Bench) -> None:
    lease = taken(bench)
    with bench.leases.hold(lease):
        with bench.leases.hold(lease) as later:
            assert bench.leases.get(JOB) is later
        assert bench.leases.all() == []


def test_a_cancel_is_heard_once_and_not_after_the_end_is_decided(bench: Bench, logs: Logs) -> None:
    with bench.leases.hold(taken(bench)) as held:
        held.decide()
        bench.ask_to_cancel()
        bench.leases.watch()
        assert (held.abort.reason, bench.store.cancel_answer(JOB)) == (None, None)
    with bench.leases.hold(taken(bench, "local-2")) as other:
        bench.ask_to_cancel("local-2")
        bench.leases.watch()
        assert (other.abort.reason, bench.store.cancel_answer("local-2")) == (
            AbortReason.OPERATOR_CANCEL,
            "build-1",
        )
    assert [one["jobId"] for one in named(logs, "cancel_acknowledged")] == ["local-2"]


def test_all_jobs_are_ended_for_one_reason(bench: Bench) -> None:
    with bench.leases.hold(taken(bench)) as one, bench.leases.hold(taken(bench, "local-2")) as two:
        two.abort.set(AbortReason.LEASE_LOST)
        bench.leases.abort_all(AbortReason.SHUTDOWN)
        assert (one.abort.reason, two.abort.reason) == (AbortReason.SHUTDOWN, AbortReason.LEASE_LOST)


def test_progress_that_cannot_be_told_ends_nothing(bench: Bench) -> None:
    with bench.leases.hold(taken(bench)) as held:
        held.tell(TurnEnded(turns=1, tokens=2))
        requested = bench.store.cancel_requested

        def gone_after(job_ids: Any) -> Any:
            found = requested(job_ids)
            bench.server.stop()
            return found

        vars(bench.store)["cancel_requested"] = gone_after
        try:
            bench.leases.watch()
        finally:
            bench.server.start()
            del vars(bench.store)["cancel_requested"]
    assert bench.store.read_progress(JOB) is None


def test_a_lease_that_this_very_worker_took_anew_is_not_lost(bench: Bench) -> None:
    """The server lost its data and was told anew: the new ticket is taken here now and then, and put off."""
    with bench.leases.hold(taken(bench)) as held:
        again = held.lease.owner.rpartition("#")[0] + "#another"
        bench.client.hset(f"pi:job:{JOB}", "owner", again)
        bench.client.set(f"pi:job:lock:{JOB}", again)
        bench.leases.renew()
        assert held.abort.reason is None


def test_a_row_that_cannot_be_read_keeps_no_other_from_its_record(bench: Bench, sweeper: Sweeper, logs: Logs) -> None:
    record = ended(bench)
    bench.client.hset("pi:job:local-0", mapping={"state": "completed", "gen": "x"})
    bench.client.zadd("pi:jobs:unrecorded", {"local-0": LONG_AGO, JOB: LONG_AGO})
    sweeper()
    assert bench.records.find(JOB) == record
    assert [one["jobId"] for one in named(logs, "record_incomplete")] == ["local-0"]

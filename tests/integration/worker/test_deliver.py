"""One ticket from the store's word to the end of its attempt: every branch, with a real store."""

import os
import threading

import pytest

from pidispatch.box.abort import Abort
from pidispatch.jobs.rows import JobState
from pidispatch.runs.seams import LeaseLost
from pidispatch.values.errors import InfraError
from pidispatch.values.job import LocalJob
from pidispatch.values.outcome import Completed, InfraFailed, Outcome, Refused
from pidispatch.values.progress import TurnEnded
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.record import Result
from pidispatch.values.verdict import Admit, Defer, Verdict, Why
from pidispatch.worker.delivery import End
from tests.integration.worker.bench import JOB, Bench
from tests.support.ends import NOW, job_of, record_of, result_of
from tests.support.server import until

BROKEN = InfraFailed(reason=Reason.INFRA, cause="exit-1")
LATER = Defer(why=Why.SCOPE_BUSY, delay_ms=5_000)
Logs = list[dict[str, object]]


def named(logs: Logs, event: str) -> list[dict[str, object]]:
    return [one for one in logs if one["event"] == event]


def record_file(bench: Bench, job_id: str = JOB) -> tuple[str, str | None] | None:
    """Outcome and reason of the record file."""
    found = bench.records.find(job_id)
    return None if found is None else (found.outcome, found.reason)


@pytest.mark.parametrize(
    ("outcome", "state", "reason"),
    [
        (Completed(), JobState.COMPLETED, None),
        (Refused(reason=Reason.RUNNER_POLICY, cause="turn_budget"), JobState.COMPLETED, "runner-policy"),
    ],
)
def test_an_attempt_with_an_end_of_its_own_ends_the_job(
    outcome: Outcome, state: JobState, reason: str | None, bench: Bench
) -> None:
    bench.submit()
    bench.ended_with(outcome)
    delivery = bench.deliver()
    assert delivery.end is End.RETURNED
    row = bench.row()
    assert (row.state, row.reason, row.recorded) == (state, reason, True)
    found = record_file(bench)
    assert found is not None
    assert found[1] == reason
    assert (bench.leases.all(), bench.door.inside) == ([], [])


def test_a_ticket_that_has_no_say_is_dropped(bench: Bench, logs: Logs) -> None:
    ticket = bench.submit()
    bench.never()
    assert bench.deliver(gen=ticket.gen + 1).end is End.IGNORED
    assert bench.deliver("local-9", 0).end is End.IGNORED
    assert [one["state"] for one in named(logs, "delivery_ignored")] == ["stale", "unknown"]
    assert bench.row().state is JobState.QUEUED


def test_a_worker_that_stops_gives_a_ticket_back_untouched(bench: Bench) -> None:
    bench.submit()
    bench.stopping.set()
    assert bench.deliver().end is End.GIVEN_BACK
    assert bench.row().state is JobState.QUEUED


def test_one_that_is_told_to_stop_while_it_asks_begins_nothing(bench: Bench) -> None:
    bench.submit()
    bench.never()
    bench.stops_while_asking = True
    assert bench.deliver().end is End.AGAIN
    row = bench.row()
    assert (row.state, row.attempt, row.spend_ms) == (JobState.DEFERRED, 1, None)


def test_a_store_that_is_away_decides_nothing(bench: Bench) -> None:
    ticket = bench.submit()
    bench.never()
    with bench.away():
        delivery = bench.deliver(gen=ticket.gen)
    assert (delivery.end, delivery.gen) == (End.UNDECIDED, ticket.gen)
    assert bench.row().state is JobState.QUEUED


def test_a_row_that_this_version_cannot_read_ends_as_a_refusal(bench: Bench) -> None:
    ticket = bench.submit()
    bench.client.hset(f"pi:job:{JOB}", "data", "{}")
    delivery = bench.deliver(gen=ticket.gen)
    assert delivery.end is End.RETURNED
    assert record_file(bench) == ("policy", "config-refused")
    row = bench.row()
    assert (row.state, row.cause, row.recorded) == (JobState.COMPLETED, "row-unreadable", True)


def test_a_record_of_this_machine_keeps_a_job_from_being_paid_for_again(bench: Bench, logs: Logs) -> None:
    bench.submit()
    bench.records.write(record_of(JOB, Completed()))
    bench.never()
    assert bench.deliver().end is End.RETURNED
    row = bench.row()
    assert (row.state, row.reason, row.recorded) == (JobState.COMPLETED, None, True)
    assert [one["outcome"] for one in named(logs, "job_lost_lock_after_completion")] == ["completed"]


def test_one_of_a_failed_attempt_does_not(bench: Bench) -> None:
    bench.submit()
    bench.records.write(record_of(JOB, BROKEN))
    assert bench.deliver().end is End.RETURNED
    assert record_file(bench) == ("failed", "infra")
    assert bench.row().state is JobState.COMPLETED


def test_one_that_was_written_while_the_job_stood_at_the_gates_does_too(bench: Bench) -> None:
    bench.submit()
    bench.never()

    def check(_: LocalJob) -> Verdict:
        bench.records.write(record_of(JOB, Completed()))
        return Admit()

    bench.door.act = check
    assert bench.deliver().end is End.RETURNED
    assert (bench.row().state, bench.door.inside) == (JobState.COMPLETED, [])


def test_a_gate_puts_the_job_to_sleep_and_nothing_is_held(bench: Bench) -> None:
    ticket = bench.submit()
    bench.never()
    bench.door.act = lambda _: LATER
    delivery = bench.deliver()
    assert (delivery.end, delivery.record, delivery.gen, delivery.queue, delivery.label) == (
        End.AGAIN,
        None,
        ticket.gen + 1,
        "pi-jobs",
        "local site tidy",
    )
    assert delivery.delay_ms == 5_000
    row = bench.row()
    assert (row.state, row.why, row.attempt, bench.door.inside) == (JobState.DEFERRED, "scope-busy", 1, [])


def test_a_gate_refuses_the_job_for_good(bench: Bench) -> None:
    bench.submit()
    bench.never()
    bench.door.act = lambda _: Refused(reason=Reason.CONFIG_REFUSED, cause="folder-missing")
    assert bench.deliver().end is End.RETURNED
    assert record_file(bench) == ("policy", "config-refused")
    record = bench.records.find(JOB)
    assert record is not None
    assert (record.budget_reserved, record.exit_code) == (False, None)


def test_an_attempt_that_finds_the_folder_busy_sleeps_without_a_record(bench: Bench) -> None:
    bench.submit()
    bench.attempt(lambda *_: LATER)
    delivery = bench.deliver()
    assert (delivery.end, bench.row().state, bench.door.inside) == (End.AGAIN, JobState.DEFERRED, [])
    assert record_file(bench) is None


def test_a_failed_attempt_is_recorded_and_followed_by_another_with_the_first_in_its_record(bench: Bench) -> None:
    bench.submit()
    bench.ended_with(BROKEN)
    first = bench.deliver()
    assert (first.end, first.delay_ms) == (End.AGAIN, 60_000)
    assert record_file(bench) == ("failed", "infra")
    assert bench.door.inside == []
    row = bench.row()
    assert (row.state, row.why, row.attempt, row.recorded) == (JobState.DEFERRED, "retry", 2, True)
    second = bench.deliver()
    assert second.end is End.FAILED
    record = bench.records.find(JOB)
    assert record is not None
    assert (record.attempt, [one.attempt for one in record.attempts]) == (2, [1])
    assert bench.row().state is JobState.FAILED


def test_a_container_that_never_started_comes_again_unspent(bench: Bench) -> None:
    bench.submit()
    bench.ended_with(InfraFailed(reason=Reason.CONTAINER_NEVER_STARTED), spent=False)
    assert bench.deliver().end is End.AGAIN
    assert bench.row().spend_ms is None


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), MemoryError("a marked text")])
@pytest.mark.parametrize("spent", [True, False])
def test_whatever_is_raised_past_the_attempt_ends_the_job_and_is_never_run_again(
    error: BaseException, spent: bool, bench: Bench, logs: Logs
) -> None:
    bench.submit()

    def act(job: LocalJob, _: Abort) -> Result:
        if spent:
            bench.cases.spend(job, NOW)
        raise error

    bench.attempt(act)
    assert bench.deliver().end is End.FAILED
    row = bench.row()
    assert (row.state, row.cause, row.recorded) == (JobState.FAILED, "internal-error", True)
    # Nobody can say how far it came: what it was counted for stays.
    counted = [int(bench.client.get(name)) for name in bench.client.scan_iter("pi:budget:*")]
    record = bench.records.find(JOB)
    assert record is not None
    assert (sum(counted), len(record.charged or {})) == ((1, 1) if spent else (0, 0))
    assert named(logs, "attempt_broke") == [
        {"event": "attempt_broke", "log_level": "error", "jobId": JOB, "cause": type(error).__name__}
    ]
    assert bench.door.inside == []


def test_what_is_raised_after_the_end_was_stored_changes_nothing(bench: Bench) -> None:
    bench.submit()

    def act(job: LocalJob, _: Abort) -> Result:
        bench.cases.finish(job, result_of(Completed()))
        raise KeyboardInterrupt

    bench.attempt(act)
    assert bench.deliver().end is End.RETURNED
    assert bench.row().state is JobState.COMPLETED


def test_an_operators_cancel_that_was_heard_is_how_the_job_ended(bench: Bench) -> None:
    bench.submit()

    def act(job: LocalJob, abort: Abort) -> Result:
        bench.cases.spend(job, NOW)
        bench.ask_to_cancel()
        bench.leases.watch()
        assert abort.reason is AbortReason.OPERATOR_CANCEL
        assert bench.store.cancel_answer(JOB) == "build-1"
        # It had ended by itself in the same moment.
        bench.cases.finish(job, result_of(Completed()))
        return result_of(Completed())

    bench.attempt(act)
    assert bench.deliver().end is End.RETURNED
    assert record_file(bench) == ("policy", "operator-cancel")
    told = bench.store.told(JOB)
    assert told is not None
    assert told["result"]["outcome"]["reason"] == "operator-cancel"


def test_a_request_that_stands_at_a_failed_attempt_is_its_end(bench: Bench) -> None:
    bench.submit()

    def act(job: LocalJob, _: Abort) -> Result:
        bench.cases.spend(job, NOW)
        bench.ask_to_cancel()
        bench.cases.finish(job, result_of(BROKEN))
        return result_of(BROKEN)

    bench.attempt(act)
    assert bench.deliver().end is End.RETURNED
    assert record_file(bench) == ("policy", "operator-cancel")


def test_a_request_that_stands_when_the_job_is_put_to_sleep_is_its_end(bench: Bench) -> None:
    bench.submit()
    bench.never()
    bench.ask_to_cancel()
    bench.door.act = lambda _: LATER
    assert bench.deliver().end is End.RETURNED
    assert record_file(bench) == ("policy", "operator-cancel")
    record = bench.records.find(JOB)
    assert record is not None
    assert record.budget_reserved is False


def test_the_end_of_a_job_whose_lease_another_has_is_dropped(bench: Bench, logs: Logs) -> None:
    bench.submit()

    def act(job: LocalJob, abort: Abort) -> Result:
        bench.take_away()
        with pytest.raises(LeaseLost):
            bench.cases.spend(job, NOW)
        bench.leases.renew()
        assert abort.reason is AbortReason.LEASE_LOST
        bench.cases.finish(job, result_of(BROKEN, spent=False))
        return result_of(BROKEN, spent=False)

    bench.attempt(act)
    delivery = bench.deliver()
    assert (delivery.end, delivery.record, record_file(bench)) == (End.IGNORED, None, None)
    assert (len(named(logs, "lease_lost")), len(named(logs, "end_ignored"))) == (1, 1)
    assert bench.door.inside == []


def test_an_attempt_that_ended_without_its_end_being_stored_is_dropped(bench: Bench, logs: Logs) -> None:
    """So does one whose lease is lost before the container, or while this worker stops and no server answers."""
    bench.submit()
    bench.attempt(lambda *_: result_of(BROKEN, spent=False))
    assert bench.deliver().end is End.IGNORED
    assert named(logs, "end_unstored")[0]["lost"] is False
    assert bench.row().state is JobState.ACTIVE


def test_what_the_server_has_lost_is_recorded_all_the_same(bench: Bench, logs: Logs) -> None:
    bench.submit()

    def act(job: LocalJob, _: Abort) -> Result:
        bench.forget()
        # From here on the record file alone keeps it from being paid for again.
        bench.cases.spend(job, NOW)
        bench.cases.finish(job, result_of(Completed()))
        return result_of(Completed())

    bench.attempt(act)
    assert bench.deliver(gen=0).end is End.RETURNED
    assert record_file(bench) == ("completed", None)
    assert len(named(logs, "spend_unknown")) == 1


def test_a_job_that_runs_here_already_is_not_run_beside_itself(bench: Bench) -> None:
    bench.submit()
    inner: list[End] = []

    def act(job: LocalJob, _: Abort) -> Result:
        bench.forget()
        bench.submit()
        inner.append(bench.deliverer(JOB, 0).end)
        bench.cases.finish(job, result_of(Completed()))
        return result_of(Completed())

    bench.attempt(act)
    bench.deliver(gen=0)
    assert inner == [End.AGAIN]
    # The row of the second one knows of no run; the file keeps it from one.
    assert (bench.row().state, record_file(bench)) == (JobState.DEFERRED, ("completed", None))
    bench.never()
    assert bench.deliver().end is End.RETURNED
    assert bench.row().state is JobState.COMPLETED


def test_a_mistake_in_a_gate_is_a_failed_attempt(bench: Bench, logs: Logs) -> None:
    bench.submit()
    bench.never()

    def check(_: LocalJob) -> Verdict:
        raise KeyError("a marked text")

    bench.door.act = check
    assert bench.deliver().end in (End.AGAIN, End.FAILED)
    assert record_file(bench) == ("failed", "infra")
    assert [one["cause"] for one in named(logs, "gate_broke")] == ["KeyError"]
    assert (bench.leases.all(), bench.door.inside) == ([], [])


def test_a_deferral_that_cannot_be_stored_leaves_the_row_to_the_sweep(bench: Bench, logs: Logs) -> None:
    ticket = bench.submit()
    bench.never()

    def check(_: LocalJob) -> Verdict:
        bench.server.stop()
        return LATER

    bench.door.act = check
    try:
        assert bench.deliver(gen=ticket.gen).end is End.IGNORED
    finally:
        bench.server.start()
    assert [one["cause"] for one in named(logs, "defer_failed")] == ["store-unreachable"]
    assert (bench.row().state, bench.row().spend_ms) == (JobState.ACTIVE, None)


@pytest.mark.parametrize("lost", [True, False])
def test_a_deferral_of_a_job_that_is_not_ours_any_more_is_dropped(lost: bool, bench: Bench, logs: Logs) -> None:
    ticket = bench.submit()
    bench.never()

    def check(_: LocalJob) -> Verdict:
        if lost:
            bench.forget()
        else:
            bench.take_away()
        return LATER

    bench.door.act = check
    assert bench.deliver(gen=ticket.gen).end is End.IGNORED
    assert [one["answer"] for one in named(logs, "defer_ignored")] == ["unknown" if lost else "stale"]


def test_nothing_is_paid_for_that_could_not_be_noted(bench: Bench) -> None:
    ticket = bench.submit()
    causes: list[str | None] = []

    def act(job: LocalJob, _: Abort) -> Result:
        with bench.away(), pytest.raises(InfraError) as caught:
            bench.cases.spend(job, NOW)
        causes.append(caught.value.cause)
        result = result_of(BROKEN, spent=False)
        bench.cases.finish(job, result)
        return result

    bench.attempt(act)
    assert bench.deliver(gen=ticket.gen).end is End.AGAIN
    assert causes == ["store-unreachable"]


def test_the_end_waits_for_a_store_that_is_away(bench: Bench, logs: Logs) -> None:
    bench.submit()

    def back() -> None:
        until(lambda: len(named(logs, "end_untold")) > 1, "two tries")
        bench.server.start()

    def act(job: LocalJob, _: Abort) -> Result:
        bench.server.stop()
        returning.start()
        bench.cases.finish(job, result_of(Completed()))
        return result_of(Completed())

    returning = threading.Thread(target=back)
    bench.attempt(act)
    assert bench.deliver().end is End.RETURNED
    returning.join()
    assert (bench.row().state, record_file(bench)) == (JobState.COMPLETED, ("completed", None))


def test_a_worker_that_stops_while_no_server_answers_leaves_the_record(bench: Bench) -> None:
    bench.submit()

    def act(job: LocalJob, _: Abort) -> Result:
        bench.stopping.set()
        with bench.away(), pytest.raises(InfraError):
            bench.cases.finish(job, result_of(Completed()))
        return result_of(Completed())

    bench.attempt(act)
    assert bench.deliver().end is End.IGNORED
    assert record_file(bench) == ("completed", None)
    # Its next start settles the row by the job directory.
    assert bench.row().state is JobState.ACTIVE


def test_what_even_the_end_of_a_broken_attempt_could_not_store_frees_slot_and_folder(bench: Bench) -> None:
    ticket = bench.submit()

    def act(*_: object) -> Result:
        bench.server.stop()
        bench.stopping.set()
        raise KeyboardInterrupt

    bench.attempt(act)
    try:
        with pytest.raises(InfraError):
            bench.deliver(gen=ticket.gen)
    finally:
        bench.server.start()
    assert (bench.leases.all(), bench.door.inside) == ([], [])
    assert record_file(bench) == ("failed", "infra")


def test_progress_of_a_running_job_is_told(bench: Bench) -> None:
    bench.submit()

    def act(job: LocalJob, _: Abort) -> Result:
        held = bench.leases.get(JOB)
        assert held is not None
        bench.leases.watch()
        held.tell(TurnEnded(turns=2, tokens=9))
        bench.leases.watch()
        bench.cases.finish(job, result_of(Completed()))
        return result_of(Completed())

    bench.attempt(act)
    bench.deliver()
    assert bench.store.read_progress(JOB) == (2, 9)


def test_jobs_in_one_folder_run_one_after_the_other(bench: Bench) -> None:
    bench.submit()
    bench.submit("local-2")
    inner: list[End] = []

    def act(job: LocalJob, _: Abort) -> Result:
        inner.append(bench.deliver("local-2").end)
        bench.cases.finish(job, result_of(Completed()))
        return result_of(Completed())

    bench.attempt(act)
    assert bench.deliver().end is End.RETURNED
    assert inner == [End.AGAIN]
    assert bench.row("local-2").why == "scope-busy"
    assert job_of("local-2").folder == job_of(JOB).folder


def test_the_place_of_a_record_is_kept_until_the_record_is_written(bench: Bench) -> None:
    bench.submit()

    def act(job: LocalJob, _: Abort) -> Result:
        bench.records.reserve(job.id)
        result = result_of(Completed())
        bench.cases.finish(job, result)
        return result

    bench.attempt(act)
    assert bench.deliver().end is End.RETURNED
    assert os.listdir(bench.records.folder) == [f"{JOB}.json"]


@pytest.mark.parametrize("breaks", [False, True])
def test_without_a_record_nothing_of_its_place_is_left(bench: Bench, breaks: bool) -> None:
    """A deferral, and an end that this worker does not write because it lost the job."""
    bench.submit()

    def act(job: LocalJob, abort: Abort) -> Result | Defer:
        bench.records.reserve(job.id)
        assert len(os.listdir(bench.records.folder)) == 1
        if not breaks:
            return LATER
        abort.set(AbortReason.LEASE_LOST)
        return result_of(Completed())

    bench.attempt(act)
    bench.deliver()
    assert os.listdir(bench.records.folder) == []

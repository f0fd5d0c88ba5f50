"""`cancel` in every state of a job, with the worker's answers given by hand."""

import time
from datetime import UTC, datetime

import pytest

from pidispatch.cli.cancel import POLL_S, Cancel, Told
from pidispatch.jobs.rows import Deferred, JobState
from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Aborted, Completed, InfraFailed
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.verdict import Why
from tests.integration.cli.bench import WORKER, Bench, Script, nothing
from tests.support.clock import FakeClock

JOB = "local-1"
LATER = datetime(2026, 1, 1, 13, tzinfo=UTC)
#: One look, and four pauses of patience.
LIMITS = Limits(cancel_wait_s=4 * POLL_S)


def _cancel(bench: Bench, script: Script | None = None) -> Told:
    return Cancel(bench.store, "the server", LIMITS, FakeClock(LATER), script or Script([]))(JOB)


def _requested(bench: Bench) -> bool:
    return bench.store.cancel_requested([JOB]) == {JOB}


def test_a_job_that_waits_is_taken_back(bench: Bench) -> None:
    bench.submit()
    told = _cancel(bench)
    assert (told.done, told.status, told.state) == (True, "cancelled", "cancelled")
    assert "never ran: nothing was spent" in told.text
    assert bench.state() is JobState.CANCELLED
    record = bench.store.record_of(bench.row())
    assert record is not None
    assert (record.outcome, record.reason, record.exit_code) == ("policy", "operator-cancel", None)
    assert (record.budget_reserved, record.ended_at) == (False, LATER)
    assert bench.row().recorded is False


def test_a_job_that_is_held_is_taken_back(bench: Bench) -> None:
    bench.submit()
    assert isinstance(bench.store.defer(bench.take(), 60_000, Why.SCOPE_BUSY), Deferred)
    assert _cancel(bench).status == "cancelled"
    assert bench.state() is JobState.CANCELLED


def test_a_job_that_waits_for_its_second_attempt_keeps_what_the_first_one_cost(bench: Bench) -> None:
    bench.submit()
    bench.end(bench.take(), InfraFailed(reason=Reason.INFRA, cause="oom-killed"))
    told = _cancel(bench)
    assert "Attempt 2 will not come; attempt 1 did run" in told.text
    record = bench.store.record_of(bench.row())
    assert record is not None
    assert record.attempt == 2
    assert [(one.attempt, one.cause) for one in record.attempts] == [(1, "oom-killed")]


def test_a_job_that_runs_is_ended_by_its_worker(bench: Bench) -> None:
    bench.submit()
    bench.take()

    def answer() -> None:
        assert _requested(bench)
        bench.store.acknowledge_cancel(JOB, WORKER)

    told = _cancel(bench, Script([nothing, answer]))
    assert (told.done, told.status, told.state, told.worker) == (True, "acknowledged", "active", WORKER)
    assert f"worker {WORKER} ends job {JOB} in attempt 1 of 2" in told.text
    assert not _requested(bench)


def test_a_worker_that_answers_and_ends_at_once_has_answered(bench: Bench) -> None:
    bench.submit()
    lease = bench.take()

    def answer() -> None:
        bench.store.acknowledge_cancel(JOB, WORKER)
        bench.end(lease, Aborted(reason=Reason.OPERATOR_CANCEL, cause=AbortReason.OPERATOR_CANCEL))

    told = _cancel(bench, Script([answer]))
    assert (told.done, told.status, told.state) == (True, "acknowledged", "completed")


def test_without_an_answer_the_request_is_withdrawn(bench: Bench) -> None:
    bench.submit()
    bench.take()
    script = Script([nothing] * 10)
    told = _cancel(bench, script)
    assert (told.done, told.status, told.state) == (False, "unanswered", "active")
    assert f"is active on worker {WORKER}, which did not answer" in told.text
    assert "nothing was changed" in told.text
    assert script.pauses == 4
    assert not _requested(bench)
    assert bench.state() is JobState.ACTIVE


def test_a_job_that_ends_by_itself_meanwhile_is_not_cancelled(bench: Bench) -> None:
    bench.submit()
    lease = bench.take()
    told = _cancel(bench, Script([lambda: bench.end(lease, Completed())]))
    assert (told.done, told.status, told.state) == (False, "unanswered", "completed")
    assert "ended meanwhile (completed)" in told.text
    assert not _requested(bench)


def test_a_job_that_its_worker_let_go_of_is_cancelled_by_the_request(bench: Bench) -> None:
    bench.submit()
    bench.take()
    told = _cancel(bench, Script([lambda: bench.store.settle(JOB, 1, None, spent=False)]))
    assert (told.done, told.status, told.state) == (True, "cancelled", "cancelled")
    assert not _requested(bench)


def test_a_job_that_vanishes_meanwhile_is_told(bench: Bench) -> None:
    bench.submit()
    bench.take()
    with bench.server.client() as client:
        told = _cancel(bench, Script([client.flushall]))
    assert (told.done, told.status, told.state) == (False, "unanswered", None)
    assert "is gone from the server" in told.text


def test_a_job_that_ended_is_left_alone(bench: Bench) -> None:
    bench.submit()
    bench.end(bench.take(), Aborted(reason=Reason.WORKER_ABORT, cause=AbortReason.SHUTDOWN))
    before = bench.row()
    told = _cancel(bench)
    assert (told.done, told.status, told.state) == (False, "ended", "completed")
    assert "has ended already (completed, worker-abort), and nothing was changed" in told.text
    assert bench.row() == before


def test_a_job_that_nobody_knows(bench: Bench) -> None:
    told = _cancel(bench)
    assert (told.done, told.status, told.state) == (False, "unknown", None)
    assert "the server knows no job local-1" in told.text


def test_an_error_after_the_request_withdraws_it(bench: Bench) -> None:
    bench.submit()
    bench.take()

    def broken(_seconds: float) -> None:
        assert _requested(bench)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Cancel(bench.store, "the server", LIMITS, FakeClock(LATER), broken)(JOB)
    assert not _requested(bench)


def test_a_server_that_goes_away_meanwhile_is_an_error(bench: Bench) -> None:
    bench.submit()
    bench.take()
    try:
        with pytest.raises(InfraError, match="does not answer"):
            _cancel(bench, Script([bench.server.stop]))
    finally:
        bench.server.start()


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_verb(bench: Bench, form: list[str]) -> None:
    bench.submit()
    # Whatever else is wrong with the settings.
    done = bench.program.run("cancel", JOB, *form, PI_MAX_TURNS="03", PI_EGRESS="perhaps")
    assert done.code == 0, done.err
    assert bench.state() is JobState.CANCELLED
    if form:
        assert done.document == {
            "jobId": JOB,
            "cancelled": True,
            "status": "cancelled",
            "state": "cancelled",
            "worker": None,
            "message": done.document["message"],
        }
    else:
        assert done.out == f"{done.out.strip()}\n"
        assert done.out.startswith(f"job {JOB} is cancelled. ")
    again = bench.program.run("cancel", JOB, *form)
    assert again.code == 1
    if form:
        assert (again.document["cancelled"], again.document["status"]) == (False, "ended")
    else:
        assert (again.out, "has ended already (cancelled" in again.err) == ("", True)


def test_a_server_that_does_not_answer_is_told_within_seconds(bench: Bench) -> None:
    bench.server.freeze()
    try:
        begun = time.monotonic()
        done = bench.program.run("cancel", JOB)
        took = time.monotonic() - begun
    finally:
        bench.server.thaw()
    assert done.code == 1
    assert f"{bench.server.url} does not answer" in done.err
    # Two seconds for the answer, and what a program takes to start.
    assert took < 5


def test_our_own_server_is_not_started_for_it(bench: Bench) -> None:
    done = bench.program.run("cancel", JOB, VALKEY_URL=None)
    assert done.code == 1
    assert "does not run, and this does not start it" in done.err
    assert "pi-dispatch worker" in done.err
    assert done.out == ""

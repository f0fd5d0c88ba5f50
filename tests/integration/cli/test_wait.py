"""What one who waits for a job sees, look by look, while a worker moves it through the store."""

import io
from collections.abc import Callable
from datetime import timedelta

import pytest
from rich.console import Console

from pidispatch.cli.ended import Ended
from pidispatch.cli.view import Live
from pidispatch.cli.wait import RECORD_LOOKS, Waiter
from pidispatch.jobs.endings import cancelled_record
from pidispatch.jobs.rows import Deferred, Lease
from pidispatch.values.errors import InfraError
from pidispatch.values.outcome import Completed, InfraFailed
from pidispatch.values.reason import Reason
from pidispatch.values.verdict import Why
from tests.integration.cli.bench import NOW, Bench, Script, nothing

JOB = "local-1"


def _follow(bench: Bench, *steps: Callable[[], object]) -> tuple[Ended | None, list[str], Script]:
    """Wait while `steps` happen, one between two looks; how it ended, what was said, and the pauses it took."""
    stream, script = io.StringIO(), Script(steps)
    live = Live(Console(file=stream, width=300), None)
    ended = Waiter(bench.store, nothing, bench.records, live, script).follow(JOB)
    return ended, stream.getvalue().splitlines(), script


def test_from_the_queue_to_the_end(bench: Bench) -> None:
    bench.submit()
    lease: list[Lease] = []
    ended, said, _ = _follow(
        bench,
        lambda: lease.append(bench.take()),
        nothing,
        lambda: bench.store.spend(lease[0]),
        lambda: bench.store.progress(JOB, 1, 1200),
        lambda: bench.store.progress(JOB, 2, 3400),
        lambda: bench.end(lease[0], Completed()),
    )
    assert said == [
        "waiting in pi-jobs",
        "attempt 1 of 2 runs on build-1",
        "turn 1: 1,200 tokens so far",
        "turn 2: 3,400 tokens so far",
    ]
    assert ended is not None
    assert ended.exit_code == 0
    assert ended.result is not None
    assert ended.result.diff == "+x\n"
    assert ended.path == str(bench.records.record_path(JOB))
    assert ended.record_error is None


def _put_off(bench: Bench, why: Why) -> None:
    assert isinstance(bench.store.defer(bench.take(), 5000, why), Deferred)


def test_through_deferrals_and_a_retry(bench: Bench) -> None:
    bench.submit()
    lease: list[Lease] = []
    failed = InfraFailed(reason=Reason.INFRA, cause="oom-killed")
    ended, said, _ = _follow(
        bench,
        lambda: _put_off(bench, Why.SCOPE_BUSY),
        lambda: _put_off(bench, Why.SCOPE_BUSY),
        lambda: _put_off(bench, Why.HOST_BUSY),
        lambda: _put_off(bench, Why.QUIET_HOURS),
        lambda: bench.end(bench.take(), failed),
        lambda: lease.append(bench.take()),
        nothing,
        lambda: bench.end(lease[0], failed),
    )
    assert len(said) == 6
    assert said[0] == "waiting in pi-jobs"
    assert said[1].startswith("deferred until ")
    assert said[1].endswith("Z: another job works in the same folder")
    assert said[2].endswith("Z: all job slots of the machine are taken")
    assert said[3].endswith("Z: the quiet hours of its folder last until then")
    assert said[4].startswith("attempt 1 of 2 failed (infra/oom-killed); the next comes at ")
    assert said[5] == "attempt 2 of 2 runs on build-1"
    assert ended is not None
    assert ended.exit_code == 1
    assert ended.record.attempt == 2


def test_a_job_that_ended_long_ago_is_shown_at_once(bench: Bench) -> None:
    bench.submit()
    bench.end(bench.take(), Completed())
    ended, said, script = _follow(bench)
    assert ended is not None
    assert (said, script.pauses) == ([], 0)


def test_what_is_no_longer_told_is_taken_from_the_record(bench: Bench) -> None:
    bench.submit()
    record = bench.end(bench.take(), InfraFailed(reason=Reason.CONTAINER_DETACHED), told=False)
    bench.end(bench.take(), InfraFailed(reason=Reason.CONTAINER_DETACHED), told=False)
    ended, _, _ = _follow(bench)
    assert ended is not None
    assert ended.result is None
    assert (ended.record.reason, ended.record.attempt) == (record.reason, 2)
    assert ended.path == str(bench.records.record_path(JOB))


def test_what_an_earlier_attempt_told_is_not_taken_for_the_end(bench: Bench) -> None:
    bench.submit()
    record = bench.end(bench.take(), InfraFailed(reason=Reason.INFRA))
    again = bench.take()
    later = record.model_copy(update={"attempt": 2, "started_at": NOW + timedelta(minutes=1)})
    bench.store.fail(again, later, never_started=False)
    bench.store.recorded(JOB, 2)
    ended, _, _ = _follow(bench)
    assert ended is not None
    assert ended.result is None


def test_the_record_is_waited_for_and_not_for_ever(bench: Bench) -> None:
    bench.submit()
    bench.end(bench.take(), Completed(), recorded=False)
    soon, _, script = _follow(bench, nothing, lambda: bench.store.recorded(JOB, 1))
    assert soon is not None
    assert (soon.record_error, script.pauses) == (None, 2)

    bench.submit("local-2")
    bench.end(bench.take("local-2"), Completed(), recorded=False)
    script = Script([nothing] * 100)
    live = Live(Console(file=io.StringIO()), None)
    never = Waiter(bench.store, nothing, bench.records, live, script).follow("local-2")
    assert never is not None
    assert never.path is None
    assert "not written yet" in (never.record_error or "")
    assert script.pauses == RECORD_LOOKS - 1


def test_a_job_that_is_cancelled_while_it_waits_ends_the_wait(bench: Bench) -> None:
    bench.submit()
    row = bench.row()
    record = cancelled_record(row.job, row, NOW, "here")
    ended, _, script = _follow(bench, lambda: bench.store.cancel(JOB, record))
    assert ended is not None
    assert (ended.exit_code, ended.record, ended.result) == (2, record, None)
    # A worker's sweep writes it, later.
    assert "not written yet" in (ended.record_error or "")
    assert script.pauses == 1


def test_a_job_whose_worker_is_lost_ends_the_wait(bench: Bench) -> None:
    bench.submit()
    lease = bench.take()
    bench.store.spend(lease)
    ended, _, script = _follow(bench, lambda: bench.store.settle(JOB, 1, None, spent=True))
    assert ended is not None
    assert (ended.exit_code, ended.record.reason, ended.result) == (1, "worker-lost", None)
    assert script.pauses == 1


def test_whoever_is_sent_away_changes_nothing(bench: Bench) -> None:
    bench.submit()
    before = bench.row()
    ended, said, _ = _follow(bench)
    assert ended is None
    assert said == ["waiting in pi-jobs"]
    assert bench.row() == before


def test_a_job_that_the_store_lost_is_looked_for_on_the_disk(bench: Bench) -> None:
    with pytest.raises(InfraError, match="knows no job local-1 any more") as error:
        _follow(bench)
    assert error.value.cause == "job-gone"
    bench.submit()
    record = bench.end(bench.take(), Completed())
    with bench.server.client() as client:
        client.flushall()
    ended, _, _ = _follow(bench)
    assert ended == Ended(record, path=str(bench.records.record_path(JOB)))


def test_a_server_that_goes_away_is_waited_for(bench: Bench) -> None:
    bench.submit()
    lease = bench.take()
    ended, said, _ = _follow(
        bench, bench.server.stop, nothing, nothing, bench.server.start, nothing, lambda: bench.end(lease, Completed())
    )
    assert ended is not None
    assert said.count("the server does not answer; a job that runs goes on, and so does this wait") == 1
    assert said[-1] in ("the server answers again", "attempt 1 of 2 runs on build-1")
    assert said.count("the server answers again") == 1


def test_a_server_of_our_own_is_brought_back(bench: Bench) -> None:
    bench.submit()
    live = Live(Console(file=io.StringIO()), None)

    def bring_back() -> None:
        bench.server.start()
        raise InfraError("what cannot be done now is tried again", "server-not-started")

    script = Script([bench.server.stop, nothing, lambda: bench.end(bench.take(), Completed())])
    ended = Waiter(bench.store, bring_back, bench.records, live, script).follow(JOB)
    assert ended is not None
    assert ended.exit_code == 0

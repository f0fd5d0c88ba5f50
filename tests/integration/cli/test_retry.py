"""`retry` of jobs in every state, with the worker's moves made by hand."""

import json
from contextlib import closing
from dataclasses import replace

import pytest

from pidispatch.cli.main import _run
from pidispatch.jobs.endings import cancelled_record
from pidispatch.jobs.rows import JobState, Lease
from pidispatch.jobs.store import JobStore
from pidispatch.server.address import Address
from pidispatch.server.client import connect
from pidispatch.values.job import LocalJob
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Aborted, Completed, InfraFailed, Outcome, Refused
from pidispatch.values.reason import AbortReason, Reason
from tests.integration.cli.bench import NOW, Bench
from tests.support.program import Ran
from tests.support.rows import local_of

BROKEN = InfraFailed(reason=Reason.INFRA, cause="exit-1")


def retried(bench: Bench, *arguments: str) -> Ran:
    """The verb, as a program."""
    return bench.program.run("retry", "local-1", *arguments)


def ended(bench: Bench, outcome: Outcome) -> Lease:
    """`local-1` with its last attempt ended like this."""
    bench.submit()
    lease = bench.take()
    bench.end(lease, outcome)
    if outcome is BROKEN:
        lease = bench.take()
        bench.end(lease, outcome)
    return lease


@pytest.mark.parametrize(
    "outcome",
    [
        BROKEN,
        Refused(reason=Reason.JOB_IMAGE_MISSING),
        Aborted(reason=Reason.WORKER_ABORT, cause=AbortReason.SHUTDOWN),
    ],
    ids=["failed", "refused", "aborted"],
)
def test_what_did_not_complete_is_handed_in_again_as_a_job_of_its_own(bench: Bench, outcome: Outcome) -> None:
    ended(bench, outcome)
    ran = retried(bench)
    assert ran.code == 0, ran.err
    job_id = ran.out.strip()
    assert job_id.startswith("retry-")
    assert f"note: {job_id} repeats local-1; it is a run of its own: it counts and is paid for anew" in ran.err
    row = bench.row(job_id)
    first = bench.row().job
    assert row.job == first.model_copy(update={"id": job_id, "retry_of": "local-1"})
    assert (row.state, row.attempt, row.max_attempts, row.queue) == (JobState.QUEUED, 1, 2, "pi-jobs")
    assert "a private task" not in ran.err + ran.out
    record = bench.end(bench.take(job_id), Completed())
    assert record.retry_of == "local-1"


def test_how_a_repetition_ends_says_nothing_of_the_trigger_of_the_first(bench: Bench) -> None:
    missing = Refused(reason=Reason.JOB_IMAGE_MISSING)
    job = LocalJob(id="local-1", folder=bench.repository.path, task="a private task", breaker="nightly")
    with closing(connect(Address.parse(bench.server.url))) as client:
        worker = replace(bench, store=JobStore(client, "pi:", Limits(), breaker_runs=2))
        worker.store.submit(job, queue="pi-jobs")
        worker.end(worker.take(), missing)
        first = retried(bench).out.strip()
        assert (bench.row(first).breaker, bench.row(first).job.breaker) == (None, None)
        worker.end(worker.take(first), missing)
        assert worker.store.paused_triggers() == {}
        # The next one that the trigger itself fires is its second.
        worker.store.submit(job.model_copy(update={"id": "local-2"}), queue="pi-jobs")
        worker.end(worker.take("local-2"), missing)
        assert list(worker.store.paused_triggers()) == ["nightly"]


def test_while_it_is_repeated_it_is_not_repeated_again(bench: Bench) -> None:
    ended(bench, BROKEN)
    first = retried(bench, "--json").document
    second = retried(bench, "--json")
    assert (first["status"], second.document["status"]) == ("submitted", "duplicate")
    assert second.document["jobId"] == first["jobId"]
    assert "the job is repeated already, and that has not ended: this is that job" in second.err
    bench.take(first["jobId"])
    assert retried(bench, "--json").document["status"] == "duplicate"


def test_once_a_repetition_has_failed_another_one_can_be_asked_for(bench: Bench) -> None:
    ended(bench, BROKEN)
    first = retried(bench).out.strip()
    for _ in range(2):
        bench.end(bench.take(first), BROKEN)
    second = retried(bench).out.strip()
    assert second not in (first, "")
    assert bench.row(second).job.retry_of == "local-1"


def test_once_a_repetition_has_completed_nothing_is_repeated(bench: Bench) -> None:
    ended(bench, BROKEN)
    first = retried(bench).out.strip()
    bench.end(bench.take(first), Completed())
    ran = retried(bench)
    assert (ran.code, ran.out) == (1, "")
    assert f"job local-1 was repeated already, and {first} completed" in ran.err


def test_one_that_was_cancelled_while_it_waited(bench: Bench) -> None:
    job = bench.submit()
    bench.store.cancel(job.id, cancelled_record(job, bench.row(), NOW, "host"))
    assert retried(bench).code == 0


def test_a_repetition_can_be_repeated_by_its_own_id(bench: Bench) -> None:
    ended(bench, BROKEN)
    second = retried(bench).out.strip()
    for _ in range(2):
        bench.end(bench.take(second), BROKEN)
    third = bench.program.run("retry", second).out.strip()
    assert bench.row(third).job.retry_of == second


def test_one_that_completed_is_not_repeated(bench: Bench) -> None:
    ended(bench, Completed())
    ran = retried(bench)
    assert ran.code == 1
    assert "job local-1 completed, and nothing was changed" in ran.err
    assert ran.out == ""


@pytest.mark.parametrize("taken", [False, True])
def test_one_that_is_under_way_is_not_repeated(bench: Bench, taken: bool) -> None:
    bench.submit()
    if taken:
        bench.take()
    ran = retried(bench)
    assert ran.code == 1
    state = "active" if taken else "queued"
    assert f"job local-1 is still {state}, and nothing was changed" in ran.err


def test_one_that_nobody_knows(bench: Bench) -> None:
    ran = retried(bench)
    assert ran.code == 1
    assert "the server has no job local-1, or has it no longer" in ran.err


def test_a_folder_with_changes_is_refused_unless_it_is_forced(bench: Bench) -> None:
    ended(bench, BROKEN)
    (bench.repository.path / "left.txt").write_text("by the first run")
    ran = retried(bench, "--json")
    assert ran.code == 2
    assert (ran.document["status"], ran.document["cause"]) == ("refused", "dirty-tree")
    forced = retried(bench, "--force")
    assert forced.code == 0, forced.err
    assert local_of(bench.row(forced.out.strip())).allow_dirty


def test_the_queue_is_that_of_the_first(bench: Bench) -> None:
    job = bench.submit()
    with bench.server.client() as client:
        client.hset("pi:job:local-1", "queue", "pi-jobs@build-9")
    bench.store.cancel(job.id, cancelled_record(job, bench.row(), NOW, "host"))
    document = retried(bench, "--json").document
    assert document["queue"] == "pi-jobs@build-9"
    assert json.dumps(document).count("private") == 0


def test_an_empty_id_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["retry", ""]) == 1
    assert "JOBID is empty" in capsys.readouterr().err

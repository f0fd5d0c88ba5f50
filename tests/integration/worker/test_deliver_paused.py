"""A ticket of a paused queue: it comes again, and nothing of its job has begun."""

from pidispatch.jobs.pausing import EVERY
from pidispatch.jobs.rows import JobState
from pidispatch.values.outcome import Completed
from pidispatch.worker.delivery import End
from tests.integration.worker.bench import JOB, LIMITS, QUEUE, Bench

Logs = list[dict[str, object]]


def test_it_comes_again_in_its_next_generation(bench: Bench, logs: Logs) -> None:
    bench.submit()
    bench.store.pause([QUEUE])
    bench.never()
    delivery = bench.deliver()
    row = bench.row()
    assert (delivery.end, delivery.record) == (End.AGAIN, None)
    assert (delivery.gen, delivery.delay_ms) == (row.gen, LIMITS.paused_recheck_ms)
    assert (delivery.queue, delivery.label) == (QUEUE, row.label)
    assert (row.state, row.why, row.attempt) == (JobState.DEFERRED, "paused", 1)
    assert (bench.leases.all(), bench.door.inside, bench.records.find(JOB)) == ([], [], None)
    assert [one for one in logs if one["event"] == "paused_deferred"] == [
        {"event": "paused_deferred", "log_level": "info", "jobId": JOB, "queue": QUEUE, "delayMs": 13_000}
    ]


def test_after_the_pause_it_runs(bench: Bench) -> None:
    bench.submit()
    bench.store.pause([EVERY])
    bench.deliver()
    bench.store.resume([EVERY])
    bench.ended_with(Completed())
    assert bench.deliver().end is End.RETURNED
    assert bench.row().state is JobState.COMPLETED

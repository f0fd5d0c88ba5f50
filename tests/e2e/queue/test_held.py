"""Ten thousand held jobs: what they cost, and that they stand in nobody's way."""

import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from pidispatch.jobs.rows import JobState
from pidispatch.values.limits import Limits
from tests.support.held import hold_many, memory
from tests.support.post import Post
from tests.support.server import OwnServer, until

HELD = 10_000
QUEUE = "pi-jobs@w1"
NOBODYS = "pi-jobs@nobody"
#: The real ones; the small ones of other tests would renew and sweep far more often.
REAL = {
    name: getattr(Limits(), name)
    for name in ("visibility_s", "lease_s", "renew_every_s", "sweep_every_s", "unclaimed_s", "overdue_s")
}
Note = Callable[[str, object], None]


@pytest.mark.example("ch5 s9 held jobs", "10,000 held jobs cost little memory, delay no fresh job, and outlive a stop.")
def test_ten_thousand_held_jobs(post: Post, server: OwnServer, note: Note) -> None:
    worker = post.worker(limits=REAL)
    post.await_end(post.submit(post.job()))
    before = memory(worker.process.pid), memory(server.pid)
    begun = time.monotonic()
    # In a queue that nobody consumes, so that its ticket can be read.
    model = post.hold(post.job(), 3600, queue=NOBODYS)
    with closing(server.client()) as client:
        ids = hold_many(client, post.prefix, model, QUEUE, HELD)
        until(lambda: client.hlen(f"{post.prefix}unacked") >= HELD, "the worker to hold them all", 60)
        note("fetched_s", round(time.monotonic() - begun, 1))
        after = memory(worker.process.pid), memory(server.pid)
        each = {
            name: (one - other) / HELD for name, one, other in zip(("worker", "server"), after, before, strict=True)
        }
        note("bytes_each", {name: round(value) for name, value in each.items()})
        assert each["server"] <= 4 * 1024
        assert each["worker"] <= 12 * 1024

        fresh = post.submit(post.job())
        row = post.await_end(fresh)
        assert row.state is JobState.COMPLETED
        assert row.acquired_ms is not None
        note("fresh_ms", row.acquired_ms - row.created_ms)
        assert row.acquired_ms - row.created_ms <= 1000

        begun = time.monotonic()
        assert worker.stop() == 0
        took = time.monotonic() - begun
        note("stopped_s", round(took, 1))
        assert took <= 15
        assert client.hlen(f"{post.prefix}unacked") == 0
        assert client.zcard(f"{post.prefix}jobs:due") == HELD
    assert sorted(post.tickets(QUEUE)) == sorted(ids)
    due = post.row(ids[-1]).due_ms
    assert due is not None
    assert datetime.fromtimestamp(due / 1000, UTC) > datetime.now(UTC) + timedelta(minutes=50)
    # Each of them is what a worker takes for a job of its own.
    assert post.row(ids[-1]).job.id == ids[-1]

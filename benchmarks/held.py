"""What a worker and its server need: idle, and with ten thousand jobs that sleep."""

import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from statistics import median

from benchmarks.deployment import PREFIX, WORKER, Deployment, deployment, end
from benchmarks.dispatch import SLOTS
from benchmarks.measure import Quantity
from pidispatch.jobs.producer import publish
from pidispatch.jobs.rows import Acquired, Deferred
from pidispatch.values.verdict import Why
from tests.support.held import hold_many, memory
from tests.support.server import until

HELD = 10_000
STARTS = 3
FRESH = 5
_QUEUE, _NOBODYS = f"pi-jobs@{WORKER}", "pi-jobs@nobody"
_SLEEP_MS = 3_600_000
_FETCH_S = 120.0


def held_jobs() -> Iterator[Quantity]:
    """The idle worker, bytes per held job, a fresh job beside them, and the worker's stop with all of them."""
    with deployment(SLOTS) as place:
        idle = [_idle(place) for _ in range(STARTS)]
        worker = place.worker()
        place.submit(place.job())
        place.await_records(1)
        before = memory(worker.pid), _used(place)
        hold_many(place.client, PREFIX, _model(place), _QUEUE, HELD)
        until(lambda: place.client.hlen(f"{PREFIX}unacked") >= HELD, "the worker to hold them all", _FETCH_S)
        after = memory(worker.pid), _used(place)
        fresh = [_fresh(place, number) for number in range(FRESH)]
        began = time.perf_counter()
        worker.terminate()
        code = worker.wait(_FETCH_S)
        took = time.perf_counter() - began
    if code != 0:
        raise RuntimeError(f"the benchmark's own worker ended with {code}")
    each = [(one - other) / HELD for one, other in zip(after, before, strict=True)]
    yield Quantity("idle worker", "resident memory after its start", "MB", STARTS, median(idle) / 1e6, bound=120)
    count = f"one of {HELD:,} held jobs"
    yield Quantity(f"{count}, worker", "resident memory", "B", 1, each[0], bound=12 * 1024)
    yield Quantity(f"{count}, server", "used memory", "B", 1, each[1], bound=4 * 1024)
    yield Quantity("fresh job beside them", "submit to lease", "ms", FRESH, median(fresh), bound=1000)
    yield Quantity("stop with them", "SIGTERM to exit", "s", 1, took, bound=15)


def _idle(place: Deployment) -> int:
    worker = place.worker()
    used = memory(worker.pid)
    end(worker)
    return used


def _used(place: Deployment) -> int:
    return int(place.client.info("memory")["used_memory"])


def _model(place: Deployment) -> str:
    """A job that a gate put to sleep, as a worker does it, with its ticket where nobody fetches it."""
    job, store = place.job(), place.store
    store.submit(job, queue=_NOBODYS)
    acquired = store.acquire(job.id, 0, f"gate##{secrets.token_hex(8)}")
    assert isinstance(acquired, Acquired), acquired
    told = store.defer(acquired.lease, _SLEEP_MS, Why.HOST_BUSY)
    assert isinstance(told, Deferred), told
    row = store.row(job.id)
    assert row is not None, job.id
    publish(place.app, row.ticket, datetime.now(UTC) + timedelta(milliseconds=told.delay_ms))
    return job.id


def _fresh(place: Deployment, number: int) -> float:
    """Milliseconds by the server's clock from a new job's row to its lease."""
    job_id = place.submit(place.job(number))
    place.await_records(number + 2)
    row = place.store.row(job_id)
    assert row is not None, job_id
    assert row.acquired_ms is not None, row
    return row.acquired_ms - row.created_ms

"""What the queue adds to a job, beside a bare Celery task on the same server: submitting, waiting, being refused."""

import os
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from statistics import median

from benchmarks.deployment import PREFIX, ROUND_S, Deployment, deployment
from benchmarks.measure import Figure, Quantity, figure
from pidispatch.values.reason import Reason
from tests.support.program import PROGRAM
from tests.support.server import until

#: As PI_CONCURRENCY is by default.
SLOTS = 3
ROUNDS, JOBS = 7, 300
SAMPLES = 200
STATUS_RUNS, STATUS_BOUND_MS = 30, 400
LEAST_RATIO = 0.4
_REASON = Reason.PROVIDER_UNCONFIGURED
#: Part of the jobs of a round that must not have been put off.
_LEAST_STRAIGHT = 0.5


@dataclass
class Rates:
    """A second's worth of each, by round."""

    submits: list[float] = field(default_factory=list)
    jobs: list[float] = field(default_factory=list)


def dispatch() -> Iterator[Figure | Quantity]:
    """Submits, the way from submit to acquire, refusals before spend, and `pi-dispatch status` beside all this."""
    with deployment(SLOTS) as place:
        place.bare_worker()
        place.worker()
        place.celery_worker("written", "-Q", "written")
        bare, ours = Rates(), Rates()
        written = []
        for number in range(ROUNDS):
            bare_round(place, bare, number)
            round_of(place, ours, number, _REASON)
            written.append(_written_round(place, number))
        _require_index(place, ROUNDS * JOBS)
        waited, started = _latencies(place)
        status = [_status(place) for _ in range(STATUS_RUNS)]
    yield rate("submits", "row and ticket beside a bare `delay`, a worker at work", ours.submits, bare.submits, None)
    what = "from before submit to the lease, in an idle worker, beside publish to start of a bare task"
    yield figure("submit to acquire", what, waited, started, None)
    what = f"jobs from the first submit to the last record, all {_REASON}, beside bare tasks"
    yield rate("early refusals", what, ours.jobs, bare.jobs, LEAST_RATIO)
    what = "the same jobs taken, ended, recorded and indexed by a bare task that checks nothing, beside bare tasks"
    # The first one waits for its worker.
    yield rate("jobs only written down", what, written[1:], bare.jobs, None)
    yield figure("pi-dispatch status", "process start to exit", status, None, STATUS_BOUND_MS)


def rate(name: str, what: str, ours: Sequence[float], bare: Sequence[float], least: float | None) -> Quantity:
    """Jobs a second, judged by the baseline's."""
    return Quantity(name, what, "1/s", len(ours), median(ours), baseline=median(bare), least_ratio=least)


def bare_round(place: Deployment, rates: Rates, number: int) -> None:
    """The same with tasks of the bare application."""
    from benchmarks.bare import noop

    end, began = f"end-{number}", time.time()
    for _ in range(JOBS):
        noop.delay()
    rates.submits.append(JOBS / (time.time() - began))
    place.stamp(end)
    rates.jobs.append(JOBS / (place.stamped(end) - began))


def round_of(place: Deployment, rates: Rates, number: int, reason: Reason, count: int = JOBS) -> None:
    """Hand `count` jobs in and see all of them end with `reason`."""
    jobs = [place.job(one) for one in range(count)]
    began = time.time()
    for job in jobs:
        place.submit(job)
    rates.submits.append(count / (time.time() - began))
    place.await_records((number + 1) * count)
    rows = [row for job in jobs if (row := place.store.row(job.id)) is not None and row.reason == reason]
    if len(rows) < count:
        raise RuntimeError(f"{count - len(rows)} of the benchmark's own jobs did not end as {reason}")
    # One that meets another in its folder sleeps for seconds, which says nothing of how fast jobs are.
    straight = [row for row in rows if row.gen == 0]
    if len(straight) < _LEAST_STRAIGHT * count:
        raise RuntimeError(f"{count - len(straight)} of {count} jobs met another one in their folder")
    last = max((place.records / f"{row.id}.json").stat().st_mtime for row in straight)
    rates.jobs.append(len(straight) / (last - began))


def _written_round(place: Deployment, number: int) -> float:
    from benchmarks.written import QUEUE, write_down

    jobs = [place.job(one) for one in range(JOBS)]
    began = time.time()
    for job in jobs:
        place.store.submit(job, queue=QUEUE)
        write_down.delay(job.id)
    place.await_records((number + 1) * JOBS, place.written)
    last = max((place.written / f"{job.id}.json").stat().st_mtime for job in jobs)
    return JOBS / (last - began)


def _require_index(place: Deployment, count: int) -> None:
    """Make sure that what was measured wrote the index too."""
    path = place.settings.state_dir / "index.sqlite"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as index:
        (found,) = index.execute("SELECT count(*) FROM attempts").fetchone()
    if found < count:
        raise RuntimeError(f"the index of the runs holds {found} of {count} records")


def _latencies(place: Deployment) -> tuple[list[float], list[float]]:
    """Seconds from before the submit to the lease, and from before the publish to the start; one job at a time."""
    waited, started = [], []
    for number in range(SAMPLES):
        job = place.job(number)
        began = time.time()
        place.submit(job)
        acquired = until(lambda job_id=job.id: _acquired(place, job_id), "the lease", ROUND_S)  # type: ignore[misc]
        waited.append(acquired - began)
        until(lambda: not place.client.zcard(f"{PREFIX}jobs:active"), "the end of the job", ROUND_S)
        began = time.time()
        place.stamp(f"latency-{number}")
        started.append(place.stamped(f"latency-{number}") - began)
    return waited, started


def _acquired(place: Deployment, job_id: str) -> float | None:
    """When the job was taken, in the middle of the millisecond that the server tells."""
    row = place.store.row(job_id)
    return (row.acquired_ms + 0.5) / 1000 if row is not None and row.acquired_ms is not None else None


def _status(place: Deployment) -> float:
    began = time.perf_counter()
    subprocess.run([PROGRAM, "status"], check=True, capture_output=True, env=os.environ | place.environment)
    return time.perf_counter() - began

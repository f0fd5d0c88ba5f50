"""What money and the gates cost: refusals at the cap, quiet hours, round trips of a pickup, many threads at one cap."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Final
from zoneinfo import ZoneInfo

import structlog

from benchmarks.attempt import git_time
from benchmarks.deployment import PREFIX, Deployment, deployment
from benchmarks.dispatch import SLOTS, Rates, bare_round, rate, round_of
from benchmarks.measure import Figure, Quantity, figure
from benchmarks.scratch import scratch
from pidispatch.box.abort import Abort
from pidispatch.box.engine import Engine
from pidispatch.config.clock import SystemClock
from pidispatch.gates.chain import Entered, Gates
from pidispatch.gates.folder import FolderMutex
from pidispatch.gates.host import HostSlots
from pidispatch.gates.pause import PauseWindows
from pidispatch.gates.pause_windows import PauseWindow
from pidispatch.jobs.charges import Ask, Counter, Ledger, Reserved, TurnedAway
from pidispatch.jobs.rows import Acquired, Lease
from pidispatch.jobs.store import JobStore
from pidispatch.money.windows import Window
from pidispatch.runs.attempt import Attempt
from pidispatch.values.job import Job, LocalJob
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason
from pidispatch.values.record import Result
from tests.integration.worker.bench import pickup
from tests.support.server import OwnServer

ROUNDS, JOBS = 5, 60
ALONE = 60
#: Of the bare task.
LEAST_RATIO = 0.15
WINDOWS, PICKUPS, GATES_MS = 100, 500, 1
ROUND_TRIPS = 6
THREADS, EACH, TURNS, LEAST_OF_INCR = 16, 50, 5, 0.5
_ROOM: Final = THREADS * EACH // 2
#: What lets a job come as far as the cap, which is used up.
_TO_THE_CAP: Final = {"ANTHROPIC_API_KEY": "k", "PI_EGRESS": "0", "PI_DAILY_CAP": "1"}


def money() -> Iterator[Figure | Quantity]:
    """All of them."""
    yield from _at_the_cap()
    yield _gates()
    yield from _threads()


def _at_the_cap() -> Iterator[Figure | Quantity]:
    with deployment(SLOTS, **_TO_THE_CAP) as place:
        place.bare_worker()
        place.worker()
        _use_up(place)
        bare, ours = Rates(), Rates()
        for number in range(ROUNDS):
            bare_round(place, bare, number)
            round_of(place, ours, number, Reason.OVER_BUDGET, JOBS)
        whole, git = _alone(place)
    what = f"jobs from the first submit to the last record, all {Reason.OVER_BUDGET}, beside bare tasks"
    yield rate("refusals at the cap", what, ours.jobs, bare.jobs, LEAST_RATIO)
    yield figure("refusal at the cap, alone", "the attempt of one job, its git programs included", whole, None, None)
    yield figure("git of a refusal", "the git programs of the same attempts", git, None, None)


def _use_up(place: Deployment) -> None:
    """Use up the cap of today, and of tomorrow if the day ends meanwhile."""
    now = datetime.now(UTC)
    for instant in (now, now + timedelta(days=1)):
        place.client.set(PREFIX + Window.DAY.key(instant), 1)


def _alone(place: Deployment) -> tuple[list[float], list[float]]:
    """Seconds of attempts one after the other in this process, up to the same refusal, and of their git programs."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    whole, git = [], []
    os.environ["DOCKER_HOST"], before = place.environment["DOCKER_HOST"], os.environ.get("DOCKER_HOST")
    try:
        engine = Engine.connect()
    finally:
        os.environ.pop("DOCKER_HOST") if before is None else os.environ.update(DOCKER_HOST=before)
    full = Refused(reason=Reason.OVER_BUDGET, cause="day")

    def finish(_: Job, result: Result) -> None:
        if result.outcome != full:
            raise RuntimeError(f"the benchmark's own attempt was not refused at the cap: {result.outcome}")

    run = Attempt(
        place.settings,
        lambda: engine,
        finish,
        Limits(),
        SystemClock(),
        place.environment,
        spend=lambda *_: ({}, full),
    )
    with git_time() as seconds:
        for number in range(ALONE):
            seconds.clear()
            began = time.perf_counter()
            run(place.job(number), lambda _: None, Abort())
            whole.append(time.perf_counter() - began)
            git.append(sum(seconds))
    engine.close()
    return whole, git


def _gates() -> Figure:
    """Entering and leaving all gates of a worker, beside as many quiet hours of other folders."""
    zones = [ZoneInfo(name) for name in ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC")]
    windows = tuple(
        PauseWindow.model_validate(
            {"scope": f"/srv/site-{number}" if number else "*", "from": "22:00", "to": "06:00", "tz": zone.key}
        )
        for number, zone in ((one, zones[one % len(zones)]) for one in range(WINDOWS))
    )
    noon = datetime(2026, 5, 4, 12, tzinfo=UTC)
    with scratch() as folder:
        limits = Limits()
        gates = Gates((PauseWindows(lambda: windows, limits), HostSlots(lambda: SLOTS, limits), FolderMutex(limits)))
        job = LocalJob(id="local-1", folder=Path(folder), task="x")
        samples = []
        for _ in range(PICKUPS):
            began = time.perf_counter()
            entered = gates.enter(job, noon)
            if not isinstance(entered, Entered):
                raise RuntimeError(f"the benchmark's own job was not let in: {entered}")
            entered.leave()
            samples.append(time.perf_counter() - began)
    return figure("gates", f"{WINDOWS} quiet hours, a slot and the folder, in and out", samples, None, GATES_MS)


def _threads() -> Iterator[Quantity]:
    """Threads that reserve on one key with room for half of them, beside as many that count without a question."""
    ours, bare = [], []
    with (
        scratch() as folder,
        OwnServer("valkey", Path(folder) / "server") as server,
        server.client() as client,
    ):
        yield _pickup(server, Path(folder))
        for turn in range(TURNS):
            store = JobStore(client, f"{PREFIX}{turn}:", Limits())
            leases = [[_leased(store, f"local-{one}-{number}") for number in range(EACH)] for one in range(THREADS)]
            bare.append(_all_at_once(lambda _: bool(client.incr("counter")), leases, THREADS * EACH))
            ours.append(_all_at_once(_reserving(store), leases, _ROOM))
    what = f"reservations a second of {THREADS} threads on one key, half of them admitted, beside INCR of the same"
    yield Quantity("reservations", what, "1/s", TURNS, median(ours), baseline=median(bare), least_ratio=LEAST_OF_INCR)


def _pickup(server: OwnServer, folder: Path) -> Quantity:
    """What one admitted pickup sends to the server, with a cap on everything that can have one."""
    record, asked = pickup(server, folder)
    if len(record.charged or {}) != 4:
        raise RuntimeError(f"the benchmark's own pickup was not counted in every window: {record}")
    what = "what our own code sends for one job that runs, without renewals"
    return Quantity("round trips of a pickup", what, "", 1, asked, bound=ROUND_TRIPS)


def _leased(store: JobStore, job_id: str) -> Lease:
    store.submit(LocalJob(id=job_id, folder=Path("/srv/site"), task="x"), queue="pi-jobs")
    acquired = store.acquire(job_id, 0, f"w#e#{job_id}")
    assert isinstance(acquired, Acquired), acquired
    return acquired.lease


def _reserving(store: JobStore) -> Callable[[Lease], bool]:
    """What asks for one lease under a cap that has room for half of all, and says whether it was admitted."""
    counter = Counter(window="day", key="budget:of-all", ttl_ms=60_000, cap=_ROOM)
    ask = Ask(ledgers=(Ledger(counters=(counter,), soft_pct=None),), tokens=None)

    def reserve(lease: Lease) -> bool:
        found = store.spend(lease, ask)
        assert isinstance(found, Reserved | TurnedAway), found
        return isinstance(found, Reserved)

    return reserve


def _all_at_once(act: Callable[[Lease], bool], leases: list[list[Lease]], admitted: int) -> float:
    """Calls a second of a thread for each list, which begin together; of them `admitted` must have said yes."""
    gate = threading.Barrier(len(leases) + 1)

    def one(own: list[Lease]) -> int:
        gate.wait()
        return sum(map(act, own))

    with ThreadPoolExecutor(len(leases)) as pool:
        waiting = [pool.submit(one, own) for own in leases]
        gate.wait()
        began = time.perf_counter()
        yes = sum(each.result() for each in waiting)
        took = time.perf_counter() - began
    if yes != admitted:
        raise RuntimeError(f"{yes} were admitted where {admitted} had room")
    return sum(map(len, leases)) / took

"""Plays a plan: jobs come, some are cancelled, faults happen, and then it is quiet until everything has settled."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from redis.exceptions import RedisError

from pidispatch.values.names import JOB_PREFIX
from tests.soak.faults import Faults
from tests.soak.place import PREFIX, SLOTS, Place
from tests.soak.plan import FOLDERS, WORKERS, Plan, PlannedJob, Script
from tests.soak.watch import Sample, look

#: Seconds of quiet in which everything has to settle.
QUIET_S: Final = 180
#: Seconds between two looks.
LOOK_EVERY_S: Final = 10
#: `pi-dispatch cancel` runs so many times at once at most.
_CANCELS: Final = 3
#: Seconds that the jobs work which show that every slot is free.
_LAST_WORK_S: Final = 6.0
#: What no living or unfinished job may be listed in.
_INDEXES: Final = ("jobs:due", "jobs:active", "jobs:unrecorded", *(f"jobs:queued:pi-jobs@{name}" for name in WORKERS))


@dataclass
class Course:
    """What became of a plan."""

    began: float = field(default_factory=time.time)
    #: Ids that the store took, and those of which nobody knows.
    accepted: set[str] = field(default_factory=set)
    undecided: set[str] = field(default_factory=set)
    told_cancelled: set[str] = field(default_factory=set)
    samples: list[Sample] = field(default_factory=list)
    #: Jobs of the last round, handed in when all was quiet.
    last: list[PlannedJob] = field(default_factory=list)
    #: Seconds from the last fault until all had settled; `None` where it did not.
    settled_s: float | None = None


class Conductor:
    """Plays one plan at a place; `say` is told a line every now and then."""

    def __init__(self, place: Place, plan: Plan, say: Callable[[str], None]) -> None:
        self._place = place
        self._plan = plan
        self._say = say
        self._pause = threading.Event()
        self._ended = threading.Event()
        self._pool = ThreadPoolExecutor(_CANCELS)
        self._cancels: list[Future[None]] = []
        self.faults = Faults(place, self._pause)
        self.course = Course()

    def play(self) -> Course:
        """Play it from its begin to its quiet end. Raises what went wrong in the soak itself."""
        with self._looking():
            self._under_faults()
            self._settle()
            self._last_round()
        return self.course

    def _under_faults(self) -> None:
        with ThreadPoolExecutor(2) as parts:
            played = [parts.submit(self._hand_in), parts.submit(self._break)]
            try:
                for part in played:
                    part.result()
            except BaseException:
                self._pause.set()
                raise
        self._pool.shutdown()
        for cancel in self._cancels:
            cancel.result()

    @contextmanager
    def _looking(self) -> Iterator[None]:
        looking = threading.Thread(target=self._look_again_and_again, name="look", daemon=True)
        looking.start()
        try:
            yield
        finally:
            self._pause.set()
            self._ended.set()
            looking.join()

    def _hand_in(self) -> None:
        for job in self._plan.jobs:
            if self._await(job.at_s):
                return
            self._take(job)
            if job.cancel_after_s is not None:
                self._cancels.append(self._pool.submit(self._cancel, job))

    def _take(self, job: PlannedJob) -> None:
        (self.course.accepted if self._place.hand_in(job, self._pause) else self.course.undecided).add(job.id)

    def _cancel(self, job: PlannedJob) -> None:
        if self._await(job.at_s + (job.cancel_after_s or 0)):
            return
        if self._place.cancel(job.id):
            self.course.told_cancelled.add(job.id)

    def _break(self) -> None:
        for fault in self._plan.faults:
            if self._await(fault.at_s):
                return
            self.faults.carry_out(fault)

    def _await(self, at_s: float) -> bool:
        """Wait for a second of the soak; whether it was broken off meanwhile."""
        return self._pause.wait(max(0.0, self.course.began + at_s - time.time()))

    def _settle(self) -> None:
        """Wait until nothing is left to do, within the bound; what is not done then is for the judge."""
        began = time.monotonic()
        for worker in self._place.workers:
            worker.await_ready()
        while (passed := time.monotonic() - began) < QUIET_S:
            if not self._unsettled():
                self.course.settled_s = passed
                return
            self._pause.wait(0.5)

    def _unsettled(self) -> list[str]:
        """What is still to be done, as far as the server and the engines tell."""
        client = self._place.server.client()
        try:
            indexes: list[str] = [name for name in (*_INDEXES, "jobs:queued:pi-jobs") if client.exists(PREFIX + name)]
            return indexes or self._place.tickets(client) or self._containers()
        except RedisError:
            return ["server"]
        finally:
            client.close()

    def _containers(self) -> list[str]:
        found = (engine.client.api.containers(all=True, filters={"name": JOB_PREFIX}) for engine in self._place.engines)
        return [str(one["Id"]) for containers in found for one in containers]

    def _last_round(self) -> None:
        """A job for every slot of each worker, and one for every folder: nothing may be held any more."""
        now_s = time.time() - self.course.began
        slots = [self._last(now_s, worker, number, _LAST_WORK_S) for worker in WORKERS for number in range(SLOTS)]
        folders = [self._last(now_s, worker, folder, 0.1) for worker in WORKERS for folder in range(SLOTS, FOLDERS)]
        for jobs in (slots, folders):
            self.course.last += jobs
            for job in jobs:
                self._take(job)
            self._settle_last()

    def _last(self, at_s: float, worker: str, folder: int, works_s: float) -> PlannedJob:
        return PlannedJob(at_s, f"local-last-{worker}-{folder}", Script.WORK, works_s, worker, folder)

    def _settle_last(self) -> None:
        began = time.monotonic()
        while self._unsettled() and time.monotonic() - began < QUIET_S:
            self._pause.wait(0.5)

    def _look_again_and_again(self) -> None:
        while not self._ended.is_set():
            sample = look(self._place)
            self.course.samples.append(sample)
            self._say(self._line(sample))
            self._ended.wait(LOOK_EVERY_S)

    def _line(self, sample: Sample) -> str:
        started = [engine.starts.by_job() for engine in self._place.engines]
        records = len(list(self._place.records.glob("*.json"))) if self._place.records.is_dir() else 0
        resident = "  ".join(
            f"{life[0]} {kib / 1024:.0f} MiB {sample.open_files.get(life, 0)} files"
            for life, kib in sorted(sample.resident_kib.items())
        )
        server = "away" if sample.used is None else f"{sample.used / 2**20:.1f} MiB {sum(sample.keys.values())} keys"
        faults = self.faults.done
        return (
            f"{sample.at - self.course.began:6.0f} s  handed in {len(self.course.accepted):5}  recorded {records:5}  "
            f"containers {sum(len(one) for by_job in started for one in by_job.values()):5}  "
            f"lives {sum(len(worker.lives) for worker in self._place.workers):3}  {resident:<40}  "
            f"server {server}  faults {len(faults)}{f', last: {faults[-1].kind}' if faults else ''}"
        )


def together(starts: list[tuple[float, float | None]]) -> int:
    """How many of these ran at the same time at most, by their begins and ends."""
    instants: list[tuple[float, int]] = []
    for began, ended in starts:
        instants += [(began, 1)] if ended is None else [(began, 1), (ended, -1)]
    running = most = 0
    for _, change in sorted(instants):
        running += change
        most = max(most, running)
    return most


def slots_of(course: Course, by_job: dict[str, list[Any]], worker: str) -> int:
    """How many jobs of the last round a worker ran at the same time."""
    ids = {job.id for job in course.last if job.worker == worker and job.works_s == _LAST_WORK_S}
    return together([(one.at, one.ended_at) for job_id, starts in by_job.items() if job_id in ids for one in starts])

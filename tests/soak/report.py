"""What a soak came to: its cases for the judge, what is left at the end, the figures, and the story of a job."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from pidispatch.values.errors import InfraError
from tests.soak.conduct import QUIET_S, Conductor, Course, slots_of
from tests.soak.engines import SoakEngine
from tests.soak.judge import Ask, Case, Record, RowState, Start, Verdict, Violation, judge, miscounted
from tests.soak.place import PREFIX, SLOTS, Place
from tests.soak.plan import Plan, PlannedJob
from tests.soak.trend import Trend, floors, trend
from tests.soak.watch import Sample, unexplained

#: Part of the soak in which everything warms up; it is no part of a trend.
WARM_UP: Final = 0.25
#: What may certainly be added in a minute: KiB and open files of a worker, KiB of the server and keys beside its jobs'.
GROWTH: Final = {"worker_kib": 1024.0, "worker_files": 1.0, "server_kib": 128.0, "other_keys": 0.5}
#: Lines of the workers' logs in the story of a job.
_LINES: Final = 60


class Findings:
    """Everything that was seen of one soak, once its workers have ended and its server and engines still run."""

    def __init__(self, place: Place, plan: Plan, conductor: Conductor) -> None:
        self._place = place
        self._plan = plan
        self._course: Course = conductor.course
        self._faults = conductor.faults.done
        self.starts: dict[str, list[Start]] = defaultdict(list)
        self.asks: dict[str, list[Ask]] = defaultdict(list)
        for engine in place.engines:
            self._add(engine)
        self._jobs = {job.id: job for job in (*plan.jobs, *conductor.course.last)}
        self._records = self._read_records()
        self.cases = [self._case(job) for job in self._jobs.values()]
        self.trends = self._trends()
        self.verdict: Verdict = judge(self.cases)
        self.verdict.violations += self._of_the_whole()

    def _add(self, engine: SoakEngine) -> None:
        for job_id, starts in engine.starts.by_job().items():
            self.starts[job_id] += starts
        for job_id, asks in engine.neighbour.by_job().items():
            self.asks[job_id] += asks

    def _read_records(self) -> dict[str, list[Record]]:
        found: dict[str, list[Record]] = defaultdict(list)
        for path in sorted(self._place.records.glob("*.json")):
            held = json.loads(path.read_text())
            tries = [*held["attempts"], held]
            found[held["jobId"]].append(
                Record(
                    path.name,
                    held["outcome"],
                    held["reason"],
                    held["attempt"],
                    tuple(one["attempt"] for one in held["attempts"]),
                    held["budgetReserved"],
                    {one["attempt"]: one["charged"] or {} for one in tries},
                )
            )
        return found

    def _case(self, job: PlannedJob) -> Case:
        return Case(
            id=job.id,
            script=job.script,
            accepted=job.id in self._course.accepted,
            starts=tuple(self.starts.get(job.id, ())),
            asks=tuple(self.asks.get(job.id, ())),
            records=tuple(self._records.get(job.id, ())),
            row=self._row(job.id),
            cancelled=job.cancel_after_s is not None,
            told_cancelled=job.id in self._course.told_cancelled,
        )

    def _row(self, job_id: str) -> RowState | None:
        try:
            row = self._place.store.row(job_id)
        except InfraError:
            return None
        return None if row is None else RowState(row.state.value, bool(row.recorded), row.attempt)

    def _of_the_whole(self) -> Iterator[Violation]:
        if self._course.settled_s is None:
            yield Violation("left", f"it had not settled after {QUIET_S} s of quiet")
        if self._course.undecided:
            yield Violation("left", f"the store never answered for {len(self._course.undecided)} jobs")
        for job_id in sorted({*self.starts, *self.asks, *self._records} - set(self._jobs)):
            yield Violation("left", "a job that was never handed in left a trace", job_id)
        yield from (Violation("left", what) for what in self._left())
        records = [one for found in self._records.values() for one in found]
        yield from (Violation("money", what) for what in miscounted(self._counters(), records))
        for worker in self._place.workers:
            for life in worker.lives:
                if (fault := life.fault) is not None:
                    yield Violation("worker", f"{worker.name}: {fault}; its log is {life.log}")
        for name, found in self.trends.items():
            if found is not None and found.exceeds(GROWTH[name]):
                yield Violation("growth", f"{name} grows by {found.per_minute:.1f} +- {found.error:.1f} a minute")

    def _left(self) -> Iterator[str]:
        for engine in self._place.engines:
            if engine.starts.broken is not None:
                yield f"nothing counts: {engine.worker} was not followed to its end: {engine.starts.broken}"
            yield from (f"{engine.worker}: {what}" for what in engine.left())
            slots = slots_of(self._course, engine.starts.by_job(), engine.worker)
            if slots < SLOTS:
                yield f"{engine.worker}: of {SLOTS} slots only {slots} were free at the end"
            jobs = self._place.folder / engine.worker / "jobs"
            yield from (f"{engine.worker}: job directory {path.name}" for path in jobs.glob("*job-*"))
        client = self._place.server.client()
        yield from unexplained(client, self._course.accepted)
        yield from (f"ticket of {job_id}" for job_id in self._place.tickets(client))
        client.close()

    def _counters(self) -> dict[str, int]:
        with self._place.server.client() as client:
            names = list(client.scan_iter(f"{PREFIX}budget:*", count=1000))
            amounts: Any = client.mget(names) if names else []
        return {name.removeprefix(PREFIX): int(amount) for name, amount in zip(names, amounts, strict=True)}

    def _trends(self) -> dict[str, Trend | None]:
        began, seconds = self._course.began, self._plan.seconds
        # The last round fills every slot, and is no measure of what went before.
        samples = [one for one in self._course.samples if one.at <= began + seconds]
        seen = [one for one in samples if one.rest is not None and one.at - began >= seconds * WARM_UP]
        series = {
            "worker_kib": _lives(((one.at, one.resident_kib) for one in samples), seconds * WARM_UP),
            "worker_files": _lives(((one.at, one.open_files) for one in samples), seconds * WARM_UP),
            "server_kib": [[(one.at, (one.rest or 0) / 1024) for one in seen]],
            "other_keys": [[(one.at, float(one.other_keys)) for one in seen]],
        }
        return {name: trend(map(floors, found)) for name, found in series.items()}

    def figures(self) -> dict[str, Any]:
        """The figures, for a file."""
        answered = [one for one in self._course.samples if one.used is not None]
        ended = Counter(
            f"{one.outcome} {one.reason or ''}".strip() for found in self._records.values() for one in found
        )
        return {
            "seed": self._plan.seed,
            "seconds": self._plan.seconds,
            "settled_s": self._course.settled_s and round(self._course.settled_s, 1),
            "jobs": len(self._plan.jobs),
            "accepted": len(self._course.accepted - {job.id for job in self._course.last}),
            "last_round": len(self._course.last),
            "outcomes": dict(ended.most_common()),
            "told_cancelled": len(self._course.told_cancelled),
            "records": sum(map(len, self._records.values())),
            "starts": sum(map(len, self.starts.values())),
            "requests": sum(map(len, self.asks.values())),
            "duplicates": self.verdict.count("twice"),
            "lost": self.verdict.count("lost"),
            "violations": len(self.verdict.violations),
            "faults": dict(Counter(one.kind.value for one in self._faults if one.met)),
            "lives": {worker.name: len(worker.lives) for worker in self._place.workers},
            "longest_stop_s": round(max(life.took_s or 0 for one in self._place.workers for life in one.lives), 1),
            "worker_first_last_mib": self._first_and_last(lambda one: one.resident_kib, 1024),
            "worker_first_last_files": self._first_and_last(lambda one: one.open_files, 1),
            "server_first_last_mib": [round((one.used or 0) / 2**20, 2) for one in (answered[0], answered[-1])],
            "keys_first": dict(answered[0].keys),
            "keys_last": dict(answered[-1].keys),
            "growth_a_minute": {
                name: found and {key: round(value, 2) for key, value in asdict(found).items()}
                for name, found in self.trends.items()
            },
            "jobs_a_minute": round(
                60 * len(self._plan.jobs) / (self._plan.seconds + (self._course.settled_s or QUIET_S)), 1
            ),
        }

    def _first_and_last(
        self, of: Callable[[Sample], dict[tuple[str, int], int]], unit: int
    ) -> dict[str, tuple[float, float]]:
        """What was measured of each worker at first and at last, in its last life."""
        found: dict[str, list[float]] = defaultdict(list)
        for one in self._course.samples:
            for (name, _), value in of(one).items():
                found[name].append(round(value / unit, 1))
        return {name: (values[0], values[-1]) for name, values in found.items()}

    def story(self, job_id: str) -> str:
        """All that is known of a job."""
        case = next((one for one in self.cases if one.id == job_id), None)
        seen = sorted(
            [(one.at, repr(one)) for one in self.starts.get(job_id, [])]
            + [(one.at, repr(one)) for one in self.asks.get(job_id, [])]
            + self._logged(job_id)
            + [(one.began, repr(one)) for one in self._faults]
        )
        own = [at for at, what in seen if "Done(" not in what]
        near = [what for at, what in seen if not own or own[0] - 30 <= at <= own[-1] + 30]
        rest = [f"plan: {self._jobs.get(job_id)}", f"judged: {case}"]
        rest += [path.read_text().strip() for path in self._place.records.glob(f"{job_id}*.json")]
        rest.append(f"row: {self._place.store.row(job_id)!r}")
        return "\n  ".join([f"== {job_id}", *rest, *near])

    def _logged(self, job_id: str) -> list[tuple[float, str]]:
        """What the workers logged of it, each line with its instant."""
        found = []
        for path in sorted(self._place.logs.glob("*.log")):
            for line in path.read_text(errors="replace").splitlines():
                if job_id in line and line.startswith("{"):
                    instant = datetime.fromisoformat(json.loads(line)["timestamp"]).timestamp()
                    found.append((instant, f"{path.stem}: {line}"))
        return found[:_LINES]


def _lives(seen: Iterable[tuple[float, dict[tuple[str, int], int]]], warm_s: float) -> list[list[tuple[float, float]]]:
    """What was measured of each process, once it had lived for so many seconds."""
    lives: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for at, values in seen:
        for life, value in values.items():
            lives[life].append((at, value))
    return [[point for point in points if point[0] - points[0][0] >= warm_s] for points in lives.values()]

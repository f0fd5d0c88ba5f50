"""What a soak does and when, all of it drawn from one seed: the jobs, who cancels which, and the faults."""

import random
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

#: The two workers, each at an engine of its own.
WORKERS: Final = ("w1", "w2")
#: The worker that is killed and stopped. The other one lives through everything else, or its memory would tell nothing.
MORTAL: Final = "w1"
#: Folders that all jobs but the refused ones share; few enough that two jobs meet in one now and then.
FOLDERS: Final = 24
#: Seconds between two faults, and those that one may come later.
FAULT_EVERY_S: Final = 20.0
FAULT_LATE_S: Final = 4.0
#: Part of the time at its end in which no job is handed in any more.
_LAST: Final = 0.03


class Script(StrEnum):
    """What a job does once it has asked its neighbour."""

    #: It works for a while and ends by itself.
    WORK = "work"
    #: Its first attempt fails, its second one does not.
    FLAKY = "flaky"
    #: Both of its attempts fail.
    FAIL = "fail"
    #: It ends by a rule of the runner.
    POLICY = "policy"
    #: It never starts: its folder has uncommitted changes.
    REFUSED = "refused"

    @property
    def fails(self) -> bool:
        """Whether its first attempt ends as a failure of the surroundings, which alone is followed by a second one."""
        return self in (Script.FLAKY, Script.FAIL)


#: Of 1000 jobs so many; the rest is `WORK`.
_SHARES: Final = {Script.FLAKY: 20, Script.FAIL: 15, Script.POLICY: 20, Script.REFUSED: 20}
#: Of 1000 jobs of `WORK` so many are cancelled, which run for longer then.
_CANCELLED: Final = 40


class Fault(StrEnum):
    """What goes wrong."""

    WORKER_KILLED = "worker killed"
    WORKER_STOPPED = "worker stopped"
    #: For longer than its leases stand.
    WORKER_FROZEN = "worker frozen"
    SERVER_KILLED = "server killed"
    SERVER_STOPPED = "server stopped"
    SERVER_FROZEN = "server frozen"


#: How often each comes in a round, of which the order is drawn.
_ROUND: Final = {
    Fault.WORKER_KILLED: 3,
    Fault.WORKER_STOPPED: 2,
    Fault.WORKER_FROZEN: 1,
    Fault.SERVER_KILLED: 2,
    Fault.SERVER_STOPPED: 2,
    Fault.SERVER_FROZEN: 1,
}
#: Seconds that it lasts, from and to; a worker is started again at once. A lease stands for 6 s (`tests.soak.limits`).
_LASTS_S: Final = {
    Fault.WORKER_FROZEN: (7.0, 10.0),
    Fault.SERVER_KILLED: (0.5, 6.0),
    Fault.SERVER_STOPPED: (0.5, 6.0),
    Fault.SERVER_FROZEN: (0.5, 6.0),
}
LONGEST_S: Final = max(longest for _, longest in _LASTS_S.values())


@dataclass(frozen=True)
class PlannedJob:
    """One job. Times are seconds since the begin of the soak."""

    at_s: float
    id: str
    script: Script
    #: Seconds it works.
    works_s: float
    #: The worker whose own queue it goes to; `None` for the shared one.
    worker: str | None
    #: Number of its folder.
    folder: int
    #: Seconds after it was handed in; `None` for one that nobody cancels.
    cancel_after_s: float | None = None


@dataclass(frozen=True)
class PlannedFault:
    """One fault."""

    at_s: float
    kind: Fault
    #: Whom it meets, where it meets a worker.
    worker: str
    #: Seconds that the server is away, or that who is frozen stands still.
    lasts_s: float


@dataclass(frozen=True)
class Plan:
    """One soak."""

    seed: int
    #: Seconds with jobs and faults; the quiet end is not in them.
    seconds: float
    jobs: tuple[PlannedJob, ...]
    faults: tuple[PlannedFault, ...]


def make_plan(seed: int, seconds: float, jobs: int, *, calm: bool = False) -> Plan:
    """The plan of `seed`: the same for the same arguments. `calm`: without faults."""
    drawn = random.Random(seed)
    instants = sorted(drawn.uniform(0, seconds * (1 - _LAST)) for _ in range(jobs))
    return Plan(
        seed, seconds, tuple(_job(drawn, at_s) for at_s in instants), () if calm else tuple(_faults(drawn, seconds))
    )


def _job(drawn: random.Random, at_s: float) -> PlannedJob:
    script = _script(drawn)
    cancelled = script is Script.WORK and drawn.randrange(1000) < _CANCELLED
    return PlannedJob(
        at_s=at_s,
        id=f"local-{drawn.getrandbits(64):016x}",
        script=script,
        works_s=round(drawn.uniform(6, 9) if cancelled else drawn.uniform(0.3, 2), 1),
        worker=drawn.choice((None, *WORKERS)),
        folder=drawn.randrange(FOLDERS),
        cancel_after_s=drawn.uniform(0, 4) if cancelled else None,
    )


def _script(drawn: random.Random) -> Script:
    number = drawn.randrange(1000)
    for script, share in _SHARES.items():
        if number < share:
            return script
        number -= share
    return Script.WORK


def _faults(drawn: random.Random, seconds: float) -> list[PlannedFault]:
    faults: list[PlannedFault] = []
    deck: list[Fault] = []
    # The last one has to be over when the quiet begins.
    while (due_s := FAULT_EVERY_S * (len(faults) + 1)) + FAULT_LATE_S + LONGEST_S <= seconds:
        if not deck:
            deck = [kind for kind, count in _ROUND.items() for _ in range(count)]
            drawn.shuffle(deck)
        at_s = due_s + drawn.uniform(0, FAULT_LATE_S)
        lasts_s = drawn.uniform(*_LASTS_S.get(deck[-1], (0, 0)))
        kind = deck.pop()
        worker = drawn.choice(WORKERS) if kind is Fault.WORKER_FROZEN else MORTAL
        faults.append(PlannedFault(at_s, kind, worker, lasts_s))
    return faults

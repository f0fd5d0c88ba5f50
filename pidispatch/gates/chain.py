"""The gates of a worker one after the other: all of them let a job in, or none of them holds anything for it."""

import threading
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from pidispatch.config.log import log
from pidispatch.values.job import Job
from pidispatch.values.outcome import Refused
from pidispatch.values.verdict import Admit, Defer, Verdict


class Gate(Protocol):
    """Something a job must pass before its attempt."""

    def check(self, job: Job, now: datetime, /) -> Verdict:
        """Whether `job` may run now. An `Admit` holds what it needs until `release`; nothing else holds anything."""
        ...

    def release(self, job: Job, /) -> None:
        """Give back what was held for `job`; a second time changes nothing. Never raises."""
        ...


class Entered:
    """A job that passed. Whoever let it in calls `leave` once its record is written."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._lock = threading.Lock()
        self._passed: list[Gate] = []

    def pass_gate(self, gate: Gate) -> None:
        """Note that `gate` holds something for the job."""
        with self._lock:
            self._passed.append(gate)

    def leave(self) -> None:
        """Give everything back, the last first. A second call changes nothing; never raises."""
        with self._lock:
            passed, self._passed = self._passed, []
        for gate in reversed(passed):
            try:
                gate.release(self._job)
            except Exception as error:
                # It must hide no error of the job's own, and keep no other gate from being opened.
                log().error("gate_release_failed", jobId=self._job.id, cause=type(error).__name__)


class Gates:
    """Several gates in their fixed order: what shuts a job out of the machine first, what is narrower last.

    One order for all jobs, so that no two of them can wait for each other. Called from many threads at once.
    """

    def __init__(self, gates: Sequence[Gate]) -> None:
        self._gates = tuple(gates)

    def enter(self, job: Job, now: datetime) -> Entered | Defer | Refused:
        """Let `job` in, or say why not. What a gate raises is raised, after everything taken is given back."""
        entered = Entered(job)
        try:
            for gate in self._gates:
                verdict = gate.check(job, now)
                if not isinstance(verdict, Admit):
                    # What is kept while a job sleeps is what this machine never gets back.
                    entered.leave()
                    return verdict
                entered.pass_gate(gate)
        except BaseException:
            entered.leave()
            raise
        return entered

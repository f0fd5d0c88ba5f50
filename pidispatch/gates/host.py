"""The job slots of the machine: how many jobs run on it at the same time, whatever queue they came from."""

import threading
from collections.abc import Callable
from datetime import datetime

from pidispatch.config.log import log
from pidispatch.values.job import Job
from pidispatch.values.limits import Limits
from pidispatch.values.verdict import Admit, Defer, Verdict, Why


class HostSlots:
    """Counts the jobs of this process. It forgets them with the process, as their containers end with it.

    `limit` is asked at each job and may change while jobs run: one that is lowered ends none of them.
    """

    def __init__(self, limit: Callable[[], int], limits: Limits) -> None:
        self._limit = limit
        self._recheck_ms = limits.scope_busy_recheck_ms
        self._lock = threading.Lock()
        # By their ids, so that a job that is released twice frees no slot of another's.
        self._running: set[str] = set()

    def check(self, job: Job, _: datetime) -> Verdict:
        """Take a slot, or come back later. A job that has one is not let in beside itself."""
        limit = self._limit()
        with self._lock:
            if job.id not in self._running and len(self._running) < limit:
                self._running.add(job.id)
                return Admit()
        log().info("host_busy_deferred", jobId=job.id, delayMs=self._recheck_ms)
        return Defer(why=Why.HOST_BUSY, delay_ms=self._recheck_ms)

    def release(self, job: Job) -> None:
        """Free the job's slot, if it has one."""
        with self._lock:
            self._running.discard(job.id)

    def free(self) -> int:
        """How many slots nobody has."""
        limit = self._limit()
        with self._lock:
            return max(0, limit - len(self._running))

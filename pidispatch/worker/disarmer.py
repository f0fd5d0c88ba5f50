"""The mark of a rule that fires once, written into the triggers file after its job has a record.

The store has set its own mark with the end of the job, so nothing hangs on this one but that people and receivers see
it: a fault is logged, and never more than that.
"""

import threading
from pathlib import Path
from typing import Final

from pidispatch.config.log import log
from pidispatch.jobs.store import JobStore
from pidispatch.triggers.disarm import PATIENT, Mark, disarm
from pidispatch.triggers.writer import Patience
from pidispatch.values.errors import DispatchError
from pidispatch.values.job import ForgeJob, Job
from pidispatch.values.record import RunRecord
from pidispatch.worker.cases import mark_in

#: Types of the rules that can fire once.
_CLOSING: Final = ("issue", "pull_request")
_READ_ONLY: Final = "triggers-read-only"


class Disarmer:
    """Told of every record; one at a time, so that the jobs of one worker do not wait for each other's lock."""

    def __init__(self, store: JobStore, path: Path, patience: Patience = PATIENT) -> None:
        self._store = store
        self._path = path
        self._patience = patience
        self._lock = threading.Lock()
        self._told_read_only = False

    def __call__(self, record: RunRecord, job: Job | None = None) -> None:
        """Mark the rule that fired the job of `record`, where it fires once. Never raises.

        `job` where it is known; else the store is asked for it.
        """
        if record.trigger_type not in _CLOSING:
            return
        try:
            self._spend(record, job)
        except Exception as error:
            # The job has ended and is recorded: nothing here changes that.
            reason = error.cause if isinstance(error, DispatchError) else type(error).__name__
            self._tell_failed(record, reason)

    def _spend(self, record: RunRecord, job: Job | None) -> None:
        if job is None:
            row = self._store.row(record.job_id)
            job = row.job if row is not None else None
        # One that an operator asks for again is no second firing of its rule, which may be armed anew by now.
        if not isinstance(job, ForgeJob) or not job.matched.once or job.retry_of is not None:
            return
        mark = self._mark(record, job)
        with self._lock:
            told = disarm(self._path, job, mark, self._patience)
        index = record.trigger_index
        if told.outcome == "disarmed":
            log().info("trigger_disarmed", jobId=job.id, triggerIndex=index)
        elif told.outcome == "already":
            log().info("trigger_already_disarmed", jobId=job.id, triggerIndex=index)
        elif told.outcome == "unavailable":
            log().warning("trigger_disarm_unavailable", jobId=job.id, triggerIndex=index)
        else:
            self._tell_failed(record, told.reason)

    def _mark(self, record: RunRecord, job: ForgeJob) -> Mark:
        """What the file is to say: as the store, where another job was first, so that its next attempt is let in."""
        first = mark_in(self._store, job)
        if first is not None and first.job_id != job.id:
            return first
        ended = record.ended_at or record.started_at
        return Mark(ended.isoformat().replace("+00:00", "Z") if ended is not None else None, job.id)

    def _tell_failed(self, record: RunRecord, reason: str | None) -> None:
        with self._lock:
            silent = reason == _READ_ONLY and self._told_read_only
            self._told_read_only = self._told_read_only or reason == _READ_ONLY
        if not silent:
            log().error("trigger_disarm_failed", jobId=record.job_id, triggerIndex=record.trigger_index, reason=reason)

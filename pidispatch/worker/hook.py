"""The record of a delivery, written after the end is stored and before its ticket is acknowledged.

First the file, then the index of the files, which its store tells of it, then the mark of a rule that fires once, then
what is to be said of it on the item that the job is about, then the word to the job store that it is written. Killed in
between, the job store has no such word and a sweep does all of it again; a fault of index, mark or comment stops
nothing else.

Called by Celery's signals, which log what a handler raises and go on. What is not written here stays marked in the
store, and a sweep writes it.
"""

import threading
from collections.abc import Callable
from typing import Final

from pidispatch.config.log import log
from pidispatch.jobs.store import JobStore
from pidispatch.runs.records import RecordStore
from pidispatch.values.errors import InfraError
from pidispatch.values.job import Job
from pidispatch.values.outcome import Outcome
from pidispatch.values.record import RunRecord

#: Locks that files of records share by their names: one for all would let every job wait for the others' disk.
_LOCKS: Final = 64


#: Told of a record and of its job, where that is known without asking.
Disarm = Callable[[RunRecord, Job | None], None]
#: Told of a record that is on the disk, and of job and outcome, where those are known without asking.
Comment = Callable[[RunRecord, Job | None, Outcome | None], None]


def unmarked(_record: RunRecord, _job: Job | None) -> None:
    """There is no triggers file."""


def unsaid(_record: RunRecord, _job: Job | None, _outcome: Outcome | None) -> None:
    """Nothing is said anywhere."""


class Recorder:
    """Writes records, and tells the store so. `disarm` and `comment` are told of each, and raise nothing."""

    def __init__(
        self, store: JobStore, records: RecordStore, disarm: Disarm = unmarked, comment: Comment = unsaid
    ) -> None:
        self._store = store
        self._disarm = disarm
        self._comment = comment
        self._records = records
        self._locks = tuple(threading.Lock() for _ in range(_LOCKS))

    def ended(self, record: RunRecord, job: Job | None = None, outcome: Outcome | None = None) -> bool:
        """Write the record of an attempt at `job` that has ended here; whether it is on the disk."""
        return self._write(record, self._records.add, job, outcome)

    def __call__(self, record: RunRecord) -> bool:
        """Write a record that is made later, or elsewhere than where the job ran; whether it is on the disk."""
        return self._write(record, self._records.keep)

    def _write(
        self,
        record: RunRecord,
        put: Callable[[RunRecord], RunRecord],
        job: Job | None = None,
        outcome: Outcome | None = None,
    ) -> bool:
        written = self._put(record, put)
        # Also without it on the disk: the store has it, and a full disk must not let a rule fire again and again.
        self._disarm(record, job)
        if not written:
            return False
        self._comment(record, job, outcome)
        try:
            self._store.recorded(record.job_id, record.attempt)
        except InfraError as error:
            # Written twice is written once: the same record, the same file.
            log().warning("record_unmarked", jobId=record.job_id, cause=error.cause)
        return True

    def _put(self, record: RunRecord, put: Callable[[RunRecord], RunRecord]) -> bool:
        # A fault is logged, and the record stays due in the store.
        try:
            self._records.make()
            # Two attempts at one job may be told at the same time, by the task and by who cancels; the later one stays.
            with self._locks[hash(self._records.record_path(record.job_id)) % _LOCKS]:
                put(record)
        except InfraError as error:
            log().error("run_record_due", jobId=record.job_id, cause=error.cause)
            return False
        return True

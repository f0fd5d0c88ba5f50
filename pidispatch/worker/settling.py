"""What a killed worker left at its engine and on this machine's disk: told to the store first, then recorded.

The store knows what the disk does not: whether the attempt had begun to spend. What had not is queued again, what had
is never run again (docs/explanation/queue.md).
"""

from collections.abc import Callable

from pidispatch.box.engine import Engine
from pidispatch.config.log import log
from pidispatch.config.settings import Settings
from pidispatch.jobs.rows import Row
from pidispatch.jobs.store import JobStore
from pidispatch.runs.events import tell_end
from pidispatch.runs.reaper import Stray, reap
from pidispatch.runs.records import RecordStore
from pidispatch.runs.sweep import Found, sweep
from pidispatch.runs.words import say_settled
from pidispatch.values.clock import Clock
from pidispatch.values.limits import Limits
from pidispatch.values.reason import Reason
from pidispatch.values.record import EarlierAttempt, RunRecord
from pidispatch.worker.hook import Recorder
from pidispatch.worker.sweeper import Sweeper


def unheard(_: str) -> None:
    """Nobody is at a terminal."""


class Settling:
    """Settles, then removes. Called with the engine that this worker alone serves, until nothing is left."""

    def __init__(
        self,
        store: JobStore,
        records: RecordStore,
        record: Recorder,
        sweeper: Sweeper,
        settings: Settings,
        deployment: str,
        limits: Limits,
        clock: Clock,
        say: Callable[[str], None] = unheard,
    ) -> None:
        self._say = say
        self._store = store
        self._records = records
        self._record = record
        self._sweeper = sweeper
        self._settings = settings
        self._deployment = deployment
        self._limits = limits
        self._clock = clock

    def __call__(self, engine: Engine) -> bool:
        """Clear up; whether nothing is left. Raises `InfraError` where the engine does not say what is left there."""
        engine_id = engine.facts().id
        swept = sweep(
            self._settings, lambda: engine, self._limits, self._clock, lambda found: self._found(found, engine_id)
        )
        for one in swept.settled:
            self._say(say_settled(one.job_id, one.target, one.restored, one.kept, replaced=one.replaced))
        failed = reap(
            engine,
            self._deployment,
            self._settings.jobs_dir,
            lambda stray: self._stray(stray, engine_id),
            self._limits,
            self._clock,
        )
        return not failed and not swept.unsettled

    def _found(self, found: Found, engine_id: str) -> None:
        job_id = found.note.job.id
        row = self._store.row(job_id)
        record = found.record(self._settings.worker_name, self._earlier(row))
        self._settle(_counted(record, row), found.started, engine_id)

    def _stray(self, stray: Stray, engine_id: str) -> None:
        row = self._store.row(stray.job_id)
        if row is None:
            # Neither a directory nor a row: of this one nobody knows what it was to do.
            log().warning("stray_unknown", jobId=stray.job_id)
            return
        record = RunRecord.of(row.job, stray.result, self._settings.worker_name, stray.attempt, self._earlier(row))
        self._settle(_counted(record, row), stray.started, engine_id)

    def _settle(self, record: RunRecord, started: bool | None, engine_id: str) -> None:
        """Tell the store; then the record, where it is ours to write. Raises `InfraError`."""
        job_id, attempt = record.job_id, record.attempt
        if self._store.cancel_answer(job_id) is not None:
            # An operator was told that it is cancelled, so that is how it ended.
            cancelled = {"outcome": "policy", "reason": Reason.OPERATOR_CANCEL.value, "cause": "operator-cancel"}
            record = record.model_copy(update=cancelled)
        known = None if started is False else record
        settled = self._store.settle(job_id, attempt, known, spent=bool(started), engine=engine_id)
        log().info("job_settled", jobId=job_id, attempt=attempt, status=settled.status)
        if settled.ticket is not None:
            self._sweeper.announce(settled.ticket)
        if settled.status == "won":
            if record.reason == Reason.WORKER_LOST:
                self._store.count_stall(job_id)
            tell_end(record)
            self._record(record)
        elif settled.status == "completed-telemetry" or (settled.status == "unknown" and started is not False):
            # Without a row the file alone keeps the job from being paid for again.
            self._records.prepare()
            self._records.keep(record)

    def _earlier(self, row: Row | None) -> tuple[EarlierAttempt, ...]:
        """The attempts before the one that is settled, as the store has them."""
        before = self._store.record_of(row) if row is not None and not row.state.terminal else None
        return before.as_earlier if before is not None else ()


def _counted(record: RunRecord, row: Row | None) -> RunRecord:
    """The record with what its attempt was counted for, which the row alone remembers."""
    if row is None or row.attempt != record.attempt or not row.charged:
        return record
    return record.model_copy(update={"charged": row.charged, "budget_reserved": True})

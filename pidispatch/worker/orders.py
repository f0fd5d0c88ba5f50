"""What an operator orders through Celery's own ways, `revoke` and `terminate`: it ends a job by the store's rules."""

from pidispatch.config.clock import SystemClock
from pidispatch.config.log import log
from pidispatch.jobs.endings import cancelled_record
from pidispatch.jobs.rows import JobState
from pidispatch.jobs.store import JobStore
from pidispatch.runs.events import tell_end
from pidispatch.values.errors import InfraError
from pidispatch.worker.hook import Recorder
from pidispatch.worker.leases import Leases


class Orders:
    """Carries them out for the worker named `host`."""

    def __init__(self, store: JobStore, leases: Leases, record: Recorder, host: str) -> None:
        self._store = store
        self._leases = leases
        self._record = record
        self._host = host

    def cancel_waiting(self, job_id: str) -> None:
        """Cancel a job that waits or sleeps, for Celery's own `revoke`. One that runs goes on. Never raises."""
        try:
            row = self._store.row(job_id)
            if row is None or row.state not in (JobState.QUEUED, JobState.DEFERRED):
                return
            record = cancelled_record(row.job, row, SystemClock().now(), self._host)
            cancelled = self._store.cancel(job_id, record)
            if cancelled.status == "stale":
                self.cancel_waiting(job_id)
            elif cancelled.changed:
                log().info("job_cancelled", jobId=job_id)
                tell_end(record)
                self._record(record)
        except InfraError as error:
            log().warning("revoke_unstored", jobId=job_id, cause=error.cause)

    def end_running(self, job_id: str) -> None:
        """End a job that runs here because an operator asks, as `celery control terminate` and Flower do."""
        held = self._leases.get(job_id)
        if held is not None and held.cancel():
            log().info("terminate_requested", jobId=job_id)

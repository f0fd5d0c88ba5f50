"""What every worker does again and again: find jobs, tickets and records that went missing, and tell of pauses."""

from collections.abc import Callable

from pidispatch.config.log import log
from pidispatch.jobs.rows import JobState, Ticket
from pidispatch.jobs.store import JobStore
from pidispatch.runs.events import tell_end
from pidispatch.values.errors import InfraError
from pidispatch.worker.hook import Recorder


class Sweeper:
    """One pass over the store. Any number of workers may do it at the same time."""

    def __init__(self, store: JobStore, publish: Callable[[Ticket], None], record: Recorder) -> None:
        self._store = store
        self._publish = publish
        self._record = record

    def __call__(self) -> None:
        """Sweep once. Raises `InfraError` where the server does not answer."""
        swept = self._store.sweep()
        for job_id in swept.lost:
            log().error("job_lost", jobId=job_id)
            self._store.count_stall(job_id)
        for ticket in (*swept.requeued, *swept.publish):
            self.announce(ticket)
        for job_id in dict.fromkeys((*swept.lost, *swept.unrecorded)):
            try:
                self._complete(job_id)
            except InfraError as error:
                if error.cause == "store-unreachable":
                    raise
                # One row that cannot be read keeps no other from its record.
                log().error("record_incomplete", jobId=job_id, cause=error.cause)
        self._tell_paused()

    def announce(self, ticket: Ticket) -> None:
        """Publish the ticket of a job that has none; what fails is found by a later sweep."""
        try:
            self._publish(ticket)
        except InfraError as error:
            log().warning("ticket_unpublished", jobId=ticket.job_id, cause=error.cause)
        else:
            log().info("ticket_published_again", jobId=ticket.job_id, gen=ticket.gen)

    def _tell_paused(self) -> None:
        """Log which triggers were paused for their runs; of all workers one does. Raises `InfraError`."""
        # Read before it is taken off the list of what is to be told, so that a fault in between loses no word.
        paused = self._store.paused_triggers()
        for trigger in self._store.tripped() if paused else ():
            # One that was resumed before anybody told of it is nobody's business any more.
            if (why := paused.get(trigger)) is not None:
                log().error("trigger_paused", trigger=trigger, runs=why.runs, jobId=why.job_id, reason=why.reason)

    def _complete(self, job_id: str) -> None:
        """Write the record that is missing; of an end that no worker told the log hears here."""
        row = self._store.row(job_id)
        record = self._store.record_of(row) if row is not None else None
        if row is None or record is None:
            return
        if row.record is None or row.state is JobState.CANCELLED:
            tell_end(record)
        self._record(record)

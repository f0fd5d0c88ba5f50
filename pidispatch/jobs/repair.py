"""What puts jobs in order whose worker, ticket or record went missing (docs/explanation/queue.md)."""

from pidispatch.jobs.breaker import said_of_trigger
from pidispatch.jobs.calls import Calls
from pidispatch.jobs.rows import Answer, Settled, Swept, Ticket, ending_state
from pidispatch.values.record import RunRecord


class Repair(Calls):
    """Settling and sweeping."""

    def settle(
        self, job_id: str, attempt: int, record: RunRecord | None, *, spent: bool, engine: str | None = None
    ) -> Settled:
        """End a broken-off attempt, for the one who holds its engine's lock, whoever held the job's lease.

        `record` is what its container came to, where it left a report; `spent` says that it was started. An attempt
        that may have cost something is never followed by another one. With `engine` an attempt that another engine
        took up meanwhile is left alone. Raises `InfraError`.
        """
        told = (
            (
                ending_state(record).value,
                record.model_dump_json(),
                record.reason or "",
                record.cause or "",
                said_of_trigger(record),
            )
            if record
            else ("", "", "", "", "bad")
        )
        status, *ticket = self._script("settle", job_id, attempt, engine or "", int(spent), *told)
        return Settled(status=status, ticket=_ticket(ticket[0]) if ticket else None)

    def sweep(self, rest: bool = True) -> Swept:
        """Find what went missing, at most `Limits.sweep_batch` jobs of each kind. Raises `InfraError`.

        With `rest` no lease counts as run out before the server has been up for long enough to have seen renewals.
        """
        lost, requeued, publish, unrecorded = self._script("sweep", int(rest))
        return Swept(
            lost=tuple(lost),
            requeued=tuple(_ticket(one) for one in requeued),
            publish=tuple(_ticket(one) for one in publish),
            unrecorded=tuple(unrecorded),
        )

    def recorded(self, job_id: str, attempt: int) -> Answer:
        """Say that the record of this attempt is written. Raises `InfraError`."""
        return Answer(self._script("recorded", job_id, attempt))


def _ticket(fields: list[str]) -> Ticket:
    job_id, gen, queue, label = fields
    return Ticket(job_id=job_id, gen=int(gen), queue=queue, label=label)

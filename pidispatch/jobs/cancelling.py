"""Requests to cancel: the one who asks, the worker that hears, and the answer between them."""

from collections.abc import Iterable

from pidispatch.jobs.calls import Calls
from pidispatch.jobs.keys import CANCEL_ANSWER, CANCEL_REQUEST
from pidispatch.jobs.rows import Cancelled
from pidispatch.values.record import RunRecord


class Cancelling(Calls):
    """Cancelling jobs."""

    def cancel(self, job_id: str, record: RunRecord) -> Cancelled:
        """Cancel a job that waits, with `record` as its end; ask the worker of an active one. Raises `InfraError`."""
        told = (record.model_dump_json(), record.reason or "", record.cause or "", record.attempt)
        status, changed = self._script("cancel", job_id, *told)
        return Cancelled(status=status, changed=bool(changed))

    def cancel_requested(self, job_ids: Iterable[str]) -> set[str]:
        """Those of the jobs that somebody asked to cancel. Raises `InfraError`."""
        asked = list(job_ids)
        if not asked:
            return set()
        found = self._ask(lambda: self._client.mget([self._key(CANCEL_REQUEST, one) for one in asked]))
        return {one for one, request in zip(asked, found, strict=True) if request is not None}

    def acknowledge_cancel(self, job_id: str, worker: str) -> None:
        """Answer a request: the job ends by it, and by nothing else. Raises `InfraError`."""
        self._script("acknowledge", job_id, worker)

    def cancel_answer(self, job_id: str) -> str | None:
        """Name of the worker that heard the request; `None` while none did. Raises `InfraError`."""
        found = self._ask(lambda: self._client.get(self._key(CANCEL_ANSWER, job_id)))
        return None if found is None else str(found)

    def withdraw_cancel(self, job_id: str) -> bool:
        """Take back a request that nobody answered; whether one still stood. Raises `InfraError`."""
        return bool(self._ask(lambda: self._client.delete(self._key(CANCEL_REQUEST, job_id))))

"""The delivery that this thread is at: what Celery's signals, which know only ids, are to act on.

The task and all signals of one delivery run in one thread of the pool, one after the other.
"""

import threading

from pidispatch.worker.delivery import Delivery


class Deliveries(threading.local):
    """At most one open delivery a thread."""

    _open: Delivery | None = None

    def open(self, delivery: Delivery) -> None:
        """The delivery whose task is about to end."""
        self._open = delivery

    def of(self, job_id: str | None) -> Delivery | None:
        """The open delivery, where it is of this job."""
        found = self._open
        return found if found is not None and found.job_id == job_id else None

    def close(self) -> Delivery | None:
        """The delivery that was open; none is open from here on."""
        found, self._open = self._open, None
        return found


deliveries = Deliveries()

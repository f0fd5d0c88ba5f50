"""What `terminate` means to a job: its abort is set, and it ends by its own way out, with a record.

The threads pool of Celery cannot end a task. This request class is asked instead
(https://docs.celeryq.dev/en/stable/userguide/tasks.html#custom-task-classes).
"""

from typing import Any

from celery.worker.request import Request

from pidispatch.worker.station import station_of


class JobRequest(Request):
    """A ticket of a job as the worker's consumer holds it."""

    def terminate(self, pool: Any, signal: Any = None) -> None:  # noqa: ARG002 - the signature is given
        """End the running job because an operator asks, as `celery control terminate` and Flower do."""
        station = station_of(self.app) if self.app is not None else None
        if station is not None:
            station.orders.end_running(self.id)

    def cancel(self, pool: Any, signal: Any = None, emit_retry: bool = True) -> None:
        """Nothing: how a job ends that its worker leaves behind is the station's to say."""

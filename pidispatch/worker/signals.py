"""Celery's signals of a task's end, turned into the record and the releases.

The order is Celery's: the task's own signal, `task_postrun`, then the acknowledgement of the ticket
(https://docs.celeryq.dev/en/stable/userguide/signals.html).
"""

from typing import Any

from celery import Celery
from celery.signals import task_failure, task_postrun, task_retry, task_revoked, task_success

from pidispatch.worker.current import deliveries
from pidispatch.worker.station import station_of


def connect(app: Celery) -> None:
    """Connect the handlers, for tasks of `app` only."""

    def record(task_id: str | None) -> None:
        delivery = deliveries.of(task_id)
        station = station_of(app)
        # A deferral has no record; a stale copy was told of no end.
        if delivery is not None and delivery.record is not None and station is not None:
            station.record.ended(delivery.record, delivery.job, delivery.outcome)

    @task_success.connect(weak=False)
    def on_success(sender: Any = None, **_: Any) -> None:
        if sender is not None and sender.app is app:
            record(sender.request.id)

    @task_retry.connect(weak=False)
    def on_retry(sender: Any = None, request: Any = None, **_: Any) -> None:
        if sender is not None and sender.app is app:
            record(request.id)

    @task_failure.connect(weak=False)
    def on_failure(sender: Any = None, task_id: str | None = None, **_: Any) -> None:
        if sender is not None and sender.app is app:
            record(task_id)

    @task_postrun.connect(weak=False)
    def on_postrun(sender: Any = None, **_: Any) -> None:
        if sender is not None and sender.app is app and (delivery := deliveries.close()) is not None:
            delivery.release()

    @task_revoked.connect(weak=False)
    def on_revoked(sender: Any = None, request: Any = None, **_: Any) -> None:
        station = station_of(app)
        if sender is not None and sender.app is app and station is not None and request is not None:
            # A revoke that Celery kept in its own memory: the ticket is gone, so the job must be too.
            station.orders.cancel_waiting(request.id)

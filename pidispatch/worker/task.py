"""The two tasks: a job's ticket, and the tick by which a worker proves to itself that its consumer hears."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from celery import Celery, Task
from celery.exceptions import Reject

from pidispatch.jobs.producer import GEN, TASK, queue, safe_representation
from pidispatch.worker.current import deliveries
from pidispatch.worker.delivery import Delivery, End
from pidispatch.worker.station import Station, station_of
from pidispatch.worker.tick import TICK


class JobFailed(Exception):
    """The last attempt at a job failed. Its text is two fixed words; the record tells the rest."""


if TYPE_CHECKING:
    _Task = Task[Any, Any]
else:
    # Generic for the type checker alone.
    _Task = Task


class JobTask(_Task):
    """A task whose requests can be terminated."""

    Request = "pidispatch.worker.request:JobRequest"
    # Celery's own is 3, also for `retry(max_retries=None)`; a job may be put off any number of times.
    max_retries = None
    # The end of a job is no error of the worker's, and its traceback would only repeat our own lines.
    throws = (JobFailed,)


def register(app: Celery) -> None:
    """Make both tasks known to `app`, and to no other application of this process."""

    @app.task(bind=True, base=JobTask, name=TASK, shared=False)
    def run_job(self: Any, job_id: str) -> str:
        delivery = _station(app).deliver(job_id, _generation(self.request))
        deliveries.open(delivery)
        if delivery.end in (End.AGAIN, End.UNDECIDED):
            _again(self, delivery)
        if delivery.end is End.GIVEN_BACK:
            raise Reject("the worker stops", requeue=True)
        if delivery.end is End.FAILED:
            raise JobFailed(delivery.word)
        return delivery.word

    @app.task(name=TICK, ignore_result=True, shared=False)
    def tick() -> None:
        _station(app).liveness.heard()

    # Seen in Flower it would only hide the jobs.
    tick.send_events = False


def _station(app: Celery) -> Station:
    station = station_of(app)
    assert station is not None, "tasks run in a worker alone"
    return station


def _generation(request: Any) -> int:
    """The ticket's generation; one that carries none is of no generation that there is."""
    text = str((request.headers or {}).get(GEN, ""))
    return int(text) if text.isdecimal() else -1


def _again(task: Any, delivery: Delivery) -> NoReturn:
    """Publish the next ticket by Celery's own retry, which keeps the id, so that Flower shows it as one task.

    Raises Celery's `Retry`, or `Reject` where it could not be published: then the sweep does it.
    """
    if delivery.end is End.UNDECIDED:
        # As it came; its label is given again, because the arguments would be shown otherwise.
        raise task.retry(
            countdown=delivery.delay_ms / 1000,
            headers={GEN: str(delivery.gen)},
            queue=queue(task.request.delivery_info["routing_key"]),
            argsrepr=task.request.argsrepr,
            kwargsrepr="{}",
        )
    raise task.retry(
        # By this machine's clock: the instant in the store is by the server's.
        eta=datetime.now(UTC) + timedelta(milliseconds=delivery.delay_ms),
        headers={GEN: str(delivery.gen)},
        queue=queue(delivery.queue),
        **safe_representation(delivery.job_id, delivery.label),
    )

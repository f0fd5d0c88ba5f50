"""The tick, by which a worker proves to itself that its consumer hears: a task that it sends to its own queue."""

from typing import Final

from celery import Celery
from celery.utils import uuid
from kombu.exceptions import OperationalError

from pidispatch.config.settings import Settings
from pidispatch.jobs.producer import own_queue, queue
from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits

#: Name of the task of a tick.
TICK: Final = "pidispatch.tick"


def send_tick(app: Celery, settings: Settings, limits: Limits) -> None:
    """Send one. Raises `InfraError`."""
    try:
        # Without the event that it was sent: monitors would show each as a task that never begins.
        # One that nobody took within an interval is of no use.
        message = app.amqp.create_task_message(uuid(), TICK, expires=limits.tick_every_s)
        with app.producer_or_acquire() as producer:
            app.amqp.send_task_message(producer, TICK, message, queue=queue(own_queue(settings)))
    except (OperationalError, OSError) as error:
        raise InfraError(f"the tick could not be sent ({type(error).__name__})", "store-unreachable") from None

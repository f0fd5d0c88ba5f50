"""The Celery object of whoever submits, and the ticket it publishes: a job's id, its generation, a safe label."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any, Final

import kombu.exceptions
import redis.exceptions
from celery import Celery
from celery.app.defaults import SETTING_KEYS
from kombu import Exchange, Queue

from pidispatch.config.settings import Settings
from pidispatch.config.text import printable
from pidispatch.jobs.celery_defaults import (
    DEFAULTS,
    FIXED,
    SHARED_QUEUE,
    operator_settings,
    refuse_environment,
    transport_options,
)
from pidispatch.jobs.rows import Ticket
from pidispatch.jobs.sent import SentEvents
from pidispatch.jobs.transport import KeptConnection
from pidispatch.server.address import Address
from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits

#: Name of the task that a ticket calls.
TASK: Final = "pidispatch.job"
#: Header of a ticket that carries its generation.
GEN: Final = "gen"
#: How long a publish may go on trying; what it does not manage, a worker's sweep does.
_RETRIES: Final = {"max_retries": 1, "interval_start": 0.1, "interval_max": 0.5}
_LOST: Final = (kombu.exceptions.OperationalError, redis.exceptions.ConnectionError, OSError)


def producer(settings: Settings, address: Address, limits: Limits | None = None) -> Celery:
    """A Celery application that publishes tickets to the server at `address`."""
    app = Celery("pidispatch", set_as_current=False)
    app.config_from_object(configuration(settings, address, limits or Limits()))
    app.amqp.Connection = KeptConnection
    return app


def configuration(settings: Settings, address: Address, limits: Limits) -> dict[str, Any]:
    """Defaults, the operator's file over them, and what is fixed. Raises `ConfigError`."""
    refuse_environment()
    own = operator_settings(settings.celery_config, settings.state_dir)
    options = own.pop("broker_transport_options", {})
    return {
        **DEFAULTS,
        **own,
        **FIXED,
        "broker_url": address.broker_url,
        "broker_transport_options": {
            **transport_options(settings.key_prefix, limits),
            **options,
            **address.transport_options,
        },
        "task_queues": [queue(SHARED_QUEUE), queue(own_queue(settings))],
        "worker_concurrency": max(settings.concurrency, limits.most_slots) + limits.spare_threads,
    }


def own_queue(settings: Settings) -> str:
    """The queue of this machine's worker alone."""
    return f"{SHARED_QUEUE}@{settings.worker_name}"


@cache
def queue(name: str) -> Any:
    """A `kombu.Queue` as a plain list of the server, which needs no binding to be declared."""
    return Queue(name, Exchange(""), routing_key=name)


def publish(app: Celery, ticket: Ticket, eta: datetime | None = None) -> None:
    """Publish `ticket`, for `eta` or at once. Raises `InfraError` (cause `ticket-unpublished`)."""
    with _told():
        _send(app, ticket, eta=eta)


def publish_all(app: Celery, tickets: Sequence[Ticket], events: SentEvents) -> None:
    """Publish `tickets` in one round trip; `events` tells of them, in the place of Celery, which waits for that.

    Raises `InfraError` (cause `ticket-unpublished`), where some of them may be published. Twice is harmless.
    """
    with _told():
        try:
            _send_together(app, tickets, events)
        except _LOST:
            # A connection that the server ended shows that only once it is used; the next one is new.
            _send_together(app, tickets, events)


def _send_together(app: Celery, tickets: Sequence[Ticket], events: SentEvents) -> None:
    with app.producer_or_acquire() as producer, producer.channel.gathered():
        for ticket in tickets:
            # Options that Celery has and its types do not know.
            _send(app, ticket, producer=producer, event_dispatcher=events)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (*_LOST, redis.exceptions.RedisError) as error:
        raise InfraError(
            f"the job is accepted and its ticket could not be published ({type(error).__name__})", "ticket-unpublished"
        ) from None


def _send(app: Celery, ticket: Ticket, **options: Any) -> None:
    app.send_task(
        TASK,
        args=(ticket.job_id,),
        task_id=ticket.job_id,
        queue=queue(ticket.queue),
        headers={GEN: str(ticket.gen)},
        # A list of the server needs none.
        declare=(),
        retry=True,
        retry_policy=_RETRIES,
        **safe_representation(ticket.job_id, ticket.label),
        **options,
    )


def safe_representation(job_id: str, label: str) -> dict[str, Any]:
    """What Flower, task events and logs show in the place of a ticket's arguments."""
    return {"argsrepr": f"({job_id}, {printable(label)})", "kwargsrepr": "{}"}


def known_settings() -> frozenset[str]:
    """The names of all settings that Celery has."""
    return frozenset(SETTING_KEYS)

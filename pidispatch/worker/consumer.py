"""Steps of Celery's consumer: what it holds is renewed with the broker, and it fetches only what can run.

Each is begun again with the new connection when the server comes back
(https://docs.celeryq.dev/en/stable/userguide/extending.html#consumer).
"""

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

from celery import bootsteps
from celery.worker import state

from pidispatch.config.log import log
from pidispatch.worker.pauses import OpenQueues
from pidispatch.worker.station import station_of

#: Tickets renewed in one command.
_CHUNK: Final = 1_000
#: Seconds for which events for monitors are gathered.
_TOGETHER_S: Final = 0.1
_AFTER_TASKS: Final = ("celery.worker.consumer.tasks:Tasks",)


class Renewal(bootsteps.StartStopStep):
    """Renews the tickets this worker holds, every quarter of the time after which the broker gives them back.

    Redis has no acknowledgement of its own: what was fetched longest ago is delivered anew, though it is held for a far
    instant or its job still runs.
    """

    requires = _AFTER_TASKS

    def __init__(self, parent: Any, **kwargs: Any) -> None:
        super().__init__(parent, **kwargs)
        self._timer: Any = None

    def start(self, parent: Any) -> None:
        """Begin with the connection that is there now."""
        visibility = parent.app.conf.broker_transport_options["visibility_timeout"]
        self._timer = parent.timer.call_repeatedly(visibility / 4, self._renew, (parent,))

    def stop(self, parent: Any) -> None:  # noqa: ARG002 - the signature is given
        """End with the connection."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    terminate = stop

    def _renew(self, consumer: Any) -> None:
        channel = consumer.task_consumer.channel
        qos = channel.qos
        # What was acknowledged stays listed until the next ticket comes.
        tags = [tag for tag in list(qos._delivered) if tag not in qos._dirty]
        now = time.time()
        with channel.conn_or_acquire() as client:
            for chunk in _chunks(tags):
                # XX: a ticket that was acknowledged meanwhile is not brought back.
                client.zadd(channel.unacked_index_key, dict.fromkeys(chunk, now), xx=True)


class Forgetting(bootsteps.StartStopStep):
    """Lets go of the connection before, with which kombu 5.7 leaves two ties: a socket would stay for each outage."""

    requires = _AFTER_TASKS

    def __init__(self, parent: Any, **kwargs: Any) -> None:
        super().__init__(parent, **kwargs)
        self._qos: Any = None

    def start(self, parent: Any) -> None:
        """Begin with the connection that is there now."""
        if parent.hub is not None:
            now = parent.connection.transport.cycle
            for act in [act for act in parent.hub.on_tick if _polls_for_another(act, now)]:
                parent.hub.on_tick.discard(act)
        if self._qos is not None:
            # It would give the tickets back at the end of the process; the broker does, once nobody renews them.
            self._qos._on_collect.cancel()
        self._qos = parent.task_consumer.channel.qos


def _polls_for_another(act: Any, cycle: Any) -> bool:
    """Whether this is what a transport does at each turn of the loop, and the transport is not that of `cycle`."""
    if not getattr(act, "__qualname__", "").endswith("register_with_event_loop.<locals>.on_poll_start"):
        return False
    return all(cell.cell_contents is not cycle for cell in act.__closure__ or ())


class Monitored(bootsteps.StartStopStep):
    """Sends what monitors are told together, some times a second.

    Celery would send it at each turn of its loop, in the one thread that also fetches the next job.
    """

    requires = _AFTER_TASKS

    def start(self, parent: Any) -> None:
        """Begin with the dispatcher that is there now."""
        hub, timer, dispatcher = parent.hub, parent.timer, parent.event_dispatcher
        if hub is None or dispatcher is None:
            return
        waiting = threading.Event()

        def send() -> None:
            waiting.clear()
            dispatcher.flush()

        def soon() -> None:
            # Told by the threads of the jobs; timers are the loop's own.
            if not waiting.is_set():
                waiting.set()
                hub.call_soon(timer.call_after, _TOGETHER_S, send)

        dispatcher.on_send_buffered = soon

    def stop(self, parent: Any) -> None:
        """Send what waits. What cannot be sent is kept for the next connection."""
        if parent.event_dispatcher is not None:
            parent.event_dispatcher.flush()


class EndRunning(bootsteps.StartStopStep):
    """Ends the jobs that run before the pool is waited for, however the worker comes to its end.

    A signal has done so already; `celery control shutdown` and an error of Celery's own tell nobody before.
    """

    requires = ("celery.worker.components:Pool",)

    def start(self, parent: Any) -> None:
        """Nothing is to be begun."""

    def stop(self, parent: Any) -> None:
        """Begin nothing more, and end what runs."""
        station = station_of(parent.app)
        if station is not None:
            station.stop_running()

    terminate = stop


class FetchGate(bootsteps.StartStopStep):
    """Fetches nothing while every job slot is taken: an idle machine can run what a busy one would only hold.

    Nor anything, at any time, from a queue that is paused.
    """

    requires = _AFTER_TASKS

    def start(self, parent: Any) -> None:
        """Guard the channel that is there now."""
        station = station_of(parent.app)
        if station is None:
            return
        limit, free = station.slot_limit, station.slots.free
        channel = parent.task_consumer.channel
        qos = channel.qos
        may_consume = qos.can_consume

        def can_consume() -> bool:
            # Counted when they are fetched: a burst is fetched before the first of it runs. And by the slots: what runs
            # is forgotten by Celery when its connection breaks.
            slots = limit()
            taken = max(len(state.reserved_requests), slots - free())
            return taken < slots and bool(may_consume())

        qos.can_consume = can_consume
        channel._queue_cycle = OpenQueues(channel._queue_cycle, station.pauses)
        log().debug("consumer_started", slots=limit())


def _chunks(tags: list[str]) -> Iterator[list[str]]:
    rest = iter(tags)
    while chunk := list(itertools.islice(rest, _CHUNK)):
        yield chunk

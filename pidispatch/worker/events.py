"""What a worker tells monitors of its tasks, so that Flower shows each job as it stands.

https://docs.celeryq.dev/en/stable/userguide/monitoring.html#task-events
"""

from collections import deque
from threading import Lock
from typing import Any, Final

from celery.events.dispatcher import EventDispatcher

_RECEIVED: Final = "task-received"
_RETRIED: Final = "task-retried"
#: Events that wait for a server which is away; beyond them the oldest are forgotten.
_KEPT: Final = 10_000


class JobEvents(EventDispatcher):
    """Celery's own, which is made for tasks in processes of their own, for jobs that are threads of this one."""

    # What the base class has, and its types do not name.
    mutex: Lock
    producer: Any
    _group_buffer: dict[str, list[dict[str, Any]]]
    _outbound_buffer: deque[tuple[Any, str, Exception]]
    _publish: Any

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._outbound_buffer = deque(maxlen=_KEPT)

    def send(self, type: str, *arguments: Any, **fields: Any) -> None:
        """Send an event. A ticket that is held for later is told as one, however often it is fetched anew."""
        if type == _RETRIED:
            # To put a job off is no error; Celery tells it with the traceback of its own `Retry`.
            fields["traceback"] = None
        super().send(type, *arguments, **fields)
        if type == _RECEIVED and fields.get("eta"):
            # Monitors take the later event for the state, and the ticket can be fetched before it is told that the job
            # is put off.
            super().send(_RETRIED, uuid=fields["uuid"])

    def flush(self, errors: bool = True, groups: bool = True) -> None:
        """Publish what waits.

        Celery 5.6 empties its list once it is published, and so loses what a thread puts there meanwhile: most often
        that a job has started (https://github.com/celery/celery/issues/10434).
        """
        with self.mutex:
            # Celery forgets what cannot be published once more, too.
            for _ in range(len(self._outbound_buffer) if errors else 0):
                event, routing_key, _fault = self._outbound_buffer.popleft()
                self._publish(event, self.producer, routing_key)
            if not groups:
                return
            for group, waiting in list(self._group_buffer.items()):
                if events := waiting[:]:
                    self._publish(events, self.producer, f"{group}.multi")
                    del waiting[: len(events)]

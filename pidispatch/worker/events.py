"""What a worker tells monitors of its tasks, so that Flower shows each job as it stands.

https://docs.celeryq.dev/en/stable/userguide/monitoring.html#task-events
"""

from threading import Lock
from typing import Any, Final

from celery.events.dispatcher import EventDispatcher

_RECEIVED: Final = "task-received"
_RETRIED: Final = "task-retried"


class JobEvents(EventDispatcher):
    """Celery's own, which is made for tasks in processes of their own, for jobs that are threads of this one."""

    # What the base class has, and its types do not name.
    mutex: Lock
    producer: Any
    _group_buffer: dict[str, list[dict[str, Any]]]
    _publish: Any

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
        super().flush(errors, groups=False)
        if not groups:
            return
        with self.mutex:
            for group, waiting in list(self._group_buffer.items()):
                if events := waiting[:]:
                    self._publish(events, self.producer, f"{group}.multi")
                    del waiting[: len(events)]

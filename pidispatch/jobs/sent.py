"""The word that a ticket was published, for Flower and `celery events`: said by a thread of its own, many at a time.

Celery says it itself after each ticket, one at a time and waiting for the server. That is right for a verb that ends
right after it; a receiver would answer no faster than the server takes these words. They are advice: one that does not
fit, or that no server takes, is dropped.
"""

import contextlib
import queue
import threading
import time
from typing import Any, Final

from celery import Celery
from celery.events import EventDispatcher

from pidispatch.config.log import log

#: Words that wait; what comes on top of them is dropped.
_WAITING: Final = 1_000
#: Most of them in one message, and the seconds for which the first of it waits for others.
_TOGETHER: Final = 100
_GATHER_S: Final = 0.05
#: Seconds for which the end of the thread is waited for.
_END_S: Final = 2.0


#: A word of Celery's and its fields.
_Word = tuple[str, dict[str, Any]]


class SentEvents:
    """Takes the place of Celery's own dispatcher when a ticket is published (`producer.publish`)."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        # `None` ends the thread.
        self._queue: queue.Queue[_Word | None] = queue.Queue(_WAITING)
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="pi-sent-events", daemon=True)
        self._thread.start()

    def publish(self, type: str, fields: dict[str, Any], _producer: Any, **_: Any) -> None:
        """Have it said, soon. The arguments are those that Celery gives its own."""
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait((type, fields))

    def close(self) -> None:
        """Say what waits, and end."""
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=_END_S)
        self._thread.join(_END_S)

    def _run(self) -> None:
        while gathered := self._gathered():
            try:
                with self._app.connection_for_write() as connection:
                    self._say(connection, gathered)
            except Exception as error:
                log().debug("sent_events_dropped", cause=type(error).__name__)

    def _say(self, connection: Any, gathered: list[_Word]) -> None:
        """Say this and what comes after it. Raises as the server does."""
        words: Any = EventDispatcher(
            connection,
            app=self._app,
            buffer_while_offline=False,
            buffer_group=["task"],
            buffer_limit=_TOGETHER + 1,
        )
        while gathered:
            for name, fields in gathered:
                words.send(name, **fields)
            words.flush(errors=False)
            gathered = self._gathered()

    def _gathered(self) -> list[_Word]:
        """The next word and those that come right after it; none at the end."""
        word = None if self._ending else self._queue.get()
        until = time.monotonic() + _GATHER_S
        words: list[_Word] = []
        while word is not None:
            words.append(word)
            if len(words) == _TOGETHER:
                return words
            try:
                word = self._queue.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                return words
        self._ending = True
        return words

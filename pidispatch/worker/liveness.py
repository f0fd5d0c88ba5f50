"""Whether this worker's consumer still hears: it sends itself a ticket now and then, and notes when one comes.

A worker can be alive and deaf after a reconnect, answering nothing and fetching nothing. One that has free slots and
has heard nothing for long, though the server answers, ends itself, so that its supervisor starts it anew.
"""

import threading
from collections.abc import Callable

from pidispatch.config.log import log
from pidispatch.values.clock import Clock
from pidispatch.values.limits import Limits


class Liveness:
    """The age of the last tick that came through the queue. `listens` says whether anything would be fetched now."""

    def __init__(
        self,
        send: Callable[[], None],
        answers: Callable[[], bool],
        give_up: Callable[[], None],
        listens: Callable[[], bool],
        limits: Limits,
        clock: Clock,
    ) -> None:
        self._send = send
        self._answers = answers
        self._give_up = give_up
        self._listens = listens
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._heard_at = clock.monotonic()
        self._gave_up = False

    @property
    def age_s(self) -> float:
        """Seconds since the consumer last proved that it hears."""
        return self._clock.monotonic() - self._heard_at

    def heard(self) -> None:
        """A tick came."""
        with self._lock:
            self._heard_at = self._clock.monotonic()

    def beat(self, running: int) -> None:
        """Send the next tick, and give up where none has come for too long while `running` jobs are none."""
        if self._gave_up:
            return
        if not self._listens():
            # Nothing is fetched now, so silence says nothing.
            self.heard()
            return
        # Looked at before anything is sent, which may hang as well.
        if running == 0 and self.age_s > self._limits.deaf_s and self._answers():
            self._gave_up = True
            log().error("consumer_deaf", ageS=int(self.age_s))
            self._give_up()
            return
        self._send()

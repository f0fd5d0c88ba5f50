"""The one object that ends a running job: a reason, and the first to give one wins."""

import threading
from collections.abc import Callable

from pidispatch.values.reason import AbortReason


class Abort:
    """Set from any thread or signal handler; never unset."""

    def __init__(self) -> None:
        # Re-entrant: a signal handler may interrupt its own thread inside these few lines.
        self._lock = threading.RLock()
        self._reason: AbortReason | None = None
        self._listeners: list[Callable[[], None]] = []

    @property
    def reason(self) -> AbortReason | None:
        """Why, or `None` while nobody has ended the job."""
        return self._reason

    def set(self, reason: AbortReason) -> bool:
        """End the job for `reason`; `False` when somebody else was first."""
        with self._lock:
            if self._reason is not None:
                return False
            self._reason = reason
            listeners = list(self._listeners)
        for listener in listeners:
            listener()
        return True

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` once the job is ended, at once if it already is."""
        with self._lock:
            self._listeners.append(listener)
            already = self._reason is not None
        if already:
            listener()

"""One job in this worker's hands: its lease, what ends it, and what is shown of it while it runs."""

import threading

from pidispatch.box.abort import Abort
from pidispatch.jobs.rows import Lease
from pidispatch.values.progress import Progress, TurnEnded
from pidispatch.values.reason import AbortReason


class Held:
    """Lives from a won `acquire` to the end of the attempt."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.abort = Abort()
        self._lock = threading.Lock()
        self._cancelled = False
        self._decided = False
        self._progress: TurnEnded | None = None

    def tell(self, progress: Progress) -> None:
        """Take note of the last turn; it is passed on by the thread that looks for cancels."""
        if isinstance(progress, TurnEnded):
            self._progress = progress

    def news(self) -> TurnEnded | None:
        """The last turn, where it was not told yet."""
        news, self._progress = self._progress, None
        return news

    def cancel(self) -> bool:
        """End the job because an operator asks; `False` once its outcome is decided, or another was first."""
        with self._lock:
            if self._decided:
                return False
            self._cancelled = self._cancelled or self.abort.set(AbortReason.OPERATOR_CANCEL)
            return self._cancelled

    def lose(self) -> bool:
        """End the job because another has its lease; `False` once its outcome is decided, or another was first."""
        with self._lock:
            return not self._decided and self.abort.set(AbortReason.LEASE_LOST)

    def decide(self) -> bool:
        """From here on no cancel is taken. Whether one was: then the job has ended so, whatever it did besides."""
        with self._lock:
            self._decided = True
            return self._cancelled

    @property
    def lost(self) -> bool:
        """Whether another has the lease: whoever lost it writes nothing."""
        return self.abort.reason is AbortReason.LEASE_LOST

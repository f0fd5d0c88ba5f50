"""Time as a value that is handed in, so that no rule about time needs a sleeping test."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Where instants and durations come from."""

    def now(self) -> datetime:
        """The current instant, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never goes back."""
        ...

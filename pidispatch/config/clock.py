"""The real clock behind `pidispatch.values.clock.Clock`."""

import time
from datetime import UTC, datetime


class SystemClock:
    """Wall clock in UTC and the machine's monotonic clock."""

    def now(self) -> datetime:
        """The current instant, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never goes back."""
        return time.monotonic()

"""A clock that stands where a test puts it."""

from dataclasses import dataclass
from datetime import datetime


@dataclass
class FakeClock:
    """Both clocks of `pidispatch.values.clock.Clock`, moved by hand."""

    instant: datetime
    seconds: float = 0.0

    def now(self) -> datetime:
        """The instant."""
        return self.instant

    def monotonic(self) -> float:
        """The seconds."""
        return self.seconds

"""The limit of requests: https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.fakes.github.faults import Reply, message


@dataclass
class Rate:
    """One for all tokens, full again an hour after it was first used."""

    limit: int = 5000
    used: int = 0
    reset: datetime | None = None

    def take(self, now: datetime) -> Reply | None:
        """Count a request; the refusal where it is one too many."""
        if self.reset is None or now >= self.reset:
            self.used, self.reset = 0, now + timedelta(hours=1)
        if self.used >= self.limit:
            return message(403, "API rate limit exceeded for installation.")
        self.used += 1
        return None

    def give_back(self) -> None:
        """Count one less: an answer that says that nothing is new is free."""
        self.used -= 1

    def spend(self, until: datetime) -> None:
        """Use all of it up."""
        self.used, self.reset = self.limit, until

    def shown(self, now: datetime) -> dict[str, int]:
        """`rate-limit`."""
        reset = self.reset or now + timedelta(hours=1)
        return {
            "limit": self.limit,
            "used": self.used,
            "remaining": self.limit - self.used,
            "reset": int(reset.timestamp()),
        }

    def headers(self, now: datetime) -> dict[str, str]:
        """The same, as it comes with every answer."""
        return {f"x-ratelimit-{name}": str(value) for name, value in self.shown(now).items()} | {
            "x-ratelimit-resource": "core"
        }

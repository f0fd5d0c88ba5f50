"""The poller where its account itself is limited: nobody can be looked at then, and it waits."""

import asyncio
from datetime import UTC, datetime, timedelta

from pidispatch.forges.polling import Watch
from pidispatch.receiver.poll import Poller
from pidispatch.values.errors import RateLimited
from tests.support.clock import FakeClock

NOW = datetime(2026, 1, 31, tzinfo=UTC)


class Limited:
    """Gives no token before a quarter of an hour has gone."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def repositories(self) -> list[str]:
        """None."""
        return []

    def watch(self, repo: str) -> Watch:
        """Not now."""
        self.asked.append(repo)
        raise RateLimited("used up", NOW + timedelta(minutes=15))


def test_a_token_that_the_limit_keeps_back_ends_the_cycle_until_the_limit_is_full_again() -> None:
    polling, pauses = Limited(), list[float]()

    async def never(_: Watch) -> int:
        raise AssertionError("looked at without a token")

    async def run() -> Poller:
        stop = asyncio.Event()

        async def sleep(seconds: float) -> None:
            pauses.append(seconds)
            stop.set()

        poller = Poller(
            polling,
            never,
            ("acme/web", "acme/shop"),
            listed=False,
            interval_s=60,
            clock=FakeClock(NOW),
            stop=stop,
            sleep=sleep,
            jitter=lambda: 2.0,
        )
        await poller.run()
        return poller

    poller = asyncio.run(run())
    assert (polling.asked, pauses) == (["acme/web"], [902.0])
    assert (poller.cycles, poller.looked, poller.failed) == (1, 0, 1)

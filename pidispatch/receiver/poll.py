"""The poller: every repository of a list, one after the other, again and again, until it is told to stop."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from pidispatch.config.log import log
from pidispatch.forges.polling import Polling, Watch
from pidispatch.values.clock import Clock
from pidispatch.values.errors import DispatchError, RateLimited

#: Cycles after which the forge is asked again which repositories there are.
LISTED_EVERY: Final = 10
#: Seconds for which it is waited at most where the forge will not be asked more: its limits are of an hour, and the
#: clock here may be another one than there.
_MOST_S: Final = 3600.0


class Poller:
    """Looks until `stop` is set. `sleep` waits for so many seconds, or until then; `jitter` is a few seconds more."""

    def __init__(
        self,
        polling: Polling,
        look: Callable[[Watch], Awaitable[int]],
        repositories: Sequence[str],
        *,
        listed: bool,
        interval_s: int,
        clock: Clock,
        stop: asyncio.Event,
        sleep: Callable[[float], Awaitable[object]],
        jitter: Callable[[], float],
    ) -> None:
        self._polling = polling
        self._look = look
        self._repositories = tuple(repositories)
        self._listed = listed
        self._interval_s = interval_s
        self._clock = clock
        self._stop = stop
        self._sleep = sleep
        self._jitter = jitter
        self.cycles = 0
        #: Looks that came to their end, and those that did not.
        self.looked = 0
        self.failed = 0

    async def run(self) -> None:
        """Look. The repository that is being looked at when it is told to stop is finished."""
        while not self._stop.is_set():
            if self._listed and self.cycles and self.cycles % LISTED_EVERY == 0:
                await self._list()
            pause = await self._cycle()
            self.cycles += 1
            if not self._stop.is_set():
                await self._sleep(pause)

    async def _cycle(self) -> float:
        """Look at all of them once; seconds until the next time."""
        pause = float(self._interval_s)
        for place, repo in enumerate(self._repositories, 1):
            if self._stop.is_set():
                break
            try:
                pause = max(pause, await self._one(repo))
            except RateLimited as limited:
                # It is the same account for all of them.
                left = (limited.resets - self._clock.now()).total_seconds()
                wait = min(max(0.0, left), _MOST_S) + self._jitter()
                # Those that it did not come to are the first of the next cycle.
                self._repositories = self._repositories[place:] + self._repositories[:place]
                log().warning("poll_rate_limited", repo=repo, until=limited.resets.isoformat(), seconds=round(wait))
                self.failed += 1
                return max(pause, wait)
        return pause

    async def _one(self, repo: str) -> float:
        """Look at one; what goes wrong with it is told, and keeps nobody from the others. Raises `RateLimited`."""
        try:
            watch = await asyncio.to_thread(self._polling.watch, repo)
        except RateLimited:
            raise
        except DispatchError as error:
            log().warning("poll_token_failed", repo=repo, cause=error.cause, reason=error.message)
            self.failed += 1
            return 0.0
        try:
            wait = await self._look(watch)
        except RateLimited:
            raise
        except DispatchError as error:
            log().warning("poll_repository_failed", repo=repo, cause=error.cause, reason=error.message)
        except Exception as error:
            # A mistake of ours; its text may hold a part of a payload.
            at = traceback.extract_tb(error.__traceback__)[-1]
            log().error("poll_broke", repo=repo, cause=type(error).__name__, at=f"{Path(at.filename).name}:{at.lineno}")
        else:
            self.looked += 1
            return float(wait)
        self.failed += 1
        return 0.0

    async def _list(self) -> None:
        """Ask anew which repositories there are; where that is not told, they stay the same."""
        try:
            found = await asyncio.to_thread(self._polling.repositories)
        except DispatchError as error:
            log().warning("poll_list_failed", cause=error.cause, reason=error.message)
            return
        if found:
            self._repositories = tuple(found)

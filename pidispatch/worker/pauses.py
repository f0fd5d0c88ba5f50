"""Which queues are paused, as this worker last saw it: of those it fetches nothing.

What decides is the store's answer when a job is taken. This here keeps a paused queue's jobs in their queue, instead
of in the hands of workers that put them to sleep again and again.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from pidispatch.config.log import log
from pidispatch.jobs.pausing import EVERY

#: In the place of queues that are all paused. Nothing ever lies in it: a connection on which nothing is asked for long
#: is closed by some servers, and everything that is held would be given back.
NOTHING: Final = "nothing"


class Pauses:
    """The paused queues. `ask` tells them, of the given ones among others, and may raise `InfraError`."""

    def __init__(self, ask: Callable[[Iterable[str]], Mapping[str, object]], queues: Iterable[str]) -> None:
        self._ask = ask
        self._queues = tuple(queues)
        self._paused: frozenset[str] = frozenset()

    def look(self) -> None:
        """Ask again. While the server does not answer, what it said last holds. Raises `InfraError`."""
        told = self._ask(self._queues)
        paused = frozenset(queue for queue in self._queues if EVERY in told or queue in told)
        if more := paused - self._paused:
            log().info("queues_paused", queues=sorted(more))
        if fewer := self._paused - paused:
            log().info("queues_resumed", queues=sorted(fewer))
        self._paused = paused

    def holds(self, queue: str) -> bool:
        """Whether nothing is to be fetched from this queue."""
        return queue in self._paused


class OpenQueues:
    """In the place of a channel's cycle of queues: the same without those that are paused."""

    def __init__(self, cycle: Any, pauses: Pauses) -> None:
        self._cycle = cycle
        self._pauses = pauses

    def consume(self, count: int) -> list[str]:
        """The next queues to fetch from, `count` at most; never none."""
        return [queue for queue in self._cycle.consume(count) if not self._pauses.holds(queue)] or [NOTHING]

    def update(self, queues: Iterable[str]) -> None:
        """The channel's queues have changed."""
        self._cycle.update(queues)

    def rotate(self, last: str) -> object:
        """Something came from the queue `last`."""
        return self._cycle.rotate(last)

"""Where the receiver waits for others: threads of its own with a bounded queue, so that what hears never waits.

What does not fit is turned away at once. A forge sends a delivery again; a queue without end would only answer late.
"""

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from pidispatch.config.log import log

T = TypeVar("T")


class Busy(Exception):
    """There is no room in a lane."""


class Batches(Generic[T]):
    """So many threads, which do what is offered in the order in which it came, at most `together` of it at once.

    `waiting`: most that waits for them. What a thread is given is what waits when it is free; it waits for no more.
    """

    def __init__(self, name: str, threads: int, waiting: int, act: Callable[[list[T]], None], together: int) -> None:
        self._name: Final = name
        self._act: Final = act
        self._together: Final = together
        # `None` ends a thread.
        self._queue: queue.Queue[T | None] = queue.Queue(waiting)
        # They keep no program from its end: one of them may hang in a call.
        self._threads = [
            threading.Thread(target=self._run, name=f"pi-{name}-{number}", daemon=True) for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def offer(self, one: T) -> bool:
        """Have it done, soon; `False` where there is no room."""
        try:
            self._queue.put_nowait(one)
        except queue.Full:
            return False
        return True

    def close(self, within_s: float) -> bool:
        """Have all that waits done and end; whether that was managed in time. Nothing is to be offered any more."""
        until = time.monotonic() + within_s
        for _ in self._threads:
            try:
                self._queue.put(None, timeout=max(0.0, until - time.monotonic()))
            except queue.Full:
                return False
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self) -> None:
        ending = False
        while not ending:
            batch, ending = self._next()
            try:
                if batch:
                    self._act(batch)
            except Exception as error:
                # A mistake of ours must not end what all deliveries pass.
                log().error("lane_broke", lane=self._name, cause=type(error).__name__)

    def _next(self) -> tuple[list[T], bool]:
        """What waits, once something does; and whether the thread is to end with it."""
        one = self._queue.get()
        batch: list[T] = []
        while one is not None:
            batch.append(one)
            if len(batch) == self._together:
                return batch, False
            try:
                one = self._queue.get_nowait()
            except queue.Empty:
                return batch, False
        return batch, True


class Lane(Batches[Callable[[], None]]):
    """The same for what is called, one after the other."""

    def __init__(self, name: str, threads: int, waiting: int) -> None:
        super().__init__(name, threads, waiting, lambda batch: batch[0](), 1)


class Promise(Generic[T]):
    """An answer that another thread gives to one who waits on the event loop. Made on the event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[T] = self._loop.create_future()

    @property
    def wanted(self) -> bool:
        """Whether anybody waits for it still."""
        return not self._future.done()

    def keep(self, value: T) -> None:
        """Give the answer; the first one counts."""
        self._tell(lambda: self._future.set_result(value))

    def fail(self, error: Exception) -> None:
        """Have it raised in the place of an answer."""
        self._tell(lambda: self._future.set_exception(error))

    async def within(self, seconds: float) -> T:
        """The answer. Raises `TimeoutError`, and what it failed with."""
        async with asyncio.timeout(seconds):
            return await self._future

    def _tell(self, act: Callable[[], None]) -> None:
        # The loop may have ended, as of a program that is told to stop and waits no longer.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(lambda: act() if self.wanted else None)


async def asked_of(lane: Lane, ask: Callable[[], T], within_s: float) -> T:
    """What `ask` returns, or raises, in a thread of the lane. Raises `Busy`, and `TimeoutError` after so many seconds.

    What is still to be asked by then is not asked any more.
    """
    promise: Promise[T] = Promise()

    def run() -> None:
        if not promise.wanted:
            return
        try:
            answer = ask()
        except Exception as error:
            promise.fail(error)
        else:
            promise.keep(answer)

    if not lane.offer(run):
        raise Busy
    return await promise.within(within_s)

"""What is called unless something ends in time: by one thread, as one for each run would be woken by nearly none."""

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Deadlines:
    """Deadlines of many threads. Their thread begins with the first of them and lasts as long as the program."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        self._acts: dict[int, Callable[[], object]] = {}
        self._instants: list[tuple[float, int]] = []
        self._thread: threading.Thread | None = None

    @contextmanager
    def within(self, seconds: float, act: Callable[[], object]) -> Iterator[None]:
        """Call `act`, which must not block, where the block takes longer than `seconds`."""
        number = next(self._numbers)
        with self._changed:
            self._acts[number] = act
            heapq.heappush(self._instants, (time.monotonic() + seconds, number))
            if self._instants[0][1] == number:
                self._watch()
        try:
            yield
        finally:
            with self._changed:
                self._acts.pop(number, None)
                # Nobody is woken for one that is met: nearly all of them are.
                while self._instants and self._instants[0][1] not in self._acts:
                    heapq.heappop(self._instants)

    def _watch(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="pi-deadlines", daemon=True)
            self._thread.start()
        else:
            self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while True:
                left = self._instants[0][0] - time.monotonic() if self._instants else None
                if left is None or left > 0:
                    self._changed.wait(left)
                    continue
                act = self._acts.pop(heapq.heappop(self._instants)[1], None)
                if act is not None:
                    act()

"""A question that is given up after a time, whatever hangs in it: each of its parts has bounds of its own, or none."""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class GivenUp(Exception):
    """It took too long."""


def within(seconds: float | None, act: Callable[[], T]) -> T:
    """What `act` returns or raises within so many seconds; without a number, whenever it does. Raises `GivenUp`."""
    if seconds is None:
        return act()
    told: SimpleQueue[tuple[Any, Exception | None]] = SimpleQueue()

    def ask() -> None:
        try:
            told.put((act(), None))
        except Exception as error:
            told.put((None, error))

    # Left behind where it hangs: the program does not wait for it, and the kernel takes back what it may hold.
    threading.Thread(target=ask, name="pi-hurry", daemon=True).start()
    try:
        answer, error = told.get(timeout=max(0.0, seconds))
    except Empty:
        raise GivenUp from None
    if error is not None:
        raise error
    found: T = answer
    return found

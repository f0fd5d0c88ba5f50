"""A question that may hang, asked in a thread of its own, so that whoever waits for the answer can go on without it."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Event, Thread
from typing import Final, TypeVar

T = TypeVar("T")
#: Seconds in which a thread has begun, unless the machine is far too busy.
_BEGIN_S: Final = 1.0


def asked(ask: Callable[[], T]) -> Future[T]:
    """Begin to ask. The answer, or what was raised instead, is had by `result(seconds)`; `TimeoutError` without one.

    A question that hangs keeps no program from its end.
    """
    answer: Future[T] = Future()
    begun = Event()

    def run() -> None:
        begun.set()
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=run, name="pi-asked", daemon=True).start()
    # Tracing can break a thread that starts while another one does, and with it the answer.
    begun.wait(_BEGIN_S)
    return answer

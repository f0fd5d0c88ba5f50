"""Signals as calls in a thread, so that none of them can be missed while the main thread waits.

Python runs a signal handler between two steps of the main thread. A signal that arrives just before the thread begins
to wait stays unhandled until the wait ends, which here may be never. The interpreter's wakeup descriptor has no such
gap (Python documentation, "signal.set_wakeup_fd").
"""

import os
import signal
import threading
from collections.abc import Callable, Mapping

Reactions = Mapping[signal.Signals, Callable[[], None]]


def watch(reactions: Reactions) -> None:
    """From now on, call the reaction to each signal in a thread of its own; main thread only.

    Reactions run one after the other. Signals of one kind that arrive together may become one call.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in reactions:
        # Without a handler of Python's own, nothing is written to the descriptor.
        signal.signal(number, lambda _number, _frame: None)
    threading.Thread(target=_react, args=(reading, reactions), daemon=True).start()


def _react(reading: int, reactions: Reactions) -> None:
    while numbers := os.read(reading, 512):
        for number in dict.fromkeys(numbers):
            reactions[signal.Signals(number)]()

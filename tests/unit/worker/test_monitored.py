"""Events for monitors: gathered for a moment, and sent together by the loop's own thread."""

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from kombu.asynchronous import Hub

from pidispatch.worker.consumer import Monitored


class Dispatcher:
    """Notes which threads flush."""

    def __init__(self) -> None:
        self.flushed: list[int] = []
        self.on_send_buffered: Callable[[], object] = lambda: None

    def flush(self) -> None:
        """Note it."""
        self.flushed.append(threading.get_ident())


def begun(hub: Hub | None, dispatcher: Dispatcher | None) -> tuple[Monitored, SimpleNamespace]:
    """The step, begun with a consumer that has these."""
    parent = SimpleNamespace(hub=hub, timer=hub.timer if hub else None, event_dispatcher=dispatcher)
    step = Monitored(parent)
    step.start(parent)
    return step, parent


def test_what_several_threads_tell_is_sent_once_by_the_loop() -> None:
    hub: Any = Hub()
    dispatcher = Dispatcher()
    try:
        begun(hub, dispatcher)
        for _ in range(3):
            teller = threading.Thread(target=dispatcher.on_send_buffered)
            teller.start()
            teller.join()
        assert dispatcher.flushed == []
        while not dispatcher.flushed:
            hub.run_once()
        assert dispatcher.flushed == [threading.get_ident()]
        dispatcher.on_send_buffered()
        while len(dispatcher.flushed) < 2:
            hub.run_once()
    finally:
        hub.close()


def test_what_waits_is_sent_at_the_end() -> None:
    hub, dispatcher = Hub(), Dispatcher()
    try:
        step, parent = begun(hub, dispatcher)
        step.stop(parent)
        assert len(dispatcher.flushed) == 1
    finally:
        hub.close()


def test_a_consumer_that_tells_nobody_is_left_alone() -> None:
    step, parent = begun(None, None)
    step.stop(parent)
    assert parent.event_dispatcher is None

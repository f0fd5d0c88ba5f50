"""Of a connection that is gone nothing stays: neither what its transport does at each turn, nor its last will."""

from types import SimpleNamespace
from typing import Any

from kombu.asynchronous import Hub

from pidispatch.worker.consumer import Forgetting


class Qos:
    """Notes whether its finalizer was called off."""

    def __init__(self) -> None:
        self.cancelled = 0
        self._on_collect = SimpleNamespace(cancel=self._cancel)

    def _cancel(self) -> None:
        self.cancelled += 1


class Transport:
    """As kombu's: registers what it does at each turn of the loop."""

    def __init__(self) -> None:
        self.cycle = object()

    def register_with_event_loop(self, hub: Any) -> None:
        """Keep a tie to its cycle."""
        cycle = self.cycle

        def on_poll_start() -> object:
            return cycle

        hub.on_tick.add(on_poll_start)


def consumer(hub: Any, transport: Transport, qos: Qos) -> SimpleNamespace:
    """A consumer with this connection."""
    return SimpleNamespace(
        hub=hub,
        connection=SimpleNamespace(transport=transport),
        task_consumer=SimpleNamespace(channel=SimpleNamespace(qos=qos)),
    )


def test_only_the_connection_that_is_there_is_kept() -> None:
    hub: Any = Hub()
    try:
        others = set(hub.on_tick)
        hub.on_tick.add(print)
        first, second, before, now = Transport(), Transport(), Qos(), Qos()
        parent = consumer(hub, first, before)
        step = Forgetting(parent)
        first.register_with_event_loop(hub)
        step.start(parent)
        assert len(hub.on_tick) == len(others) + 2
        second.register_with_event_loop(hub)
        step.start(consumer(hub, second, now))
        left = hub.on_tick - others - {print}
        assert [act() for act in left] == [second.cycle]
        assert (before.cancelled, now.cancelled) == (1, 0)
    finally:
        hub.close()


def test_without_a_loop_of_its_own_there_is_nothing_to_forget() -> None:
    parent = consumer(None, Transport(), Qos())
    Forgetting(parent).start(parent)
    assert parent.task_consumer.channel.qos.cancelled == 0

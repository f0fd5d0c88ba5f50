"""What monitors are told of tasks: all of it, also what a thread tells while the rest is on its way."""

import copy
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery import Celery

from pidispatch.worker.events import JobEvents


class Wire:
    """The connection to the server: keeps what is published, and lets something happen meanwhile."""

    def __init__(self) -> None:
        self.published: list[Any] = []
        self.meanwhile: Callable[[], object] = lambda: None

    def publish(self, event: Any, **_: Any) -> None:
        """Serialize it, as the transport does; whatever the list becomes afterwards is not sent."""
        self.published.append(copy.deepcopy(event))
        self.meanwhile()

    def told(self) -> list[tuple[str, str]]:
        """Kind and id of every task event, in their order."""
        return [(event["type"], event["uuid"]) for events in self.published for event in events]


@pytest.fixture
def wire() -> Wire:
    """An empty one."""
    return Wire()


@pytest.fixture
def events(wire: Wire) -> Iterator[JobEvents]:
    """A worker's: task events wait until they are flushed."""
    with Celery("events", broker_url="memory://", set_as_current=False) as app:
        app.events.dispatcher_cls = "pidispatch.worker.events:JobEvents"
        made = app.events.Dispatcher(app.connection_for_write(), hostname="w1@host", buffer_group=["task"])
        made.producer = wire
        yield made
        made.connection.close()


def test_what_is_told_while_the_rest_is_published_is_not_lost(events: JobEvents, wire: Wire) -> None:
    events.send("task-received", uuid="a", eta=None)
    wire.meanwhile = lambda: events.send("task-started", uuid="a")
    events.flush()
    wire.meanwhile = lambda: None
    events.flush()
    assert wire.told() == [("task-received", "a"), ("task-started", "a")]
    events.flush()
    assert len(wire.published) == 2


def test_only_what_was_not_sent_before_is_published_where_groups_are_not_asked_for(
    events: JobEvents, wire: Wire
) -> None:
    events.send("task-received", uuid="a", eta=None)
    events.flush(groups=False)
    assert wire.published == []
    events.flush()
    assert wire.told() == [("task-received", "a")]


def test_what_is_not_published_while_the_server_is_away_is_published_later(events: JobEvents, wire: Wire) -> None:
    def away() -> None:
        raise ConnectionError

    events.send("task-received", uuid="a", eta=None)
    wire.meanwhile = away
    events.flush()
    wire.published.clear()
    wire.meanwhile = lambda: None
    events.send("task-started", uuid="a")
    events.flush()
    assert wire.told() == [("task-received", "a"), ("task-started", "a")]


def test_a_longer_outage_loses_nothing(events: JobEvents, wire: Wire) -> None:
    def away() -> None:
        raise ConnectionError

    wire.meanwhile = away
    for name in ("task-received", "task-started", "task-succeeded"):
        events.send(name, uuid="a", **({"eta": None} if name == "task-received" else {}))
        events.flush()
        events.flush()
    wire.published.clear()
    wire.meanwhile = lambda: None
    events.flush()
    assert wire.told() == [("task-received", "a"), ("task-started", "a"), ("task-succeeded", "a")]


def test_what_waits_for_a_server_that_is_away_is_bounded(
    events: JobEvents, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert events._outbound_buffer.maxlen == 10_000
    monkeypatch.setattr(events, "_outbound_buffer", deque(maxlen=2))

    def away() -> None:
        raise ConnectionError

    wire.meanwhile = away
    for number in range(5):
        events.send("task-started", uuid=str(number))
        events.flush()
    wire.published.clear()
    wire.meanwhile = lambda: None
    events.flush()
    assert wire.told() == [("task-started", "3"), ("task-started", "4")]


def test_a_ticket_that_is_fetched_to_be_run_later_is_told_as_put_off(events: JobEvents, wire: Wire) -> None:
    events.send("task-received", uuid="a", eta="2030-01-01T00:00:00+00:00")
    events.send("task-received", uuid="b", eta=None)
    events.flush()
    assert wire.told() == [("task-received", "a"), ("task-retried", "a"), ("task-received", "b")]


def test_to_put_a_job_off_is_told_without_a_traceback(events: JobEvents, wire: Wire) -> None:
    events.send("task-retried", uuid="a", exception="Retry()", traceback="Traceback ...")
    events.send("task-failed", uuid="b", exception="JobFailed()", traceback="Traceback ...")
    events.flush()
    (told,) = wire.published
    assert [event["traceback"] for event in told] == [None, "Traceback ..."]

"""Tickets published together, and the word that they were: on a real server, as a worker and Flower would find them."""

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from pidispatch.jobs import sent
from pidispatch.jobs.producer import producer, publish_all
from pidispatch.jobs.rows import Submission, Ticket
from pidispatch.jobs.sent import SentEvents
from pidispatch.jobs.store import JobStore
from pidispatch.server.address import Address
from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits
from tests.integration.jobs.world import QUEUE, World, job
from tests.support.round_trips import round_trips
from tests.support.server import OwnServer, until
from tests.support.settings import settings_of

TICKETS = [
    Ticket(job_id=f"gh-{number}", gen=number, queue=QUEUE, label="github acme/web#7 fix") for number in (1, 2, 3)
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[OwnServer]:
    with OwnServer("valkey", tmp_path / "s") as server:
        yield server


@pytest.fixture
def app(server: OwnServer, tmp_path: Path) -> Celery:
    settings = settings_of({"PI_STATE_DIR": str(tmp_path / "state"), "VALKEY_URL": server.url})
    return producer(settings, Address.of(settings))


def tickets_of(server: OwnServer) -> list[tuple[str, str]]:
    """Job and generation of each ticket in the queue, oldest first."""
    with server.client() as client:
        found: Any = client.lrange(f"pi:{QUEUE}", 0, -1)
    headers = [json.loads(text)["headers"] for text in reversed(found)]
    return [(one["id"], one["gen"]) for one in headers]


class Listener:
    """What Flower is told."""

    def __init__(self, app: Celery, server: OwnServer) -> None:
        self.heard: list[str] = []
        self._app = app
        threading.Thread(target=self._listen, daemon=True).start()
        with server.client() as client:
            until(lambda: client.pubsub_numpat() or client.pubsub_channels(), "somebody to listen")

    def _listen(self) -> None:
        # The server goes with its test.
        with contextlib.suppress(Exception), self._app.connection_for_read() as connection:
            handlers = {"task-sent": lambda event: self.heard.append(event["uuid"])}
            self._app.events.Receiver(connection, handlers=handlers).capture(limit=None, timeout=None, wakeup=False)


def test_tickets_are_published_together_and_told(app: Celery, server: OwnServer) -> None:
    listener, events = Listener(app, server), SentEvents(app)
    publish_all(app, TICKETS, events)
    events.close()
    assert tickets_of(server) == [("gh-1", "1"), ("gh-2", "2"), ("gh-3", "3")]
    until(lambda: len(listener.heard) == 3, "the words")
    assert listener.heard == ["gh-1", "gh-2", "gh-3"]


def test_they_are_one_round_trip(app: Celery) -> None:
    events = SentEvents(app)
    publish_all(app, TICKETS[:1], events)
    events.close()
    with round_trips() as asked:
        publish_all(app, TICKETS, events)
    assert asked.times == 1


def test_a_server_that_goes_is_told_and_one_that_comes_is_found(app: Celery, server: OwnServer) -> None:
    events = SentEvents(app)
    publish_all(app, TICKETS[:1], events)
    server.stop()
    with pytest.raises(InfraError, match="could not be published") as caught:
        publish_all(app, TICKETS, events)
    assert caught.value.cause == "ticket-unpublished"
    server.start()
    publish_all(app, TICKETS[1:], events)
    assert tickets_of(server)[-2:] == [("gh-2", "2"), ("gh-3", "3")]
    # Also where nothing was said meanwhile, so that the connection that is gone is used first.
    server.stop()
    server.start()
    publish_all(app, TICKETS[:1], events)
    events.close()
    assert tickets_of(server)[-1:] == [("gh-1", "1")]


def test_words_that_nobody_takes_are_dropped_and_later_ones_said(
    app: Celery, server: OwnServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sent, "_TOGETHER", 2)
    events = SentEvents(app)
    server.stop()
    for number in range(3):
        events.publish("task-sent", {"uuid": f"lost-{number}"}, None)
    until(lambda: events._queue.empty(), "the words to be taken")
    server.start()
    listener = Listener(app, server)

    def said() -> list[str]:
        events.publish("task-sent", {"uuid": "late"}, None)
        return listener.heard

    until(said, "a word that is heard")
    events.close()
    assert "lost-0" not in listener.heard


def test_words_that_do_not_fit_are_dropped(app: Celery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent, "_WAITING", 1)
    held, go_on = threading.Event(), threading.Event()

    class Slow(SentEvents):
        def _gathered(self) -> list[tuple[str, dict[str, Any]]]:
            held.set()
            go_on.wait(20)
            return super()._gathered()

    events = Slow(app)
    assert held.wait(20)
    for _ in range(3):
        events.publish("task-sent", {}, None)
    assert events._queue.qsize() == 1
    monkeypatch.setattr(sent, "_END_S", 0.01)
    events.close()
    go_on.set()


def test_jobs_are_handed_in_together_each_for_itself(world: World) -> None:
    asked = [Submission(job("a"), QUEUE), Submission(job("b"), QUEUE, dedup_key="k"), Submission(job("a"), QUEUE)]
    asked += [Submission(job("c"), QUEUE, dedup_key="k")]
    found = world.store.submit_all(asked)
    told = [(one.status, one.job_id) for one in found if not isinstance(one, InfraError)]
    assert told == [("submitted", "a"), ("submitted", "b"), ("duplicate", "a"), ("coalesced", "b")]
    tickets = [one.ticket for one in found if not isinstance(one, InfraError) and one.ticket is not None]
    world.publish(*tickets)
    assert [ticket.job_id for ticket in tickets] == ["a", "b"]


def test_a_server_that_forgot_the_scripts_is_told_them(world: World) -> None:
    store = world.store
    store.submit_all([Submission(job("a"), QUEUE)])
    world.client.script_flush()
    [found] = store.submit_all([Submission(job("b"), QUEUE)])
    assert not isinstance(found, InfraError)
    assert found.status == "submitted"


def test_a_job_that_the_server_refuses_keeps_no_other_from_it(world: World) -> None:
    world.client.set("pi:jobs:queued:odd", "no set")
    refused, taken = world.store.submit_all([Submission(job("a"), "odd"), Submission(job("b"), QUEUE)])
    world.client.delete("pi:jobs:queued:odd", "pi:job:a")
    assert isinstance(refused, InfraError)
    assert refused.cause == "store-error"
    assert not isinstance(taken, InfraError)
    assert taken.status == "submitted"


def test_a_store_that_is_away_takes_none(server: OwnServer) -> None:
    with server.client() as client:
        store = JobStore(client, "pi:", Limits())
        server.stop()
        with pytest.raises(InfraError) as caught:
            store.submit_all([Submission(job("a"), QUEUE)])
    assert caught.value.cause == "store-unreachable"

"""Threads with a bounded queue, and answers that they give to the event loop."""

import asyncio
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from pidispatch.receiver.lanes import Busy, Lane, Promise, asked_of


def wait(event: threading.Event) -> None:
    event.wait(30)


def mistake() -> None:
    raise ZeroDivisionError


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    capture = LogCapture()
    structlog.configure(processors=[capture])
    yield capture.entries
    structlog.reset_defaults()


def test_what_is_offered_is_done_in_its_order() -> None:
    lane, done = Lane("t", 1, 10), list[int]()
    assert all(lane.offer(partial(done.append, number)) for number in range(5))
    assert lane.close(5)
    assert done == [0, 1, 2, 3, 4]


def test_a_full_lane_turns_away_and_does_not_end_in_time() -> None:
    lane, begun, go_on = Lane("t", 1, 1), threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        go_on.wait(30)

    assert lane.offer(hold)
    assert begun.wait(5)
    assert lane.offer(lambda: wait(go_on))
    assert not lane.offer(hold)
    # No room even for the word that it is to end.
    assert not lane.close(0.01)
    go_on.set()
    assert lane.close(5)


def test_a_lane_whose_thread_hangs_is_left() -> None:
    lane, go_on = Lane("t", 1, 2), threading.Event()
    lane.offer(lambda: wait(go_on))
    assert not lane.close(0.01)
    go_on.set()


def test_a_mistake_ends_no_lane(logs: list[Any]) -> None:
    lane, done = Lane("t", 1, 2), threading.Event()
    lane.offer(mistake)
    lane.offer(done.set)
    assert done.wait(5)
    assert lane.close(5)
    assert [(one["event"], one["lane"], one["cause"]) for one in logs] == [("lane_broke", "t", "ZeroDivisionError")]


def test_an_answer_comes_from_a_thread_of_the_lane() -> None:
    lane = Lane("t", 1, 2)

    async def ask() -> tuple[str, int]:
        name = await asked_of(lane, lambda: threading.current_thread().name, 5)
        with pytest.raises(ZeroDivisionError):
            await asked_of(lane, lambda: 1 // 0, 5)
        return name, await asked_of(lane, lambda: 7, 5)

    assert asyncio.run(ask()) == ("pi-t-0", 7)
    lane.close(5)


def test_nobody_is_asked_for_one_who_waits_no_longer() -> None:
    lane, begun, go_on, asked = Lane("t", 1, 1), threading.Event(), threading.Event(), list[int]()

    def hold() -> None:
        begun.set()
        go_on.wait(30)

    async def ask() -> None:
        lane.offer(hold)
        assert begun.wait(5)
        with pytest.raises(TimeoutError):
            await asked_of(lane, lambda: asked.append(1), 0.01)
        with pytest.raises(Busy):
            await asked_of(lane, lambda: asked.append(2), 5)

    asyncio.run(ask())
    go_on.set()
    assert lane.close(5)
    assert asked == []


def test_the_first_answer_counts_and_none_is_needed() -> None:
    async def ask() -> int:
        promise: Promise[int] = Promise()
        promise.keep(1)
        promise.keep(2)
        promise.fail(ValueError())
        return await promise.within(5)

    assert asyncio.run(ask()) == 1

    async def leave() -> Promise[int]:
        return Promise()

    # Whose loop has ended.
    asyncio.run(leave()).keep(1)

"""The second listener: what it says of a receiver that can work and of one that cannot."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from pidispatch.receiver.health import Health
from pidispatch.receiver.measures import Measures, uncounted
from tests.support.receiver import Response, call


def asked(health: Health, *paths: str, method: str = "GET") -> list[Response]:
    """What is answered at these paths, which are asked for at once."""

    async def ask() -> list[Response | None]:
        app = health.app()
        return await asyncio.gather(*(call(app, method, path, {}, [b""]) for path in paths))

    found = asyncio.run(ask())
    assert all(found)
    return [one for one in found if one is not None]


def health(answers: Callable[[], bool] = lambda: True, *, faulty: bool = False, answer_s: float = 2.0) -> Health:
    measures = Measures()
    measures.count("github", "issues", "queued", "", 0.003)
    return Health(answers, lambda: 4, lambda: faulty, measures, answer_s)


def test_a_receiver_that_can_work() -> None:
    lives, ready = asked(health(), "/healthz", "/readyz")
    assert (lives.status, lives.body) == (200, b"ok\n")
    assert ready.told == (200, {"store": True, "rules": True})


@pytest.mark.parametrize(
    ("store", "faulty"),
    [(False, False), (True, True), (False, True)],
)
def test_a_receiver_that_cannot_work_lives(store: bool, faulty: bool) -> None:
    lives, ready = asked(health(lambda: store, faulty=faulty), "/healthz", "/readyz")
    assert lives.status == 200
    # With old rules it can work, and says that they are old.
    assert ready.told == (200 if store else 503, {"store": store, "rules": not faulty})


def test_a_store_that_hangs_is_asked_once_by_all_who_want_to_know() -> None:
    over, times = threading.Event(), list[int]()

    def hang() -> bool:
        times.append(1)
        threading.Timer(0.3, over.set).start()
        over.wait(30)
        return True

    found = asked(health(hang, answer_s=0.05), "/readyz", "/readyz", "/readyz")
    assert [one.status for one in found] == [503] * 3
    assert times == [1]


def test_what_is_counted_is_told() -> None:
    [told] = asked(health(faulty=True), "/metrics")
    assert told.headers["content-type"].startswith("text/plain")
    lines = told.body.decode().splitlines()
    assert 'pi_dispatch_receiver_requests_total{event="issues",forge="github",reason="",verdict="queued"} 1.0' in lines
    assert 'pi_dispatch_receiver_seconds_bucket{forge="github",le="0.005"} 1.0' in lines
    assert "pi_dispatch_receiver_rules 4.0" in lines
    assert "pi_dispatch_receiver_triggers_fault 1.0" in lines


def test_nothing_else_is_there() -> None:
    assert [one.status for one in asked(health(), "/", "/metrics/x")] == [404, 404]
    assert [one.status for one in asked(health(), "/healthz", method="POST")] == [405]
    uncounted("github", "issues", "queued", "", 0.1)

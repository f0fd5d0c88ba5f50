"""The job slots of a machine: counted once each, given back once each."""

import threading

import pytest
from structlog.testing import capture_logs

from pidispatch.gates.host import HostSlots
from pidispatch.values.limits import Limits
from pidispatch.values.verdict import Admit, Defer, Why
from tests.unit.gates.job import NOW, job

BUSY = Defer(why=Why.HOST_BUSY, delay_ms=5000)


def slots(limit: int = 3) -> HostSlots:
    return HostSlots(lambda: limit, Limits())


def test_as_many_as_the_limit_come_in_and_the_next_comes_back_later() -> None:
    gate = slots()
    with capture_logs() as events:
        verdicts = [gate.check(job(number), NOW) for number in range(6)]
    assert verdicts == [Admit()] * 3 + [BUSY] * 3
    assert events == [
        {"event": "host_busy_deferred", "jobId": f"local-{number}", "delayMs": 5000, "log_level": "info"}
        for number in (3, 4, 5)
    ]
    assert gate.free() == 0


def test_a_slot_that_is_given_back_is_taken_again() -> None:
    gate = slots(1)
    assert gate.check(job(1), NOW) == Admit()
    gate.release(job(1))
    assert gate.free() == 1
    assert gate.check(job(2), NOW) == Admit()


def test_a_second_release_frees_nobody_elses_slot() -> None:
    gate = slots(2)
    gate.check(job(1), NOW)
    gate.check(job(2), NOW)
    for _ in range(3):
        gate.release(job(1))
    gate.release(job(9))
    assert gate.free() == 1
    assert [gate.check(job(number), NOW) for number in (3, 4)] == [Admit(), BUSY]


def test_one_that_is_turned_away_has_nothing_to_give_back() -> None:
    gate = slots(1)
    gate.check(job(1), NOW)
    assert gate.check(job(2), NOW) == BUSY
    gate.release(job(2))
    assert gate.free() == 0


def test_a_job_is_not_let_in_beside_itself() -> None:
    gate = slots()
    gate.check(job(1), NOW)
    assert gate.check(job(1), NOW) == BUSY
    assert gate.free() == 2


@pytest.mark.parametrize(("limit", "free"), [(5, 3), (2, 0), (1, 0), (0, 0)])
def test_the_limit_is_asked_each_time_and_one_that_is_lowered_ends_nothing(limit: int, free: int) -> None:
    limits = [2]
    gate = HostSlots(lambda: limits[0], Limits())
    gate.check(job(1), NOW)
    gate.check(job(2), NOW)
    limits[0] = limit
    assert gate.free() == free
    assert gate.check(job(3), NOW) == (Admit() if free else BUSY)


def test_many_threads_take_no_slot_twice() -> None:
    gate, admitted, barrier = slots(5), list[int](), threading.Barrier(20)

    def come(number: int) -> None:
        barrier.wait(10)
        if gate.check(job(number), NOW) == Admit():
            admitted.append(number)

    threads = [threading.Thread(target=come, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(admitted) == 5
    assert gate.free() == 0
    for number in range(20):
        gate.release(job(number))
    assert gate.free() == 5

"""Deadlines of many threads, kept by one."""

import threading

import pytest

from pidispatch.config.deadline import Deadlines

LONG_S = 600.0


def test_what_takes_too_long_is_acted_on_once() -> None:
    acted, count = threading.Event(), []

    def act() -> None:
        count.append(1)
        acted.set()

    with Deadlines().within(0.01, act):
        assert acted.wait(10)
    assert count == [1]


def test_what_ends_in_time_is_left_alone_and_a_later_one_is_not() -> None:
    deadlines, first, second = Deadlines(), threading.Event(), threading.Event()
    with deadlines.within(0.05, first.set):
        pass
    with deadlines.within(0.1, second.set):
        assert second.wait(10)
    assert not first.is_set()


def test_a_nearer_one_does_not_wait_for_a_farther_one() -> None:
    deadlines, far, near = Deadlines(), threading.Event(), threading.Event()
    with deadlines.within(LONG_S, far.set):
        with deadlines.within(0.01, near.set):
            assert near.wait(10)
        # And the one thread goes on for those that come after.
        again = threading.Event()
        with deadlines.within(0.01, again.set):
            assert again.wait(10)
    assert not far.is_set()


def test_one_thread_keeps_them_all() -> None:
    deadlines = Deadlines()
    before = threading.active_count()
    with deadlines.within(LONG_S, print), deadlines.within(LONG_S, print), deadlines.within(LONG_S, print):
        assert threading.active_count() == before + 1


def test_a_block_that_raises_has_no_deadline_any_more() -> None:
    deadlines, acted, later = Deadlines(), threading.Event(), threading.Event()
    with pytest.raises(KeyError), deadlines.within(0.05, acted.set):
        raise KeyError("x")
    with deadlines.within(0.1, later.set):
        assert later.wait(10)
    assert not acted.is_set()

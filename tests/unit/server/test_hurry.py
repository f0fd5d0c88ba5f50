"""A question that is given up after a time."""

import threading

import pytest

from pidispatch.server.hurry import GivenUp, within


def test_what_is_told_in_time_is_returned() -> None:
    assert within(5, lambda: 7) == 7
    assert within(None, lambda: 7) == 7


@pytest.mark.parametrize("seconds", [5, None])
def test_what_is_raised_in_time_is_raised(seconds: float | None) -> None:
    def refuse() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        within(seconds, refuse)


@pytest.mark.parametrize("seconds", [0.01, 0, -3])
def test_what_hangs_is_given_up(seconds: float) -> None:
    hanging = threading.Event()
    with pytest.raises(GivenUp):
        within(seconds, hanging.wait)
    hanging.set()

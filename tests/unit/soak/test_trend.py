"""What grows is told from what merely goes up and down."""

import random

import pytest

from tests.soak.trend import LEAST_POINTS, floors, trend


def line(per_minute: float, level: float = 0.0, noise: float = 0.0, points: int = 60) -> list[tuple[float, float]]:
    drawn = random.Random(1)
    return [(10.0 * at, level + per_minute * at / 6 + drawn.gauss(0, noise)) for at in range(points)]


def test_the_slope_of_a_line_is_found() -> None:
    found = trend([line(3.0, 100)])

    assert found is not None
    assert found.per_minute == pytest.approx(3.0)
    assert found.exceeds(2.9)
    assert not found.exceeds(3.1)


def test_what_only_wavers_does_not_grow() -> None:
    found = trend([line(0.0, 100, noise=20)])

    assert found is not None
    assert not found.exceeds(1.0)


def test_each_series_has_a_level_of_its_own() -> None:
    # A process that was started anew begins anew: that one of them lies higher is no growth.
    later = [(at + 1000, value + 500) for at, value in line(2.0, points=10)]
    found = trend([line(2.0, points=10), later])

    assert found is not None
    assert found.per_minute == pytest.approx(2.0)


def test_growth_is_found_in_noise() -> None:
    found = trend([line(50.0, noise=20)])

    assert found is not None
    assert found.exceeds(30.0)


@pytest.mark.parametrize("series", [[], [[(1.0, 2.0)]], [line(1.0, points=LEAST_POINTS - 1)], [[(1.0, 2.0)] * 20]])
def test_too_little_says_nothing(series: list[list[tuple[float, float]]]) -> None:
    assert trend(series) is None


def test_the_least_of_each_minute_stands_for_it() -> None:
    assert floors([(0.0, 5.0), (10.0, 3.0), (59.9, 9.0), (60.0, 8.0), (130.0, 7.0)]) == [(0, 3), (60, 8), (120, 7)]

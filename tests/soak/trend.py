"""Whether something that is measured again and again grows: a line through the points, and how sure it is."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

#: Fewer points say nothing.
LEAST_POINTS: Final = 6
#: How many standard errors of the slope count as certain.
_CERTAIN: Final = 2.0

#: Seconds of which the least value stands for all: what jobs in hand add comes and goes.
WINDOW_S: Final = 60.0

#: Points of one process: seconds and the value at them.
Series = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Trend:
    """The slope per minute of a line, and its standard error."""

    per_minute: float
    error: float

    def exceeds(self, bound: float) -> bool:
        """Whether it certainly grows faster than `bound` per minute."""
        return self.per_minute - _CERTAIN * self.error > bound


def trend(series: Iterable[Series]) -> Trend | None:
    """The common slope of several series, each with a level of its own; `None` where they say too little.

    Least squares: https://en.wikipedia.org/wiki/Fixed_effects_model
    """
    found = [one for one in series if len(one) > 1]
    centred = [point for one in found for point in _centred(one)]
    spread = sum(x * x for x, _ in centred)
    free = len(centred) - len(found) - 1
    if len(centred) < LEAST_POINTS or free < 1 or spread == 0:
        return None
    slope = sum(x * y for x, y in centred) / spread
    scatter = sum((y - slope * x) ** 2 for x, y in centred) / free
    return Trend(slope * 60, math.sqrt(scatter / spread) * 60)


def floors(one: Series) -> Series:
    """The least value of each window, at the begin of the window."""
    least: dict[int, float] = {}
    for at, value in one:
        window = int(at // WINDOW_S)
        least[window] = min(value, least.get(window, value))
    return [(window * WINDOW_S, value) for window, value in sorted(least.items())]


def _centred(one: Series) -> list[tuple[float, float]]:
    x_mean = sum(x for x, _ in one) / len(one)
    y_mean = sum(y for _, y in one) / len(one)
    return [(x - x_mean, y - y_mean) for x, y in one]

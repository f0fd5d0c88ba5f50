"""By the clock of the soak every duration of the queue is a tenth, and nothing else changes."""

import math

from pidispatch.values.limits import Limits
from tests.soak.limits import UNCHANGED, tenth

REAL = Limits()
SHORT = tenth(REAL)


def test_each_field_is_a_tenth_or_as_it_was() -> None:
    for name in Limits.model_fields:
        real, short = getattr(REAL, name), getattr(SHORT, name)
        of_the_queue = name.endswith(("_s", "_ms")) and name not in UNCHANGED
        assert math.isclose(short, real / 10 if of_the_queue else real), name
        assert type(short) is type(real), name


def test_what_stays_is_what_there_is() -> None:
    assert set(Limits.model_fields) >= UNCHANGED


def test_the_queue_lives_ten_times_as_fast() -> None:
    assert (SHORT.lease_s, SHORT.visibility_s, SHORT.retry_base_ms, SHORT.stop_grace_s) == (6, 12, 6000, 5)

"""Which counter an instant falls into, and when the next begins."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.money.windows import Window, token_key

INSTANTS = st.integers(min_value=0, max_value=4_000_000_000).map(lambda s: datetime.fromtimestamp(s, UTC))


@pytest.mark.example("ch2 EX-7", "a week is named by its Monday, also across the end of a month or a year")
@pytest.mark.parametrize(
    ("instant", "key"),
    [
        (datetime(2026, 2, 1, tzinfo=UTC), "budget:w:2026-01-26"),
        (datetime(2027, 1, 1, tzinfo=UTC), "budget:w:2026-12-28"),
        (datetime(2026, 1, 26, tzinfo=UTC), "budget:w:2026-01-26"),
    ],
)
def test_a_week_is_named_by_its_monday(instant: datetime, key: str) -> None:
    assert Window.WEEK.key(instant) == key


def test_days_and_months_are_those_of_utc() -> None:
    late = datetime(2026, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert (Window.DAY.key(late), Window.MONTH.key(late)) == ("budget:2026-02-28", "budget:m:2026-02")
    assert token_key(late) == "budget:t:2026-02-28"
    assert Window.DAY.key(late, "budget:s:86f279ce9c29f106") == "budget:s:86f279ce9c29f106:2026-02-28"


@given(INSTANTS, st.sampled_from(Window))
def test_windows_tile_the_calendar(now: datetime, window: Window) -> None:
    first, ends = window.first(now), window.ends(now)
    assert first <= now < ends
    assert window.first(ends) == ends
    assert window.key(first) == window.key(now) == window.key(ends - timedelta(microseconds=1))
    assert window.key(ends) != window.key(now)


@given(INSTANTS, st.sampled_from(Window))
def test_a_counter_outlives_its_window(now: datetime, window: Window) -> None:
    assert timedelta(milliseconds=window.ttl_ms) > window.ends(now) - window.first(now)

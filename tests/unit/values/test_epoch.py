"""Instants as whole numbers: exact, whatever the zone, and back again."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.values.epoch import from_ms, to_ms, to_us

INSTANTS = st.datetimes(timezones=st.just(UTC))


@given(INSTANTS)
def test_back_again_without_the_rest_of_its_millisecond(instant: datetime) -> None:
    rest = timedelta(microseconds=instant.microsecond % 1000)
    assert from_ms(to_ms(instant)) == instant - rest
    assert to_us(instant) // 1000 == to_ms(instant)


def test_the_beginning_and_what_lies_before_it() -> None:
    assert (to_ms(datetime(1970, 1, 1, tzinfo=UTC)), to_us(datetime(1970, 1, 1, tzinfo=UTC))) == (0, 0)
    assert to_ms(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == -1
    assert to_ms(datetime(2026, 5, 5, 5, tzinfo=timezone(timedelta(hours=2)))) == 1777950000000


def test_what_no_calendar_holds_is_an_error() -> None:
    with pytest.raises(OverflowError):
        from_ms(10**18)

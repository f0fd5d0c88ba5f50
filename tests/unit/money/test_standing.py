"""How full the windows are, as it is shown."""

from datetime import UTC, datetime

import pytest

from pidispatch.money.standing import keys, records_suffice, standing
from tests.support.settings import settings_of

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


def test_every_counter_that_is_shown_is_asked_for() -> None:
    assert keys(NOW) == ("budget:2026-05-04", "budget:w:2026-05-04", "budget:m:2026-05", "budget:t:2026-05-04")


def test_what_was_counted_stands_beside_its_cap() -> None:
    settings = settings_of({"PI_DAILY_CAP": "10", "PI_MONTHLY_CAP": "40", "PI_DAILY_TOKEN_CAP": "1000"})
    day, week, month, tokens = standing(settings, {"budget:2026-05-04": 10, "budget:t:2026-05-04": 999}, NOW)
    assert (day.window, day.counted, day.cap, day.full, day.variable) == ("day", 10, 10, True, "PI_DAILY_CAP")
    assert (week.counted, week.cap, week.full) == (0, None, False)
    assert (month.counted, month.cap, month.full, month.frees) == (0, 40, False, datetime(2026, 6, 1, tzinfo=UTC))
    assert (tokens.window, tokens.counted, tokens.cap, tokens.full) == ("tokens", 999, 1000, False)
    assert (tokens.frees, tokens.variable) == (datetime(2026, 5, 5, tzinfo=UTC), "PI_DAILY_TOKEN_CAP")


def test_a_window_is_full_where_it_is_held() -> None:
    settings = settings_of({"PI_DAILY_CAP": "25", "PI_SOFT_HOLD_PCT": "80"})
    for counted, full in ((19, False), (20, True), (25, True)):
        day, *_ = standing(settings, {"budget:2026-05-04": counted}, NOW)
        assert (day.holds_from, day.full) == (20, full)


def test_without_a_cap_on_tokens_none_are_too_many() -> None:
    *_, tokens = standing(settings_of({}), {"budget:t:2026-05-04": 10**9}, NOW)
    assert (tokens.cap, tokens.full) == (None, False)


@pytest.mark.parametrize(
    ("variables", "suffice"),
    [
        ({}, True),
        ({"PI_MONTHLY_CAP": "400"}, False),
        ({"PI_MONTHLY_CAP": "400", "PI_LOG_RETENTION_DAYS": "32"}, True),
        ({"PI_LOG_RETENTION_DAYS": "31"}, False),
        ({"PI_LOG_RETENTION_DAYS": "0"}, True),
    ],
)
def test_records_stay_as_long_as_the_month_they_are_counted_in(variables: dict[str, str], *, suffice: bool) -> None:
    assert records_suffice(settings_of(variables)) is suffice

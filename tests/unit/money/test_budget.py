"""The question a run asks, and the refusals that its answers mean."""

from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from pidispatch.jobs.charges import TurnedAway
from pidispatch.money.budget import Budget
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason
from tests.support.settings import settings_of

NOW = datetime(2026, 5, 4, 23, 59, 59, tzinfo=UTC)


def budget(**variables: str) -> Budget:
    return Budget(settings_of(variables))


def test_the_day_is_always_bounded() -> None:
    (ledger,) = budget().ask(NOW).ledgers
    assert [(one.key, one.cap) for one in ledger.counters] == [("budget:2026-05-04", 25)]
    assert (ledger.soft_pct, budget().ask(NOW).tokens) == (None, None)


def test_every_cap_is_asked_for_and_nothing_else() -> None:
    caps = {"PI_DAILY_CAP": "2", "PI_WEEKLY_CAP": "5", "PI_MONTHLY_CAP": "9"}
    ask = budget(**caps, PI_SOFT_HOLD_PCT="80", PI_DAILY_TOKEN_CAP="1000").ask(NOW)
    (ledger,) = ask.ledgers
    assert [(one.window, one.key, one.cap, one.ttl_ms // 86_400_000) for one in ledger.counters] == [
        ("day", "budget:2026-05-04", 2, 2),
        ("week", "budget:w:2026-05-04", 5, 9),
        ("month", "budget:m:2026-05", 9, 40),
    ]
    assert ledger.soft_pct == 80
    assert ask.tokens is not None
    assert (ask.tokens.key, ask.tokens.cap) == ("budget:t:2026-05-04", 1000)


def test_tokens_are_booked_only_where_they_are_bounded() -> None:
    assert budget().tokens(NOW, 500) is None
    bounded = budget(PI_DAILY_TOKEN_CAP="1000")
    assert bounded.tokens(NOW, 0) is None
    assert bounded.tokens(NOW, 500) == ("budget:t:2026-05-04", 172_800_000, 500)


def turned_away(kind: str, window: str, amount: int, cap: int) -> TurnedAway:
    return TurnedAway.model_validate({"kind": kind, "ledger": 0, "window": window, "amount": amount, "cap": cap})


@pytest.mark.example("ch8 F13", "a refusal by a cap names the cap, its variable, and when it frees by itself")
@pytest.mark.parametrize(
    ("found", "reason", "cause", "words", "event"),
    [
        (
            turned_away("over", "day", 26, 25),
            Reason.OVER_BUDGET,
            "day",
            ("25 runs of this day", "2026-05-05 00:00 UTC", "PI_DAILY_CAP=25"),
            {"event": "over_budget", "window": "day", "reserved": 26, "cap": 25},
        ),
        (
            turned_away("over", "week", 6, 5),
            Reason.OVER_BUDGET,
            "week",
            ("5 runs of this week", "2026-05-11 00:00 UTC", "PI_WEEKLY_CAP=5"),
            {"event": "over_budget", "window": "week", "reserved": 6, "cap": 5},
        ),
        (
            turned_away("soft", "month", 9, 10),
            Reason.SOFT_HOLD,
            "month",
            ("9 of the 10 runs", "80 percent", "2026-06-01 00:00 UTC", "PI_SOFT_HOLD_PCT=80", "PI_MONTHLY_CAP=10"),
            {"event": "soft_hold", "window": "month", "reserved": 9, "cap": 10, "pct": 80},
        ),
        (
            turned_away("tokens", "", 1499, 1000),
            Reason.DAILY_TOKEN_CAP,
            None,
            ("1499 tokens", "2026-05-05 00:00 UTC", "PI_DAILY_TOKEN_CAP=1000"),
            {"event": "over_token_budget", "spent": 1499, "cap": 1000},
        ),
    ],
)
def test_a_refusal_says_what_lifts_it(
    found: TurnedAway, reason: Reason, cause: str | None, words: tuple[str, ...], event: dict[str, object]
) -> None:
    with capture_logs() as logs:
        refused = budget(PI_SOFT_HOLD_PCT="80").refusal("local-1", found, NOW)
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.cause) == (reason, cause)
    for word in words:
        assert word in f"{refused.detail}; {refused.remedy}"
    assert logs == [{**event, "jobId": "local-1", "log_level": "info"}]

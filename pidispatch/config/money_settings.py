"""The settings of money: how many runs there may be, and how many tokens."""

from pydantic_settings import BaseSettings

from pidispatch.config.field import setting
from pidispatch.config.kinds import Percent, PositiveInt


class MoneySettings(BaseSettings):
    """Part of `Settings`."""

    daily_cap: PositiveInt = setting(
        25,
        "PI_DAILY_CAP",
        "Most runs that are started on a day (UTC), by all workers of the deployment together. Always in force.",
        unit="runs",
        bound="1 or more",
        remedy="PI_DAILY_CAP=25",
    )
    weekly_cap: PositiveInt | None = setting(
        None,
        "PI_WEEKLY_CAP",
        "Most runs that are started in a week, from Monday on (UTC).",
        unit="runs",
        bound="1 or more; unset or empty: no cap",
        remedy="PI_WEEKLY_CAP=100",
    )
    monthly_cap: PositiveInt | None = setting(
        None,
        "PI_MONTHLY_CAP",
        "Most runs that are started in a month (UTC).",
        unit="runs",
        bound="1 or more; unset or empty: no cap",
        remedy="PI_MONTHLY_CAP=300",
    )
    soft_hold_pct: Percent | None = setting(
        None,
        "PI_SOFT_HOLD_PCT",
        "Percent of each of these caps from which on nothing new is started, so that something is left to decide on.",
        unit="percent",
        bound="1 to 99; unset or empty: up to the cap",
        remedy="PI_SOFT_HOLD_PCT=80",
    )
    daily_token_cap: PositiveInt | None = setting(
        None,
        "PI_DAILY_TOKEN_CAP",
        "Tokens of a day (UTC), cache included, after which no run is started. What runs goes on to its own end, so a "
        "day may pass it by what its last runs use.",
        unit="tokens",
        bound="1 or more; unset or empty: no cap",
        remedy="PI_DAILY_TOKEN_CAP=5000000",
    )

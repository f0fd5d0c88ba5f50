"""How full the windows are now, for who looks at them. Nothing is decided on it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from pidispatch.config.settings import Settings
from pidispatch.money.budget import TOKENS_VARIABLE, VARIABLES, Budget
from pidispatch.money.windows import Window, token_key
from pidispatch.values.base import Value


class WindowSeen(Value):
    """One window of the deployment."""

    #: `day`, `week` or `month`; `tokens` for the tokens of the day.
    window: str
    #: Runs that were counted in it, refused tries too; or tokens.
    counted: int
    #: `None` where nothing bounds it.
    cap: int | None
    #: From how many on nothing new is started; `None` where that is the cap.
    holds_from: int | None
    #: Whether a run that asks now would be refused or held.
    full: bool
    #: When the next window begins.
    frees: datetime
    #: The variable that sets the cap.
    variable: str


#: Days after which the record of a run is needed by no window: the longest is a month.
RECORDS_DAYS: Final = 32


def records_suffice(settings: Settings) -> bool:
    """Whether records stay long enough for every window to be counted anew from them.

    The default keeps them a little less, which matters to the month alone.
    """
    days = settings.log_retention_days
    matters = "log_retention_days" in settings.model_fields_set or settings.monthly_cap is not None
    return days == 0 or days >= RECORDS_DAYS or not matters


def keys(now: datetime) -> tuple[str, ...]:
    """The counters that `standing` needs."""
    return (*(window.key(now) for window in Window), token_key(now))


def standing(settings: Settings, counted: Mapping[str, int], now: datetime) -> tuple[WindowSeen, ...]:
    """Every window, by the amounts of its counters and the caps of `settings`."""
    caps, soft = Budget(settings).caps, settings.soft_hold_pct
    seen = []
    for window in Window:
        cap, amount = caps.get(window), counted.get(window.key(now), 0)
        holds_from = None if cap is None or soft is None else cap * soft // 100
        seen.append(
            WindowSeen(
                window=window,
                counted=amount,
                cap=cap,
                holds_from=holds_from,
                full=cap is not None and amount >= (cap if holds_from is None else holds_from),
                frees=window.ends(now),
                variable=VARIABLES[window],
            )
        )
    tokens, cap = counted.get(token_key(now), 0), settings.daily_token_cap
    seen.append(
        WindowSeen(
            window="tokens",
            counted=tokens,
            cap=cap,
            holds_from=None,
            full=cap is not None and tokens >= cap,
            frees=Window.DAY.ends(now),
            variable=TOKENS_VARIABLE,
        )
    )
    return tuple(seen)

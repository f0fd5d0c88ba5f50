"""What bounds the runs of a deployment: the question that each of them asks, and what an answer means to a person.

Asked as the last rung of the ladder, when nothing else stands against the run (docs/explanation/money.md).
"""

from datetime import datetime
from typing import Final

from pidispatch.config.log import log
from pidispatch.config.settings import Settings
from pidispatch.jobs.charges import Ask, Counter, Ledger, TokenCap, TurnedAway
from pidispatch.money.windows import Window, token_key
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason

#: The variable that sets the cap of each window.
VARIABLES: Final = {
    Window.DAY: "PI_DAILY_CAP",
    Window.WEEK: "PI_WEEKLY_CAP",
    Window.MONTH: "PI_MONTHLY_CAP",
}
TOKENS_VARIABLE: Final = "PI_DAILY_TOKEN_CAP"
SOFT_VARIABLE: Final = "PI_SOFT_HOLD_PCT"
_ANEW: Final = "and start the worker anew"


class Budget:
    """The caps of one program, as its settings name them."""

    def __init__(self, settings: Settings) -> None:
        self._soft_pct = settings.soft_hold_pct
        self._token_cap = settings.daily_token_cap
        named = {
            Window.DAY: settings.daily_cap,
            Window.WEEK: settings.weekly_cap,
            Window.MONTH: settings.monthly_cap,
        }
        #: The caps that there are.
        self.caps = {window: cap for window, cap in named.items() if cap is not None}

    def ask(self, now: datetime) -> Ask:
        """What a run that begins at `now` asks: the day's tokens first, then every window with a cap."""
        counters = tuple(
            Counter(window=window, key=window.key(now), ttl_ms=window.ttl_ms, cap=cap)
            for window, cap in self.caps.items()
        )
        tokens = None if self._token_cap is None else TokenCap(key=token_key(now), cap=self._token_cap)
        return Ask(ledgers=(Ledger(counters=counters, soft_pct=self._soft_pct),), tokens=tokens)

    def tokens(self, now: datetime, total: int) -> tuple[str, int, int] | None:
        """Counter, its stay in milliseconds and amount of what a run took; `None` where nothing bounds tokens."""
        if self._token_cap is None or total <= 0:
            return None
        return token_key(now), Window.DAY.ttl_ms, total

    def refusal(self, job_id: str, found: TurnedAway, now: datetime) -> Refused:
        """The refusal that an answer means, and one line of it in the log. It names what lifts the cap."""
        if found.kind == "tokens":
            return _out_of_tokens(job_id, found, now)
        window = Window(found.window)
        again = f"wait until {_shown(window.ends(now))}"
        if found.kind == "over":
            log().info("over_budget", jobId=job_id, window=window, reserved=found.amount, cap=found.cap)
            return Refused(
                reason=Reason.OVER_BUDGET,
                cause=window,
                detail=f"all {found.cap} runs of this {window} are used up; this would be number {found.amount}",
                remedy=f"{again}, or raise {VARIABLES[window]}={found.cap} {_ANEW}",
            )
        log().info("soft_hold", jobId=job_id, window=window, reserved=found.amount, cap=found.cap, pct=self._soft_pct)
        return Refused(
            reason=Reason.SOFT_HOLD,
            cause=window,
            detail=f"new starts are held: with this one, {found.amount} of the {found.cap} runs of this {window} would "
            f"be used, which is more than {self._soft_pct} percent",
            remedy=f"{again}, or raise {SOFT_VARIABLE}={self._soft_pct} or {VARIABLES[window]}={found.cap} {_ANEW}",
        )


def _out_of_tokens(job_id: str, found: TurnedAway, now: datetime) -> Refused:
    log().info("over_token_budget", jobId=job_id, spent=found.amount, cap=found.cap)
    return Refused(
        reason=Reason.DAILY_TOKEN_CAP,
        detail=f"{found.amount} tokens are spent today, of {found.cap}",
        remedy=f"wait until {_shown(Window.DAY.ends(now))}, or raise {TOKENS_VARIABLE}={found.cap} {_ANEW}",
    )


def _shown(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M} UTC"

"""What an attempt stays counted for, from its reserve to its record (docs/explanation/money.md)."""

from typing import Final

from pidispatch.config.log import log
from pidispatch.runs.site import Site
from pidispatch.values.outcome import InfraFailed, Outcome, Refused
from pidispatch.values.reason import Reason
from pidispatch.values.usage import Telemetry

#: Refusals by a cap. The ledger that refuses keeps the try.
_CAPS: Final = frozenset({Reason.OVER_BUDGET, Reason.SOFT_HOLD, Reason.DAILY_TOKEN_CAP})
#: More than any run can use in its time.
_MOST_TOKENS: Final = 10**12


def still_charged(site: Site, outcome: Outcome) -> dict[str, int]:
    """What an attempt that ended so stays counted for; the rest is given back with its end.

    Given back is what no container ran for: it never started, or something of ours or of the job's settings ended it
    before. Whoever ends it by will (time, cancel) has used it up.
    """
    match outcome:
        case InfraFailed(reason=Reason.CONTAINER_NEVER_STARTED):
            return {}
        case InfraFailed() | Refused() if not site.spent and outcome.reason not in _CAPS:
            return {}
    return dict(site.charged)


def book_tokens(site: Site, telemetry: Telemetry) -> None:
    """Count what the container used. A fault is logged and changes no outcome: the run is paid for."""
    # What a box claims is bounded: a number that no run can use up would break the counter for all others.
    total = min(int((telemetry.tokens or {}).get("total") or 0), _MOST_TOKENS)
    if total <= 0:
        return
    try:
        site.charged |= site.book(site.job, site.counted_at, total)
    except Exception as error:
        log().error("token_spend_error", jobId=site.job.id, cause=getattr(error, "cause", None) or type(error).__name__)

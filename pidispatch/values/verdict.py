"""What a gate says to a job that wants to run now: come in, come back later, or never."""

from enum import StrEnum

from pidispatch.values.base import Value
from pidispatch.values.outcome import Refused


class Why(StrEnum):
    """Why a job sleeps: the word its row carries (docs/reference/states.md)."""

    #: All job slots of the machine are taken.
    HOST_BUSY = "host-busy"
    #: Another job works in the same folder.
    SCOPE_BUSY = "scope-busy"
    #: The quiet hours of its folder last until then.
    QUIET_HOURS = "quiet-hours"
    #: Its queue is paused.
    PAUSED = "paused"
    #: Its forge answers no more questions for now.
    FORGE_LIMITED = "forge-limited"
    #: The worker stopped before anything was spent.
    STOPPED = "worker-stopped"
    #: An attempt failed for reasons outside of the job; the next one comes.
    RETRY = "retry"


class Admit(Value):
    """Nothing stands against it."""


class Defer(Value):
    """Not now. No attempt is used up, no record written, nothing is held until then."""

    why: Why
    #: Milliseconds from now.
    delay_ms: int


Verdict = Admit | Defer | Refused

"""The stops from outside pi: what the runner does when the in-process extension did not stop the agent.

Both are pure state machines over pi's events. The extension (``budget.js``) is exact and normally comes first; these
abort one request late at worst, and again on every later turn, because a queued follow-up opens a new run with a
fresh abort signal. Rules: docs/reference/runner.md.
"""

from dataclasses import dataclass
from enum import Enum

from pirunner.records import Record


class Stop(Enum):
    """What an event asks for."""

    NO = "no"
    #: Abort, and say so: the first time.
    FIRST = "first"
    #: Abort again, silently.
    AGAIN = "again"


@dataclass
class _Latch:
    """A stop that is announced once and enforced for ever."""

    tripped: bool = False

    def trip(self) -> Stop:
        if self.tripped:
            return Stop.AGAIN
        self.tripped = True
        return Stop.FIRST


class TurnBackstop:
    """Counts the turns that start, and aborts each one past the maximum.

    The turn that opens pi's automatic retry of a turn in which no tool ran is exempt: it repeats work, it adds none.
    """

    def __init__(self, max_turns: int) -> None:
        self._max_turns = max_turns
        self._latch = _Latch()
        self._tool_ran = False
        self._retry_armed = False
        self.turns = 0
        self.retry_turns = 0

    @property
    def tripped(self) -> bool:
        """Whether the turn budget stopped the agent."""
        return self._latch.tripped

    def observe(self, event: str) -> Stop:
        """Take the type of pi's next event."""
        match event:
            case "tool_execution_start":
                self._tool_ran = True
            case "auto_retry_start":
                self._retry_armed = not self._tool_ran
            case "auto_retry_end" | "agent_settled":
                self._retry_armed = False
            case "turn_start":
                return self._turn_start()
        return Stop.NO

    def _turn_start(self) -> Stop:
        self._tool_ran = False
        if self._retry_armed:
            self._retry_armed = False
            self.retry_turns += 1
            return Stop.NO
        self.turns += 1
        return self._latch.trip() if self.turns > self._max_turns else Stop.NO

    def turn_ended(self, event: Record, turns: int) -> Stop:
        """Take a ``turn_end`` with the number of turns completed so far.

        After the last turn nothing may follow. A turn without tool results ends the run by itself and is no stop:
        the budget was met, not exceeded.
        """
        return self._latch.trip() if turns >= self._max_turns and event.get("toolResults") else Stop.NO


class TokenBackstop:
    """Stops the agent once it spent more tokens than the cap. It lags by one call by nature."""

    def __init__(self, max_tokens: int | None) -> None:
        self._max_tokens = max_tokens
        self._latch = _Latch()

    @property
    def tripped(self) -> bool:
        """Whether the token budget stopped the agent."""
        return self._latch.tripped

    def observe(self, event: Record, total: int) -> Stop:
        """Take pi's next event with the tokens metered so far. A final answer past the cap is a completed run."""
        if self._max_tokens is None or total <= self._max_tokens:
            return Stop.NO
        kind = event.get("type")
        more_follows = kind == "turn_start" or (kind == "turn_end" and bool(event.get("toolResults")))
        return self._latch.trip() if more_follows else Stop.NO

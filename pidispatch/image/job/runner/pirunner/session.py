"""One prompt from its sending to the agent's rest: metering, budgets, progress lines.

The session knows no processes' ends and prints no exit line; it turns pi's events into counts and into aborts.
"""

import time
from dataclasses import dataclass

from pirunner import records
from pirunner.agent import Agent, AgentGone
from pirunner.budget import Stop, TokenBackstop, TurnBackstop
from pirunner.environment import Environment
from pirunner.layout import Layout
from pirunner.lines import Lines
from pirunner.meter import Meter
from pirunner.records import Record
from pirunner.refusal import InfraFailure, config
from pirunner.verdict import Ending, Verdict, decide, means_not_configured

_PROMPT, _STATE = "prompt", "state-after-prompt"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Seconds the session waits."""

    reply: float
    abort: float
    settle: float


class NoReply(Exception):
    """pi took a command and never answered it."""


class Session:
    """The run of one prompt. `converse` drives it; `observe` also takes events from elsewhere."""

    def __init__(self, agent: Agent, environment: Environment, layout: Layout, lines: Lines) -> None:
        self._agent = agent
        self._lines = lines
        self._environment = environment
        self._limits = Limits(reply=layout.reply_seconds, abort=layout.abort_seconds, settle=layout.settle_seconds)
        self._turn_stop = TurnBackstop(environment.max_turns)
        self._token_stop = TokenBackstop(environment.max_tokens)
        self._ending = Ending(max_attempts=environment.retry_max)
        self._deadline: float | None = None
        self._settled = False
        self.meter = Meter()

    # -- the conversation

    def converse(self, prompt: str) -> Verdict:
        """Send the prompt once and wait until the agent rests.

        Raises InfraFailure or Refusal when pi rejects the prompt: nothing was spent then. Raises Terminated.
        """
        self._agent.send("prompt", id=_PROMPT, message=prompt)
        try:
            if self._accepted():
                self._until_settled()
        except NoReply as error:
            return Verdict(code=1, reason="infra", message=str(error))
        except AgentGone:
            if not self._settled and not self._stopped:
                return Verdict(code=1, reason="infra", message=self._agent.last_words())
        return decide(self._ending, turn_stop=self._turn_stop.tripped, token_stop=self._token_stop.tripped)

    def _accepted(self) -> bool:
        """Wait until pi took the prompt; False when that started no run."""
        response = self._reply(_PROMPT)
        if response.get("success") is not True:
            error = records.text(response, "error")
            message = f"pi did not take the prompt: {error}"
            raise config(message) if means_not_configured(error) else InfraFailure(message)
        if records.mapping(response, "data").get("disposition") != "handled":
            return True
        # An extension took the prompt. It may have started a run of its own, or none at all.
        self._agent.send("get_state", id=_STATE)
        state = records.mapping(self._reply(_STATE), "data")
        return not self._settled and (state.get("isStreaming") is True or self.meter.turns > 0)

    def _reply(self, identity: str) -> Record:
        deadline = time.monotonic() + self._limits.reply
        while (record := self._agent.receive(deadline)) is not None:
            if record.get("type") == "response" and record.get("id") == identity:
                return record
            self.observe(record)
        raise NoReply(f"pi did not answer {identity} within {self._limits.reply:g} s")

    def _until_settled(self) -> None:
        """Take events until the run is over, or its time to end after an abort or its last event has passed."""
        while not self._settled and (record := self._agent.receive(self._deadline)) is not None:
            self.observe(record)

    def abort(self, seconds: float) -> None:
        """Stop the run and take what it still reports about its spending, for at most `seconds`."""
        self._agent.send("abort", id="abort")
        deadline = time.monotonic() + seconds
        try:
            while not self._settled and (record := self._agent.receive(deadline)) is not None:
                self.observe(record)
                if record.get("type") == "response" and record.get("id") == "abort":
                    return
        except AgentGone:
            return

    # -- the events

    def observe(self, record: Record) -> None:
        """Take one event: count it, print progress, abort when a budget is spent."""
        turns_before = self.meter.turns
        self.meter.observe(record)
        self._ending.observe(record)
        kind = records.text(record, "type")
        if self.meter.turns > turns_before:
            self._lines.event("turn", turns=self.meter.turns, tokens=self.meter.total.total)
        if kind == "auto_retry_start":
            attempt, most = records.integer(record, "attempt"), records.integer(record, "maxAttempts")
            self._lines.event("pi_auto_retry", attempt=attempt or 0, maxAttempts=most or 0)
        self._enforce(kind, record)
        self._expect_end(kind, record)

    def _enforce(self, kind: str, record: Record) -> None:
        stop = self._turn_stop.observe(kind)
        if kind == "turn_end":
            stop = self._turn_stop.turn_ended(record, self.meter.turns)
        if stop is Stop.FIRST:
            limit = self._environment.max_turns
            self._lines.event("turn_budget_exceeded", turns=self.meter.turns, maxTurns=limit)
        if stop is Stop.NO:
            stop = self._token_stop.observe(record, self.meter.total.total)
            if stop is Stop.FIRST:
                spent, cap = self.meter.total.total, self._environment.max_tokens
                self._lines.event("token_budget_exceeded", tokens=spent, maxTokens=cap)
        if stop is not Stop.NO:
            self._agent.send("abort")

    def _expect_end(self, kind: str, record: Record) -> None:
        """Set the time by which the run must have settled; without one, the agent has all the time it wants."""
        if kind == "agent_settled":
            self._settled = True
        elif self._stopped:
            self._deadline = self._deadline or time.monotonic() + self._limits.abort
        elif kind == "agent_end" and record.get("willRetry") is not True:
            # Work may still follow. If nothing does, and no word of rest comes either, this was the end.
            self._deadline = time.monotonic() + self._limits.settle
        elif kind:
            self._deadline = None

    @property
    def _stopped(self) -> bool:
        return self._turn_stop.tripped or self._token_stop.tripped

"""From how a run ended to its exit code and reason. Pure; the table is in docs/reference/runner.md.

Codes: 0 the agent ran, 1 the surroundings failed and another attempt may help, 2 determinate, 143 terminated.
"""

import re
from dataclasses import dataclass

from pirunner import records
from pirunner.records import Record

#: How providers' clients begin an error that means "this key may not": the status comes first or after their prefix.
_AUTH_REFUSED = re.compile(
    r"(?:401|403)(?:[\s:]|$)|(?:Azure OpenAI|OpenAI|Mistral) API error \((?:401|403)\): ", re.ASCII
)
#: What pi says at start-up when the model or its key is not there; repeating the job cannot change that.
_NOT_CONFIGURED = re.compile(
    r"no models? (?:available|selected|configured|found)|unknown provider|model \S+ not found|no api key|"
    r"api key (?:not found|is required|required|missing)|no credentials?|not authenticated",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How the run ended, in the exit line's terms."""

    code: int
    reason: str
    message: str = ""
    #: The model's last answer was cut at its output limit.
    truncated: bool = False


TERMINATED = Verdict(code=143, reason="terminated")


@dataclass(frozen=True, kw_only=True)
class Terminal:
    """The assistant message that ended the run."""

    stop_reason: str
    error: str


@dataclass(kw_only=True)
class Ending:
    """Watches the stream for what decides the verdict."""

    #: Restarts pi allows per failed turn, as configured.
    max_attempts: int
    terminal: Terminal | None = None
    _attempts: int = 0

    @property
    def retries_exhausted(self) -> bool:
        """Whether the last failure had no attempt left, so that pi's own view of it is unknown."""
        return self._attempts >= self.max_attempts

    def observe(self, record: Record) -> None:
        """Take pi's next event."""
        match record.get("type"):
            case "turn_end":
                self._keep(records.mapping(record, "message"))
            case "agent_end":
                for message in reversed(records.objects(record, "messages")):
                    if message.get("role") == "assistant":
                        self._keep(message)
                        break
            case "auto_retry_start":
                self._attempts = records.integer(record, "attempt") or self._attempts + 1
            case "auto_retry_end" if record.get("success") is True:
                self._attempts = 0

    def _keep(self, message: Record) -> None:
        if message.get("role") == "assistant":
            stop_reason = records.text(message, "stopReason")
            self.terminal = Terminal(stop_reason=stop_reason, error=records.text(message, "errorMessage"))


def decide(ending: Ending, *, turn_stop: bool, token_stop: bool) -> Verdict:
    """The verdict of a run that settled: budgets first, then the last message."""
    if turn_stop:
        return Verdict(code=2, reason="turn_budget")
    if token_stop:
        return Verdict(code=2, reason="token_budget")
    terminal = ending.terminal
    if terminal is None:
        return Verdict(code=1, reason="no-terminal-message", message="the agent ended without an answer")
    match terminal.stop_reason:
        case "stop" | "toolUse":
            return Verdict(code=0, reason=terminal.stop_reason)
        case "length":
            return Verdict(code=0, reason="length", truncated=True)
        case "aborted":
            return Verdict(code=2, reason="aborted", message=terminal.error)
        case "error" if _AUTH_REFUSED.match(terminal.error) and not ending.retries_exhausted:
            return Verdict(code=2, reason="provider-auth-refused", message=terminal.error)
        case "error":
            return Verdict(code=1, reason="error", message=terminal.error)
    return Verdict(code=1, reason=f"unknown-stop-reason:{terminal.stop_reason[:64]}", message=terminal.error)


def means_not_configured(text: str) -> bool:
    """Whether pi's own words at start-up name a missing model or credential: exit 2 ``config`` instead of 1."""
    return _NOT_CONFIGURED.search(text) is not None

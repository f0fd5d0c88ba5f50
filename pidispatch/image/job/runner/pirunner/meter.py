"""What the agent spent, counted from pi's event stream.

pi reports each model call with its own provider, model and usage, so a run that switches models is still split right.
Counted are the final form of every assistant message, model work nested in a tool result, summaries made when the
context is compacted, and usage entries an extension appended. Events that repeat a message (``turn_end``,
``agent_end``, ``message_update``) are not counted again.
Sources: docs/reference/runner.md; pi's own documentation, "JSON Event Stream" and "Message Types".
"""

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from pirunner import records
from pirunner.environment import MAX_SAFE_INTEGER
from pirunner.records import Record

#: Costs are kept to a trillionth of a dollar, so that sums are exact and rows add up to their total.
_COST_UNIT = Decimal("1e-12")
#: No single call costs a million dollars; a larger number is a broken one.
_COST_LIMIT = Decimal(1_000_000)

ModelKey = tuple[str, str]
NO_MODEL: ModelKey = ("", "")


class Source(StrEnum):
    """Whose call it was, for the three totals of the exit line."""

    #: The session's own turns and summaries.
    ROOT = "root"
    #: Work a tool did with a model.
    OTHER = "other"
    #: Usage an extension reported on its own.
    LOOSE = "loose"


@dataclass(frozen=True, kw_only=True)
class CallUsage:
    """Tokens and US dollars of one model call. `total` is billed tokens: cache reads and writes are in it."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    cache_write_1h: int
    reasoning: int
    total: int
    cost: Decimal
    unpriced: bool


@dataclass(kw_only=True)
class Row:
    """Sums over the calls of one model, or of several."""

    calls: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    reasoning: int = 0
    total: int = 0
    cost: Decimal = Decimal(0)
    #: Calls that used tokens but carry no price: the cost pi gave was 0 or no number.
    unpriced: int = 0

    def add(self, usage: CallUsage) -> None:
        """Count one more call."""
        self.merge(
            Row(
                calls=1,
                input=usage.input,
                output=usage.output,
                cache_read=usage.cache_read,
                cache_write=usage.cache_write,
                cache_write_1h=usage.cache_write_1h,
                reasoning=usage.reasoning,
                total=usage.total,
                cost=usage.cost,
                unpriced=int(usage.unpriced),
            )
        )

    def merge(self, other: "Row") -> None:
        """Add another row's sums to this one."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def read_usage(usage: Record) -> CallUsage:
    """One call's usage. Negative, fractional and absurd numbers count 0."""
    parts = [_count(usage, key) for key in ("input", "output", "cacheRead", "cacheWrite")]
    # A provider's own total may include what pi has no field for; it is never less than the parts.
    total = max(sum(parts), _count(usage, "totalTokens"))
    cost = _cost(records.mapping(usage, "cost").get("total"))
    return CallUsage(
        input=parts[0],
        output=parts[1],
        cache_read=parts[2],
        cache_write=parts[3],
        cache_write_1h=_count(usage, "cacheWrite1h"),
        reasoning=_count(usage, "reasoning"),
        total=total,
        cost=cost,
        unpriced=total > 0 and cost == 0,
    )


def _count(usage: Record, key: str) -> int:
    value = records.integer(usage, key)
    return value if value is not None and 0 <= value <= MAX_SAFE_INTEGER else 0


def _cost(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return Decimal(0)
    amount = Decimal(value)
    # These come first: comparing no-numbers and quantizing absurd ones raises.
    if not amount.is_finite() or not 0 <= amount < _COST_LIMIT:
        return Decimal(0)
    return amount.quantize(_COST_UNIT)


@dataclass(kw_only=True)
class Meter:
    """Turns, tokens and cost so far. `observe` takes pi's events in their order."""

    #: Assistant turns that ended with an answer or a tool call; failed and aborted ones are no turns.
    turns: int = 0
    total: Row = field(default_factory=Row)
    #: In first-seen order.
    by_model: dict[ModelKey, Row] = field(default_factory=dict)
    by_source: dict[Source, int] = field(default_factory=lambda: dict.fromkeys(Source, 0))
    #: Tokens in the model's context after its last complete answer, or None before the first.
    context_tokens: int | None = None
    _cut: int = 0
    _open: bool = False
    _last_model: ModelKey = NO_MODEL

    @property
    def unresolved(self) -> int:
        """Calls that had begun to answer and whose usage will never be known: cut off, or still running."""
        return self._cut + int(self._open)

    def observe(self, record: Record) -> None:
        """Count what one event adds; most events add nothing."""
        match record.get("type"):
            case "message_start":
                self._open = self._open or records.mapping(record, "message").get("role") == "assistant"
            case "message_end":
                self._message(records.mapping(record, "message"))
            case "compaction_end":
                usage = records.mapping(records.mapping(record, "result"), "usage")
                self._add(Source.ROOT, self._last_model, usage)
            case "entry_appended":
                entry = records.mapping(record, "entry")
                if entry.get("type") == "usage":
                    self._add(Source.LOOSE, _model_of(entry), records.mapping(entry, "usage"))

    def _message(self, message: Record) -> None:
        usage = records.mapping(message, "usage")
        if message.get("role") == "assistant":
            self._open = False
            self._last_model = _model_of(message)
            self._assistant(message, usage)
        elif message.get("role") == "toolResult":
            self._add(Source.OTHER, NO_MODEL, usage)

    def _assistant(self, message: Record, usage: Record) -> None:
        stopped = message.get("stopReason")
        spent = read_usage(usage).total
        if stopped not in ("error", "aborted"):
            self.turns += 1
            self.context_tokens = spent
        elif not spent and records.items(message, "content"):
            self._cut += 1
        # An abort between two turns leaves an empty message behind for which no request was made.
        if spent or stopped != "aborted":
            self._add(Source.ROOT, self._last_model, usage, even_empty=True)

    def _add(self, source: Source, model: ModelKey, usage: Record, even_empty: bool = False) -> None:
        if not usage and not even_empty:
            return
        call = read_usage(usage)
        self.total.add(call)
        self.by_model.setdefault(model, Row()).add(call)
        self.by_source[source] += call.total


def _model_of(record: Record) -> ModelKey:
    provider, model = records.text(record, "provider"), records.text(record, "model")
    return (provider, model) if provider and model else NO_MODEL

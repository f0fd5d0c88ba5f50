"""What a run used, as the runner inside the box reports it: claims that inform, and never decide."""

from pydantic import Field

from pidispatch.values.base import Number, Value
from pidispatch.values.reason import RunnerReason


class UsageRow(Value):
    """Usage of one provider and model over the run. All counts are tokens but `calls` and `unpriced`."""

    provider: str
    model: str
    calls: Number
    input: Number
    output: Number
    cache_read: Number
    cache_write: Number
    cache_write1h: Number = Field(alias="cacheWrite1h")
    reasoning: Number
    total: Number
    #: US dollars.
    cost: Number
    #: Calls whose price is not known; they add nothing to `cost`.
    unpriced: Number


class Usage(Value):
    """Usage by model: at most eight named rows and one `other` row."""

    v: int = Field(ge=1)
    pi_ai: str | None
    #: Named rows folded into the `other` row.
    truncated: int = Field(ge=0)
    models: tuple[UsageRow, ...] = Field(min_length=1, max_length=9)
    #: Where the numbers come from.
    source: str = "runner"


class Context(Value):
    """How full the model's context was at the end, in tokens."""

    tokens: int = Field(ge=0)
    window: int = Field(gt=0)


class Telemetry(Value):
    """Everything read from the runner's last line; a field is `None` where it was absent or malformed."""

    turns: int | None = None
    tokens: dict[str, Number | bool] | None = None
    usage: Usage | None = None
    context: Context | None = None
    reason: RunnerReason | None = None
    #: Text of the provider or of the runner: shown to the operator escaped, never logged or recorded.
    message: str | None = None
    truncated: bool = False

"""What the model can be told to do: one frozen value a step, and a scenario as a named tuple of steps.

A step answers one request. Which step that is follows from the request alone: the turn is the number of
assistant messages in it, and the last step repeats for ever. The one exception are faults with ``times``:
they answer that many requests of one (key, model id) pair and then stand aside, as if they were not in the
script.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, Union

from .usage import Usage, usage_of

Json: TypeAlias = Union[bool, int, float, str, "list[Json]", "dict[str, Json]", None]


@dataclass(frozen=True)
class Say:
    """Answer with text and stop."""

    text: str


@dataclass(frozen=True)
class Echo:
    """Answer with the text of the request's last user message, after ``prefix``."""

    prefix: str = ""


@dataclass(frozen=True)
class Call:
    """Ask for one tool call. ``arguments`` is the JSON object the tool gets."""

    tool: str
    arguments: Mapping[str, Json]

    def __post_init__(self) -> None:
        """A call without a tool cannot be sent."""
        _require(bool(self.tool), "a call needs the name of a tool")


@dataclass(frozen=True)
class Calls:
    """Ask for several tool calls in one answer."""

    calls: tuple[Call, ...]

    def __post_init__(self) -> None:
        """An answer that calls nothing is a Say."""
        _require(bool(self.calls), "calls needs at least one call")


@dataclass(frozen=True)
class Fault:
    """Answer with an HTTP error in the provider's own shape; ``times`` None = every time."""

    status: int
    message: str
    times: int | None = None

    def __post_init__(self) -> None:
        """Only client and server errors are faults."""
        _require(400 <= self.status <= 599, f"a fault's status is 400 to 599, not {self.status}")
        _check_times(self.times)


@dataclass(frozen=True)
class Cut:
    """Stream ``after_text``, then close the connection in the middle of the answer."""

    after_text: str
    times: int | None = None

    def __post_init__(self) -> None:
        """Bounds of ``times``."""
        _check_times(self.times)


@dataclass(frozen=True)
class Hang:
    """Accept the request and never answer it (until the client goes or the server stops)."""

    times: int | None = None

    def __post_init__(self) -> None:
        """Bounds of ``times``."""
        _check_times(self.times)


@dataclass(frozen=True)
class Slow:
    """Answer with ``text`` in ``chunks`` pieces, each sent ``chunk_delay_s`` seconds after the one before."""

    text: str
    chunk_delay_s: float
    chunks: int

    def __post_init__(self) -> None:
        """A stream has at least one piece, and time runs forward."""
        _require(self.chunks >= 1, f"slow needs at least 1 chunk, not {self.chunks}")
        _require(self.chunk_delay_s >= 0, f"slow cannot wait {self.chunk_delay_s} s")


@dataclass(frozen=True)
class Length:
    """Answer with text that ends because the token limit was reached."""

    text: str


@dataclass(frozen=True)
class NoUsage:
    """Answer with text but report no usage, as some gateways do."""

    text: str


Step: TypeAlias = Say | Echo | Call | Calls | Fault | Cut | Hang | Slow | Length | NoUsage


@dataclass(frozen=True)
class Scenario:
    """A script under a name. The name is the model id that asks for it."""

    name: str
    steps: tuple[Step, ...]
    #: Reported for every turn instead of ``usage_of(turn)``.
    usage: Usage | None = None

    def __post_init__(self) -> None:
        """A script has a name and something to answer, and does not run out of answers."""
        _require(bool(self.name), "a scenario needs a name")
        _require(bool(self.steps), f"scenario {self.name}: needs at least one step")
        _require(
            times_of(self.steps[-1]) is None,
            f"scenario {self.name}: the last step repeats for ever, so it cannot have times",
        )

    def usage_at(self, turn: int) -> Usage:
        """Usage reported with the answer to ``turn``."""
        return self.usage or usage_of(turn)


def times_of(step: Step) -> int | None:
    """How many requests the step answers before it stands aside; None = it never does."""
    return step.times if isinstance(step, Fault | Cut | Hang) else None


def _check_times(times: int | None) -> None:
    _require(times is None or times >= 1, f"times is 1 or more, or absent, not {times}")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)

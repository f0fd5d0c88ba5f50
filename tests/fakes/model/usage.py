"""Token counts the scripted model reports: a function of the turn alone, so tests know what to expect."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Literal

Api = Literal["openai", "anthropic"]


@dataclass(frozen=True)
class Usage:
    """Tokens of one or more answers. The four counts do not overlap; ``total`` is their sum."""

    #: Prompt tokens that were neither read from nor written to the cache.
    input: int = 0
    #: Prompt tokens read from the provider's cache.
    cached: int = 0
    #: Tokens of the answer.
    output: int = 0
    #: Prompt tokens written to the provider's cache.
    cache_write: int = 0

    def __post_init__(self) -> None:
        """Refuse counts no provider can report."""
        if any(count < 0 for count in astuple(self)):
            raise ValueError(f"token counts cannot be negative: {self}")

    @property
    def total(self) -> int:
        """Billed tokens, the cache included."""
        return self.input + self.cached + self.output + self.cache_write

    @property
    def prompt(self) -> int:
        """All prompt tokens: what OpenAI calls ``prompt_tokens``."""
        return self.input + self.cached + self.cache_write

    @property
    def started(self) -> Usage:
        """What Anthropic has reported when a stream begins: all a client knows of an answer that is cut off."""
        return Usage(self.input, self.cached, min(1, self.output), self.cache_write)

    def __add__(self, other: Usage) -> Usage:
        """The sum, column by column."""
        return Usage(
            self.input + other.input,
            self.cached + other.cached,
            self.output + other.output,
            self.cache_write + other.cache_write,
        )

    def seen_by(self, api: Api) -> Usage:
        """What a client of ``api`` can read of it.

        OpenAI reports no cache writes: those tokens are ordinary prompt tokens there. The total is the same.
        """
        if api == "anthropic":
            return self
        return Usage(self.input + self.cache_write, self.cached, self.output)


def usage_of(turn: int) -> Usage:
    """Usage of the answer to turn ``turn`` (0 = the first answer) unless the scenario overrides it.

    ======  =====  ======  ======  ===========  =====
    turn    input  cached  output  cache_write  total
    ======  =====  ======  ======  ===========  =====
    0       1000   0       50      300          1350
    n > 0   1000 + 100n  200  50   0            1250 + 100n
    ======  =====  ======  ======  ===========  =====
    """
    if turn == 0:
        return Usage(input=1000, output=50, cache_write=300)
    return Usage(input=1000 + 100 * turn, cached=200, output=50)


def total_usage(turns: int, fixed: Usage | None = None) -> Usage:
    """Sum over the first ``turns`` answers; ``fixed`` is the scenario's override of every turn's usage."""
    return sum((fixed or usage_of(turn) for turn in range(turns)), start=Usage())

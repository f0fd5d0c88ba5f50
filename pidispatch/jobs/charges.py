"""What a job asks of the counters of money before it may cost something, and what it is answered.

The counters are the store's; which ones there are, and what an answer means, is for the room `money` to say
(docs/explanation/money.md).
"""

from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from pidispatch.values.base import Value


class Counter(Value):
    """A counter of one window."""

    #: Name of its window.
    window: str
    #: Its key, without the prefix of all keys.
    key: str
    #: How long it stays after its first run, in milliseconds.
    ttl_ms: int
    #: The most it may come to.
    cap: int


class Ledger(Value):
    """Counters that a run is counted in together."""

    counters: tuple[Counter, ...]
    #: Percent of each cap from which on nothing new is started; `None`: up to the cap.
    soft_pct: int | None = None


class TokenCap(Value):
    """The counter of a day's tokens, which is only read: what a run takes is known at its end."""

    key: str
    #: Nothing is started once it has come to this.
    cap: int


class Ask(Value):
    """One run's question: first the tokens, then the ledgers in their order, narrow ones before wide ones."""

    ledgers: tuple[Ledger, ...] = ()
    tokens: TokenCap | None = None


class Reserved(Value):
    """The run may go on."""

    kind: Literal["reserved"] = "reserved"
    #: Whether the store still knows the job; where it lost it, what was counted cannot be given back.
    known: bool = True
    #: What it was counted for: amounts by key, without the prefix of all keys.
    charged: dict[str, int] = Field(default_factory=dict)


class TurnedAway(Value):
    """A cap stands against it, or another job of a rule that fires once."""

    #: `tokens`: those of the day are used up. `over`: the cap of a window. `soft`: its part of the cap. `once`: another
    #: job has spent its rule; nothing is counted then.
    kind: Literal["tokens", "over", "soft", "once"]
    #: Which ledger said so, counted from 0; -1 where none did.
    ledger: int
    #: Name of the window; empty where no ledger said so.
    window: str
    #: What the counter came to with this run, or the tokens that were spent.
    amount: int
    cap: int
    known: bool = True
    #: What stays counted: the ledger that refuses keeps the try.
    charged: dict[str, int] = Field(default_factory=dict)


#: Of a run that nothing bounds.
NOTHING: Final = Ask()
_VERDICT: Final[TypeAdapter[Reserved | TurnedAway]] = TypeAdapter(
    Annotated[Reserved | TurnedAway, Field(discriminator="kind")]
)


def verdict(text: str) -> Reserved | TurnedAway:
    """What the store answered, from its JSON."""
    return _VERDICT.validate_json(text)

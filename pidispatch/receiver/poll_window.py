"""Up to where something at a forge is dealt with: an instant, and what came after it and is dealt with all the same.

A list is shown with delay, and not in the order in which things came to be. So the instant lies somewhat before what
was seen last, and what was seen since then is remembered by its number.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from pydantic import ConfigDict, Field, ValidationError

from pidispatch.forges.polling import Look, Sight
from pidispatch.values.base import Value

#: Before anything that can be seen.
_ALWAYS: Final = datetime(2000, 1, 1, tzinfo=UTC)


class Window(Value):
    """What is known of one kind of things in one repository."""

    # One of a later version may hold more.
    model_config = ConfigDict(extra="ignore")

    since: datetime
    #: What is dealt with, by its number, with the instant at which it came to be.
    seen: dict[int, datetime] = Field(default_factory=dict)
    #: What is not decided, and in how many cycles it was not.
    undecided: dict[int, int] = Field(default_factory=dict)

    @classmethod
    def first(cls, look: Look) -> "Window":
        """After the first look: all that is there is dealt with."""
        return cls(since=_ALWAYS).after(look, {})

    @classmethod
    def read(cls, text: str | None) -> "Window | None":
        """From its JSON; `None` where there is none, or none that can be read."""
        try:
            return None if text is None else cls.model_validate_json(text)
        except ValidationError:
            return None

    def new(self, look: Look) -> list[Sight]:
        """What is to be dealt with."""
        return [one for one in look.sights if one.at >= self.since and one.id not in self.seen]

    def after(self, look: Look, undecided: Mapping[int, int]) -> "Window":
        """Once all that is new in `look` is dealt with, but for what is `undecided`."""
        held = [one.at for one in look.sights if one.id in undecided]
        since = min([max(self.since, look.since or self.since), *held])
        seen = self.seen | {one.id: one.at for one in look.sights}
        kept = {number: at for number, at in seen.items() if at >= since and number not in undecided}
        return Window(since=since, seen=kept, undecided=dict(undecided))

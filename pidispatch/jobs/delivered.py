"""What is kept of an event in the log of deliveries."""

from pydantic import ConfigDict

from pidispatch.values.base import Value


class Delivery(Value):
    """One event, by what may be kept of it."""

    model_config = ConfigDict(extra="ignore")

    #: The forge's id of it.
    id: str
    event: str
    action: str | None = None
    #: `owner/name#7`.
    target: str | None = None
    #: The rule that took it, by its place in the triggers file.
    trigger: int | None = None
    #: Why no rule did, or why it is to be sent again.
    reason: str | None = None

    def stored(self) -> str:
        """As JSON."""
        return self.model_dump_json(exclude_none=True)

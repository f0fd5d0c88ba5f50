"""What was asked for: one job, as it travels from the one who asks to the attempt that runs it."""

from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from pidispatch.values.base import Value

#: Name of a flow and of the folder of its skill, as a regular expression.
FLOW_NAME: Final = r"^[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?$"


class JobKind(StrEnum):
    """Where the job's workspace comes from."""

    #: A folder on this machine, edited in place.
    LOCAL = "local"


class Matched(Value):
    """The trigger that a job comes from."""

    #: Type of its `on`.
    type: Literal["cron"] = "cron"
    #: Its own name.
    id: str
    #: Its place in the triggers file, from 0.
    index: int = Field(ge=0)


class Job(Value):
    """One job. Fields left out (`None`) are filled in from the settings when the job is picked up."""

    #: Unique id; `local-` and 16 hex digits for a job asked for on the command line.
    id: str = Field(min_length=1, max_length=200)
    #: Where the workspace comes from.
    kind: JobKind = JobKind.LOCAL
    #: The folder to work in, absolute. Never logged or recorded in full.
    folder: Path
    #: What the agent is asked to do, handed to it as the user's turn. Never logged or recorded.
    task: str = Field(min_length=1)
    #: The skill of the repository that the agent is to follow.
    flow: str | None = Field(default=None, pattern=FLOW_NAME)
    #: Work in a folder with uncommitted changes too, whose state then cannot be told from the agent's work.
    allow_dirty: bool = False
    #: pi's name of the model provider.
    provider: str | None = None
    #: The provider's own model id.
    model: str | None = None
    #: Most model turns the run may take.
    max_turns: int | None = Field(default=None, ge=1)
    #: Image reference; never pulled.
    image: str | None = None
    #: The trigger it comes from; `None` where a person asked for it.
    trigger: Matched | None = None
    #: The job that this one repeats, because an operator asked for it.
    retry_of: str | None = None

    @property
    def target(self) -> str:
        """The name of the target that may be shown and recorded: `local:` and the folder's last part."""
        # A name that is not UTF-8 would make the record unwritable as JSON.
        return f"local:{self.folder.name.encode('utf-8', 'replace').decode('utf-8')}"

    @property
    def label(self) -> str:
        """What Flower, events and logs show of it: kind, the folder's last part, flow. No text of the job."""
        return f"{self.target.replace(':', ' ', 1)} {self.flow or '-'}"

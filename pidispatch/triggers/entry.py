"""An entry of the triggers file as it is used: what was checked, and nothing else.

The words of each field are its documentation: docs/reference/triggers.md and triggers/triggers.schema.json are made
from them, and a refusal quotes the first example as the remedy.
"""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, WithJsonSchema

from pidispatch.triggers.kinds import (
    Flow,
    Folder,
    Image,
    Model,
    Off,
    Pattern,
    Provider,
    ScheduleId,
    Text,
    Turns,
    one_of,
)
from pidispatch.values.base import Value
from pidispatch.values.job import JobKind


class Missed(StrEnum):
    """What becomes of an occurrence that fell due while no worker ran."""

    SKIP = "skip"
    ONCE = "once"


def _field(description: str, *examples: object, default: Any = ...) -> Any:
    return Field(default, description=description, examples=list(examples) or None)


def _word(*words: str) -> tuple[BeforeValidator, WithJsonSchema]:
    return BeforeValidator(one_of(*words)), WithJsonSchema({"enum": list(words)})


class Part(Value):
    """A part of an entry. Fields it does not know are dropped; what is dropped and matters is refused before."""

    model_config = ConfigDict(extra="ignore", validate_by_name=False)


class CronOn(Part):
    """When a schedule falls due."""

    type: Annotated[str, *_word("cron")] = _field("What starts the job.", "cron")
    id: ScheduleId = _field(
        "The schedule's name, in no other entry of the file. Occurrences are known by it, so keep it when you edit the "
        "rest.",
        "nightly",
    )
    pattern: Pattern = _field(
        "When it falls due, in cron's notation: minute, hour, day of the month, month, day of the week; or six fields "
        "with the second first.",
        "0 3 * * *",
    )
    missed: Annotated[Missed | None, *_word("skip", "once")] = _field(
        "What becomes of occurrences that fell due while no worker ran. `skip`: nothing. `once`: the latest of them is "
        "run when a worker begins. Left out: `skip`.",
        "once",
        default=None,
    )


class LocalRun(Part):
    """What is run: a job on a folder of the worker's machine."""

    kind: Annotated[JobKind, *_word("local")] = _field("Where the job works.", "local")
    folder: Folder = _field(
        "The folder to work in, on the worker's machine: the root of a git repository.", "/srv/site"
    )
    flow: Flow = _field(
        "The skill of the repository to follow: `.pi/skills/NAME`. Where the commit does not hold it, the job goes on "
        "without.",
        "tidy",
    )
    task: Text = _field("What the agent is asked to do.", "Bring the links of the pages in order.")
    provider: Provider = _field("pi's name of the model provider. Left out: `PI_PROVIDER`.", "anthropic", default=None)
    model: Model = _field(
        "The provider's own id of the model. Left out: `PI_MODEL`.", "claude-sonnet-4-5-20250929", default=None
    )
    max_turns: Turns = _field("Most model turns of the run. Left out: `PI_MAX_TURNS`.", 30, default=None)
    image: Image = _field(
        "The image of the job; it must be on the engine. Left out: `PI_JOB_IMAGE`.", "pi-job:latest", default=None
    )
    github: Off = _field("Whether the job gets a token of GitHub. Not served as yet.", False, default=None)
    packages: Off = _field("Whether the agent loads packages. Not served as yet.", False, default=None)
    resume: Off = _field("Whether the run goes on where the last one ended. Never on a schedule.", False, default=None)
    portfolio: Off = _field("Whether the job works on a portfolio. Not served as yet.", False, default=None)


class CronTrigger(Part):
    """One entry of the file: a schedule and the job it starts."""

    on: CronOn = _field("When.")
    run: LocalRun = _field("What.")


class TriggersFile(Part):
    """The whole file. An entry is known by its place, counted from 0, so that none moves another one's."""

    triggers: tuple[CronTrigger, ...] = _field("The entries; their order does not matter to schedules.")

    def document(self) -> dict[str, JsonValue]:
        """The file as JSON, normalised: fields that were left out, or null, are absent."""
        return self.model_dump(mode="json", exclude_none=True)

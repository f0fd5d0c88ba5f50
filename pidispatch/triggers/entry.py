"""An entry of the triggers file as it is used: what was checked, and nothing else.

The words of each field are its documentation: docs/reference/triggers.md and triggers/triggers.schema.json are made
from them, and a refusal quotes the first example as the remedy.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

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
    Tokens,
    Turns,
    one_of,
)
from pidispatch.triggers.rulekinds import (
    OBJECT,
    Command,
    ForgeName,
    Instructions,
    JobName,
    Labels,
    Number,
    OptionalFlow,
    OptionalWords,
    Replicas,
    Repository,
    SkillsDir,
    Switch,
    Words,
)
from pidispatch.values.base import Value
from pidispatch.values.forge import JobKind


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


#: What a schedule and a rule say of a run in the same words.
_PROVIDER: Any = _field("pi's name of the model provider. Left out: `PI_PROVIDER`.", "anthropic", default=None)
_MODEL: Any = _field(
    "The provider's own id of the model. Left out: `PI_MODEL`.", "claude-sonnet-4-5-20250929", default=None
)
_MAX_TURNS: Any = _field("Most model turns of the run. Left out: `PI_MAX_TURNS`.", 30, default=None)
_MAX_TOKENS: Any = _field("Most billed tokens of the run. Left out: `PI_MAX_TOKENS`.", 200000, default=None)
_IMAGE: Any = _field(
    "The image of the job; it must be on the engine. Left out: `PI_JOB_IMAGE`.", "pi-job:latest", default=None
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
    provider: Provider = _PROVIDER
    model: Model = _MODEL
    max_turns: Turns = _MAX_TURNS
    max_tokens: Tokens = _MAX_TOKENS
    image: Image = _IMAGE
    github: Switch = _field("Whether the job gets this deployment's token of GitHub.", True, default=None)
    packages: Off = _field("Whether the agent loads packages. Not served as yet.", False, default=None)
    resume: Off = _field("Whether the run goes on where the last one ended. Never on a schedule.", False, default=None)
    portfolio: Off = _field("Whether the job works on a portfolio. Not served as yet.", False, default=None)


def _labels(description: str, example: str) -> Any:
    # An empty list asks for nothing, as one that was left out does.
    return Field((), description=description, examples=[[example]], exclude_if=lambda labels: not labels)


class Disarmed(Part):
    """The mark of a rule that has fired; without a job it is one that a person wrote."""

    model_config = ConfigDict(extra="forbid")

    at: Text = _field("When.", "2026-01-31T12:00:00Z")
    job_id: JobName = _field("The job that it fired with.", "gh-1", default=None)


class LabelOn(Part):
    """An issue that has, or gets, certain labels."""

    type: Literal["label"] = _field("What starts the job.", "label")
    any: Labels = _labels("At least one of these labels.", "pi:fix")
    all: Labels = _labels("Every one of these labels.", "approved")
    none: Labels = _labels("None of these labels.", "wip")


class CommentOn(Part):
    """A comment that holds a phrase."""

    type: Literal["comment"] = _field("What starts the job.", "comment")
    phrase: Text = _field(
        "What the comment must hold, letter by letter. The name of a flow after it, of any rule of the file, is taken "
        "in the place of the rule's own.",
        "@pi",
    )


class ClosingOn(Part):
    """What happens to an issue or a pull request; of one that is closed also which, and whether once only."""

    type: str
    action: Words
    number: Number = _field("The one that it is about, in a rule for closing. Left out: all.", 40, default=None)
    once: Switch = _field(
        "Whether a rule for closing fires once, and is spent then. `true` needs `number`.", True, default=None
    )
    disarmed: Annotated[Disarmed | None, OBJECT] = _field(
        "The mark of a rule that has fired, written by pi-dispatch: when, and with which job. The entry keeps its "
        "place and fires no more; `pi-dispatch triggers rearm INDEX` takes the mark out.",
        {"at": "2026-01-31T12:00:00Z", "jobId": "gh-1"},
        default=None,
    )


class PullRequestOn(ClosingOn):
    """Something that happens to a pull request."""

    type: Literal["pull_request"] = _field("What starts the job.", "pull_request")
    action: Words = _field(
        "What happened, in the forge's own words. Its word for closing stands alone: that is a rule for closing.",
        ["opened"],
    )
    review_state: OptionalWords = _field(
        "Only reviews with these verdicts; beside the action `review_submitted`. Left out: all.",
        ["changes_requested"],
        default=None,
    )
    any: Labels = _labels("At least one of these labels.", "pi:fix")
    all: Labels = _labels("Every one of these labels.", "approved")
    none: Labels = _labels("None of these labels.", "wip")


class IssueOn(ClosingOn):
    """An issue that is closed."""

    type: Literal["issue"] = _field("What starts the job.", "issue")
    action: Words = _field("The forge's word for closing.", ["closed"])


#: What starts a job by an event, by its type.
EVENT_PARTS: Final[Mapping[str, type[LabelOn | CommentOn | PullRequestOn | IssueOn]]] = {
    "label": LabelOn,
    "comment": CommentOn,
    "pull_request": PullRequestOn,
    "issue": IssueOn,
}


class ForgeRun(Part):
    """What is run: a job on a fresh clone of the event's repository."""

    kind: ForgeName = _field("The forge whose events fire it.", "github")
    flow: OptionalFlow = _field(
        "The skill of the repository to follow: `.pi/skills/NAME`. Either this or `command`.", "fix", default=None
    )
    command: Command = _field(
        "The command that is the whole prompt, without its slash. Either this or `flow`.", "wf deploy", default=None
    )
    provider: Provider = _PROVIDER
    model: Model = _MODEL
    max_turns: Turns = _MAX_TURNS
    max_tokens: Tokens = _MAX_TOKENS
    image: Image = _IMAGE
    replicas: Replicas = _field(
        "Jobs for one event, beside one another, each on a clone of its own. Left out: one.", 2, default=None
    )
    instructions: Instructions = _field(
        "More words for the agent, at most 2,000 characters; not beside `command`.",
        "Keep the style of the file.",
        default=None,
    )
    skills_dir: SkillsDir = _field("A folder of further skills on the worker's machine.", "/srv/skills", default=None)
    repository: Repository = _field(
        "The repository that the job clones, by its name in the project: needed for `label` and `comment` of Azure "
        "DevOps, whose work items are in none.",
        "widgets",
        default=None,
    )
    packages: Off = _field("Whether the agent loads packages. Not served as yet.", False, default=None)
    resume: Off = _field("Whether the run goes on where the last one ended. Not served as yet.", False, default=None)


class CronTrigger(Part):
    """An entry: a schedule and the job it starts."""

    on: CronOn = _field("When.")
    run: LocalRun = _field("What.")


class ForgeTrigger(Part):
    """An entry: an event on a forge and the job it starts."""

    on: LabelOn | CommentOn | PullRequestOn | IssueOn = Field(discriminator="type", description="When.")
    run: ForgeRun = _field("What.")

    @property
    def mark(self) -> Disarmed | None:
        """The mark of a rule that has fired."""
        return self.on.disarmed if isinstance(self.on, ClosingOn) else None


class TriggersFile(Part):
    """The whole file. An entry is known by its place, counted from 0, so that none moves another one's."""

    triggers: tuple[CronTrigger | ForgeTrigger, ...] = _field(
        "The entries. Of rules for one event the first that fits is taken; the order of schedules does not matter."
    )

    @property
    def schedules(self) -> tuple[tuple[int, CronTrigger], ...]:
        """The schedules, each with its place."""
        return tuple((at, one) for at, one in enumerate(self.triggers) if isinstance(one, CronTrigger))

    @property
    def forge_rules(self) -> tuple[tuple[int, ForgeTrigger], ...]:
        """The rules for events, spent ones too, each with its place."""
        return tuple((at, one) for at, one in enumerate(self.triggers) if isinstance(one, ForgeTrigger))

    def document(self) -> dict[str, JsonValue]:
        """The file as JSON, normalised: fields that were left out, or null, are absent."""
        return self.model_dump(mode="json", exclude_none=True)

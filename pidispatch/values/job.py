"""What was asked for: one job, as it travels from the one who asks to the attempt that runs it."""

from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from pidispatch.values.base import Value
from pidispatch.values.forge import ForgeKind, JobKind, separator

#: Name of a flow and of the folder of its skill, as a regular expression.
FLOW_NAME: Final = r"^[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?$"


class Matched(Value):
    """The trigger that a job comes from, and what of the event it matched."""

    #: Type of its `on`.
    type: Literal["cron", "label", "comment", "pull_request", "issue"] = "cron"
    #: Its own name; only of a schedule.
    id: str | None = None
    #: Its place in the triggers file, from 0.
    index: int = Field(ge=0)
    #: The label that made a label rule match.
    label: str | None = None
    #: The phrase that a comment holds.
    phrase: str | None = None
    #: The word that a rule for pull requests, or for closing, names.
    action: str | None = None
    #: The item that a rule for closing names.
    number: int | None = None
    #: The rule fires once.
    once: Literal[True] | None = None


class Head(Value):
    """The branch that a pull request would merge."""

    ref: str
    sha: str
    #: The repository that it is in, which may be a fork.
    repo: str | None = None


class Target(Value):
    """The issue or pull request that a job is about. Its texts are a stranger's: never logged or recorded."""

    type: Literal["issue", "pull_request"]
    #: Its number in the repository.
    number: int = Field(ge=1)
    title: str = Field(default="", repr=False)
    body: str = Field(default="", repr=False)
    #: Where the changes of a pull request come from and go to; data for the job, never what is cloned.
    head: Head | None = None
    base: str | None = None


class Comment(Value):
    """A comment that asks for a job. A stranger's text: never logged or recorded."""

    body: str = Field(repr=False)
    author_association: str | None = None


class Review(Value):
    """A review of a pull request, likewise."""

    id: int | None = None
    body: str = Field(default="", repr=False)
    state: str
    author_association: str | None = None


class Sender(Value):
    """Who did what the job comes from: an id of the forge's. Names and addresses are not kept."""

    id: int | str


class Origin(Value):
    """The event that a job comes from, as the agent is told of it. Nothing that says how the job is run."""

    #: The forge's own words for the event.
    event: str
    action: str
    delivery_id: str
    sender: Sender
    matched: Matched
    comment: Comment | None = None
    review: Review | None = None


class Job(Value):
    """What all jobs have. Fields left out (`None`) are filled in from the settings when the job is picked up."""

    #: Unique id, made from what was asked for (docs/reference/triggers.md).
    id: str = Field(min_length=1, max_length=200)
    #: Where the workspace comes from.
    kind: JobKind
    #: The skill of the repository that the agent is to follow.
    flow: str | None = Field(default=None, pattern=FLOW_NAME)
    #: pi's name of the model provider.
    provider: str | None = None
    #: The provider's own model id.
    model: str | None = None
    #: Most model turns the run may take.
    max_turns: int | None = Field(default=None, ge=1)
    #: Most billed tokens of the run.
    max_tokens: int | None = Field(default=None, ge=1)
    #: Image reference; never pulled.
    image: str | None = None
    #: What the runs of its trigger are counted under, to stop a trigger whose runs all come to nothing.
    breaker: str | None = None
    #: The job that this one repeats, because an operator asked for it.
    retry_of: str | None = None

    @property
    def target_name(self) -> str:
        """The name of the target that may be shown and recorded."""
        raise NotImplementedError

    @property
    def scope(self) -> str:
        """What quiet hours and limits are compared with: the folder as the job has it, or the repository."""
        raise NotImplementedError

    @property
    def matched(self) -> Matched | None:
        """The trigger it comes from; `None` where a person asked for it."""
        raise NotImplementedError

    @property
    def command_name(self) -> str | None:
        """The name of the command of a command job, up to its first blank."""
        return None

    @property
    def label(self) -> str:
        """What Flower, events and logs show of it: kind, target, flow. No text of the job."""
        return f"{self.kind} {self.target_name.removeprefix('local:')} {self.flow or self.command_name or '-'}"

    def bare(self) -> Self:
        """It without any text that is the job's alone, for a note of it."""
        raise NotImplementedError

    def stored(self) -> str:
        """It as JSON, without what is left out. Raises `ValueError` for text that is none."""
        return self.model_dump_json(exclude_none=True)


class LocalJob(Job):
    """A job on a folder of the worker's machine."""

    kind: Literal[JobKind.LOCAL] = JobKind.LOCAL
    #: The folder to work in, absolute. Never logged or recorded in full.
    folder: Path
    #: What the agent is asked to do, handed to it as the user's turn. Never logged or recorded.
    task: str = Field(min_length=1)
    #: Work in a folder with uncommitted changes too, whose state then cannot be told from the agent's work.
    allow_dirty: bool = False
    #: The job gets this deployment's credential for GitHub.
    github: Literal[True] | None = None
    #: The schedule it comes from; `None` where a person asked for it.
    trigger: Matched | None = None

    @property
    def target_name(self) -> str:
        """`local:` and the folder's last part."""
        # A name that is not UTF-8 would make the record unwritable as JSON.
        return f"local:{self.folder.name.encode('utf-8', 'replace').decode('utf-8')}"

    @property
    def scope(self) -> str:
        """The folder."""
        return str(self.folder)

    @property
    def matched(self) -> Matched | None:
        """The schedule it comes from."""
        return self.trigger

    def bare(self) -> Self:
        """It without its task."""
        return self.model_copy(update={"task": "-"})


class ForgeJob(Job):
    """A job that an event on a forge started: on a fresh clone of a repository."""

    kind: ForgeKind
    #: The repository, as the forge calls it: `owner/name`.
    repo: str = Field(min_length=1, max_length=400)
    target: Target
    #: The command that is the whole prompt, without its slash, in the place of a flow.
    command: str | None = None
    trigger: Origin
    #: More words of the operator's for the agent. Never logged or recorded.
    instructions: str | None = Field(default=None, repr=False)
    #: Folder of skills on the worker's machine.
    skills_dir: str | None = None
    #: Which of `replicas` jobs for one event it is, from 1.
    replica: int | None = Field(default=None, ge=1)
    replicas: int | None = Field(default=None, ge=2)
    #: What the store knows a rule by that fires once.
    oneshot: str | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.flow is None) == (self.command is None):
            raise ValueError("a job of a forge has either a flow or a command")
        return self

    @property
    def target_name(self) -> str:
        """The repository and the number: `owner/name#7`."""
        return f"{self.repo}{separator(self.kind, self.target.type)}{self.target.number}"

    @property
    def branch(self) -> str:
        """The branch that a job for an issue may push to, named by numbers alone: no text of a stranger is in it."""
        return self._branch_of(self.replica)

    @property
    def sibling_branches(self) -> tuple[str, ...]:
        """Those of the other jobs for the same event."""
        others = (index for index in range(1, (self.replicas or 0) + 1) if index != self.replica)
        return tuple(map(self._branch_of, others))

    def _branch_of(self, replica: int | None) -> str:
        return f"pi/issue-{self.target.number}" + (f"-r{replica}" if replica is not None else "")

    @property
    def scope(self) -> str:
        """The repository."""
        return self.repo

    @property
    def matched(self) -> Matched:
        """The rule it comes from."""
        return self.trigger.matched

    def bare(self) -> Self:
        """It without a stranger's words and without the operator's for the agent; a command by its name alone."""
        target = Target(type=self.target.type, number=self.target.number)
        trigger = self.trigger.model_copy(update={"comment": None, "review": None})
        command = {"command": self.command_name, "instructions": None}
        return self.model_copy(update={"target": target, "trigger": trigger, **command})

    @property
    def command_name(self) -> str | None:
        """The name of the command, up to its first blank."""
        return self.command.split(" ", 1)[0] if self.command is not None else None


AnyJob = Annotated[LocalJob | ForgeJob, Field(discriminator="kind")]
_READ: Final[TypeAdapter[LocalJob | ForgeJob]] = TypeAdapter(AnyJob)


def read_job(text: str) -> LocalJob | ForgeJob:
    """A job from its JSON. Raises pydantic's `ValidationError`."""
    return _READ.validate_json(text)

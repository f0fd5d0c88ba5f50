"""The entries of a triggers file in words: what fires each of them, what it runs, and which file it is."""

from pathlib import Path

from pidispatch.config.operator_file import read_text
from pidispatch.config.settings import load_only
from pidispatch.triggers.disarm import DEFAULT, triggers_path
from pidispatch.triggers.entry import (
    ClosingOn,
    CommentOn,
    CronTrigger,
    ForgeRun,
    ForgeTrigger,
    IssueOn,
    LabelOn,
    LocalRun,
    PullRequestOn,
    TriggersFile,
)
from pidispatch.triggers.file import parse_triggers
from pidispatch.values.errors import ConfigError
from pidispatch.values.forge import FORGES, JobKind


def read_triggers(path: Path | None = None) -> tuple[Path, TriggersFile]:
    """The triggers file and where it is: the one of PI_TRIGGERS_FILE, else ./triggers.json. Raises `ConfigError`."""
    if path is None:
        path = triggers_path(load_only(("PI_TRIGGERS_FILE",)))
        if path == DEFAULT.absolute() and not path.exists():
            raise ConfigError(
                f"no triggers file is named, and there is no {DEFAULT} in this folder: name one with PI_TRIGGERS_FILE",
                "operator-file",
            )
    return path, parse_triggers(read_text(path), path)


def name_of(index: int, trigger: CronTrigger | ForgeTrigger) -> str:
    """What an entry is called: its place, and the id of a schedule."""
    return f"trigger {index} ({trigger.on.id})" if isinstance(trigger, CronTrigger) else f"trigger {index}"


def fires_on(trigger: CronTrigger | ForgeTrigger) -> str:
    """What fires an entry."""
    on = trigger.on
    if isinstance(on, LabelOn):
        return f"an issue with {_labels(on)}"
    if isinstance(on, CommentOn):
        return f'a comment with "{on.phrase}"'
    if isinstance(on, IssueOn):
        return _closing(on, "issue")
    if isinstance(on, PullRequestOn):
        if set(on.action) == {FORGES[JobKind(trigger.run.kind)].close_word}:
            return _closing(on, "pull request")
        parts = [f"a pull request: {', '.join(on.action)}"]
        if on.review_state:
            parts.append(f"verdict {' or '.join(on.review_state)}")
        if labels := _labels(on):
            parts.append(f"with {labels}")
        return "; ".join(parts)
    return f"the schedule {on.pattern}"


def runs_what(trigger: CronTrigger | ForgeTrigger, flow: str | None = None) -> str:
    """What an entry runs: its flow, or `flow` in the place of it, or the name of its command; and how often."""
    run = trigger.run
    command = command_name(run)
    what = f"flow {flow or run.flow}" if command is None else f"command {command}"
    replicas = run.replicas if isinstance(run, ForgeRun) else None
    return what if replicas is None else f"{what}, {replicas} times"


def command_name(run: LocalRun | ForgeRun) -> str | None:
    """The name of the command that is run, up to its first blank, as records have it."""
    return run.command.split(" ", 1)[0] if isinstance(run, ForgeRun) and run.command is not None else None


def _labels(on: LabelOn | PullRequestOn) -> str:
    wanted = (("any", on.any), ("all", on.all), ("none", on.none))
    return "; ".join(f"{word} of the labels {', '.join(labels)}" for word, labels in wanted if labels)


def _closing(on: ClosingOn, what: str) -> str:
    number = f"{what} {on.number}" if on.number is not None else f"any {what}"
    return f"{number} closed{', once' if on.once else ''}"

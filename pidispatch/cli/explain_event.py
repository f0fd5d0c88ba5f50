"""`pi-dispatch explain-event`: what would become of an event, and why each entry of the triggers file takes it or not.

Nobody is asked: no server, no forge. The rules are those of the receiver, and its code.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.text import Text

from pidispatch.cli.entries import command_name, fires_on, read_triggers, runs_what
from pidispatch.cli.heard import is_served
from pidispatch.cli.table import table_of
from pidispatch.cli.view import QuietConsole
from pidispatch.cli.walk import Step, Walk, walked
from pidispatch.config.operator_file import read_bytes, refuse
from pidispatch.config.text import printable
from pidispatch.forges.registry import MODULES
from pidispatch.receiver.body import MOST_BYTES, parsed
from pidispatch.triggers.entry import CronTrigger
from pidispatch.triggers.matching import repository_of
from pidispatch.values.errors import ConfigError
from pidispatch.values.event import Event
from pidispatch.values.forge import FORGES, JobKind, separator

#: The id that stands for that of a delivery, which nothing hangs on here.
_DELIVERY: Final = "explain-event"
#: Headers in which the forges say what happened.
_HEADERS: Final = ("x-github-event", "x-gitlab-event", "x-forgejo-event", "x-gitea-event")
#: The same for their ids of a delivery.
_IDS: Final = ("x-github-delivery", "webhook-id")
#: What is printed in the place of the file's name for standard input.
_STDIN: Final = "-"


@click.command(name="explain-event")
@click.argument("payload", metavar="FILE")
@click.option("--forge", default=JobKind.GITHUB.value, show_default=True, help="Whose event it is.")
@click.option("--event", "name", required=True, metavar="NAME", help="Its name: what X-GitHub-Event says.")
@click.option("--triggers", type=click.Path(path_type=Path), metavar="FILE", help="Default: PI_TRIGGERS_FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain_event(payload: str, forge: str, name: str, triggers: Path | None, as_json: bool) -> int:
    """Say which trigger the event in FILE would fire, and why each other one would not. `-` is standard input.

    FILE holds the payload as the forge sends it. Nobody is asked and nothing is started: where the receiver would ask
    the forge who may start jobs, that is assumed and said. Exit code 2: the file is no such event, or the triggers
    file is broken.
    """
    kind = _forge(forge)
    path, file = read_triggers(triggers)
    walk = walked(_event(kind, name, _payload(payload)), file)
    if as_json:
        click.echo(json.dumps(document(path, walk), indent=2))
    else:
        show(QuietConsole(), path, walk)
    return 0


def _forge(name: str) -> JobKind:
    kind = next((one for one in FORGES if one == name), None)
    if kind is not None and kind in MODULES:
        return kind
    served = ", ".join(MODULES)
    why = "is not served by this version" if kind is not None else "is no forge"
    raise ConfigError(f"--forge {printable(name)} {why}. Write one of: {served}")


def _payload(named: str) -> Any:
    """What the file holds, as a receiver reads it. Raises `ConfigError`, which repeats nothing of it."""
    path = Path(named)
    body = sys.stdin.buffer.read(MOST_BYTES + 1) if named == _STDIN else read_bytes(path)
    if len(body) > MOST_BYTES:
        refuse(path, (f"is larger than {MOST_BYTES:,} bytes: a receiver would answer 413",))
    try:
        return parsed(body)
    except ValueError as error:
        at = f" at line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        refuse(
            path, (f"is no JSON{at}, in UTF-8 and with numbers and nesting within bounds: it would be answered 400",)
        )


def _event(kind: JobKind, name: str, payload: Any) -> Event:
    headers = dict.fromkeys(_HEADERS, name) | dict.fromkeys(_IDS, _DELIVERY)
    event = MODULES[kind].event(headers, payload)
    if isinstance(event, Event):
        return event
    raise ConfigError(f"it is no event of {FORGES[kind].title}: a receiver would answer {event.status} {event.error}")


def document(path: Path, walk: Walk) -> dict[str, Any]:
    """What `--json` prints."""
    event, fired = walk.event, walk.fired
    return {
        "file": str(path),
        "forge": event.forge.value,
        "event": event.event,
        "action": event.action,
        "occasions": [one.value for one in event.occasions],
        "repo": repository(walk),
        "target": target_name(walk),
        "fires": None if fired is None else fired.rule.index,
        "flow": None if fired is None else fired.flow,
        "command": None if fired is None else command_name(fired.rule.run),
        "replicas": None if fired is None else (fired.rule.run.replicas or 1),
        "reason": None if walk.drop is None else walk.drop.value,
        "why": walk.why,
        "assumes": list(walk.assumes),
        "triggers": [
            {
                "index": step.index,
                "type": step.trigger.on.type,
                "kind": step.trigger.run.kind,
                "id": step.trigger.on.id if isinstance(step.trigger, CronTrigger) else None,
                "served": isinstance(step.trigger, CronTrigger) or is_served(step.trigger.run.kind),
                "when": fires_on(step.trigger),
                "runs": runs_what(step.trigger),
                "fires": step.fires,
                "reason": step.reason,
                "why": step.why,
            }
            for step in walk.steps
        ],
    }


def repository(walk: Walk) -> str | None:
    """The repository of the event, else the one that the rule names which it fires."""
    return walk.event.repo if walk.fired is None else repository_of(walk.fired.rule, walk.event)


def target_name(walk: Walk) -> str | None:
    """What the event is about, `owner/name#7`, as a job and its record would call it."""
    target, repo = walk.event.target, repository(walk)
    if target is None or repo is None:
        return None
    return f"{repo}{separator(walk.event.forge, target.type)}{target.number}"


def show(console: Console, path: Path, walk: Walk) -> None:
    event = walk.event

    def line(name: str, text: str, style: str = "") -> None:
        console.print(Text.assemble(f"{name:<10}", (printable(text), style)), soft_wrap=True)

    action = f", {event.action}" if event.action else ""
    line("event", f"{event.event}{action} on {FORGES[event.forge].title}")
    if event.target is not None:
        line("target", f"{event.target.type.replace('_', ' ')} {target_name(walk) or event.target.number}")
    line("triggers", str(path))
    line("answer", walk.why, "green" if walk.fired is not None else "yellow")
    for assumed in walk.assumes:
        line("if", assumed)
    if not walk.steps:
        return
    console.print()
    rows = [
        [Text(str(step.index)), _verdict(step.fires), *(Text(printable(one)) for one in step_words(step))]
        for step in walk.steps
    ]
    if console.is_terminal:
        # Reasons are sentences: they have lines of their own where a person looks.
        for index, verdict, when, runs, why in rows:
            console.print(Text.assemble(index, "  ", verdict, f"  {when} -> {runs}"), soft_wrap=True)
            console.print(Text.assemble("     ", why), soft_wrap=True)
        return
    console.print(table_of(console, ("TRIGGER", "FIRES", "ON", "RUNS", "WHY"), rows))


def step_words(step: Step) -> tuple[str, str, str]:
    """What fires an entry, what it runs, and why it takes the event or not."""
    return fires_on(step.trigger), runs_what(step.trigger), step.why


def _verdict(fires: bool) -> Text:
    return Text("yes", "bold green") if fires else Text("no")

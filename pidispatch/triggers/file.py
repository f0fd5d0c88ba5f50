"""The triggers file: read as a whole, or refused as a whole with every broken entry named."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from pydantic import ValidationError

from pidispatch.config.operator_file import parse_json, refuse
from pidispatch.config.text import printable
from pidispatch.triggers.entry import (
    EVENT_PARTS,
    CronOn,
    CronTrigger,
    ForgeRun,
    ForgeTrigger,
    LocalRun,
    Part,
    TriggersFile,
)
from pidispatch.triggers.kinds import ID_CHARS
from pidispatch.triggers.refused import TAKE_OUT, Given, Wrong, of_a_schedule, of_its_kind, parts
from pidispatch.triggers.refusedrules import of_a_rule
from pidispatch.triggers.text import broken_places
from pidispatch.triggers.vocabulary import examples_of, of_the_forge, second_comment_rules

_SHAPE: Final = 'Write {"triggers": [...]}, with one object for each trigger'


def parse_triggers(text: str, path: Path) -> TriggersFile:
    """The triggers that `text`, the contents of the file `path`, declares.

    Raises `ConfigError` (cause `operator-file`) with a line for each broken entry: its place or id, the field, the
    reason and the remedy. What no field names is dropped, save what docs/reference/triggers.md says is refused. No
    folder is looked at: the file may be read where it is not served.
    """
    entries = _entries(text, path)
    read = [_read(entry) for entry in entries]
    wrong = [_told(_name(at, entries[at]), one) for at, one in enumerate(read) if isinstance(one, Wrong)]
    rules = [(at, one) for at, one in enumerate(read) if isinstance(one, ForgeTrigger)]
    wrong += [_told(_name(at, entries[at]), one) for at, one in second_comment_rules(rules)]
    schedules = [(at, one) for at, one in enumerate(read) if isinstance(one, CronTrigger)]
    if faults := [*wrong, *_doubles(schedules)]:
        refuse(path, faults)
    return TriggersFile(triggers=tuple(one for one in read if not isinstance(one, Wrong)))


def _entries(text: str, path: Path) -> list[object]:
    document = parse_json(text, path, unique_keys=True)
    broken = Wrong("", "holds half of a surrogate pair, which is no character", "Write the character itself")
    if places := list(broken_places(document)):
        refuse(path, [_told("", broken._replace(field=place)) for place in places])
    if not isinstance(document, Mapping):
        refuse(path, [_told("", Wrong("", "it is no object", _SHAPE))])
    entries = document.get("triggers")
    if not isinstance(entries, list):
        reason = "must be a list" if "triggers" in document else "is missing"
        refuse(path, [_told("", Wrong("triggers", reason, _SHAPE))])
    return entries


def _read(entry: object) -> CronTrigger | ForgeTrigger | Wrong:
    """An entry, or the first thing that is wrong with it."""
    found = parts(entry)
    if isinstance(found, Wrong):
        return found
    on, run = found
    trigger = on.get("type")
    if (wrong := next(of_its_kind(trigger, run.get("kind")), None)) is not None:
        return wrong
    if trigger == "cron":
        wrong = next(of_a_schedule(on, run), None)
        return wrong or _schedule(on, run)
    wrong = next(of_a_rule(on, run), None)
    return wrong or _rule(on, run)


def _schedule(on: Given, run: Given) -> CronTrigger | Wrong:
    when = _part("on", CronOn, on, {})
    what = _part("run", LocalRun, run, {})
    if isinstance(when, Wrong):
        return when
    return what if isinstance(what, Wrong) else CronTrigger(on=when, run=what)


def _rule(on: Given, run: Given) -> ForgeTrigger | Wrong:
    kind, trigger = str(run["kind"]), str(on["type"])
    when = _part("on", EVENT_PARTS[trigger], on, examples_of(kind, trigger))
    what = _part("run", ForgeRun, run, {})
    if isinstance(when, Wrong):
        return when
    if isinstance(what, Wrong):
        return what
    rule = ForgeTrigger(on=when, run=what)
    return next(of_the_forge(rule), None) or rule


P = TypeVar("P", bound=Part)


def _part(name: str, model: type[P], given: Given, examples: Mapping[str, object]) -> P | Wrong:
    """A part of an entry as `model`; `examples` stand in the place of the model's own."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        return _explained(name, model, error, examples)


def _explained(part: str, model: type[Part], error: ValidationError, examples: Mapping[str, object]) -> Wrong:
    fault = error.errors()[0]
    first, *rest = map(str, fault["loc"])
    place = ".".join((part, first, *rest))
    if fault["type"] == "extra_forbidden":
        return Wrong(place, "is no field of it", TAKE_OUT)
    reason = "is missing" if fault["type"] == "missing" else str(fault["ctx"]["error"])
    [field] = [field for field in model.model_fields.values() if field.alias == first]
    example = examples.get(first, (field.examples or [""])[0])
    return Wrong(place, reason, f'Write for example: "{first}": {json.dumps(example)}')


def _name(at: int, entry: object) -> str:
    """What an entry is called: by its id where it has one that can be shown, else by its place."""
    found = parts(entry)
    on = {} if isinstance(found, Wrong) else found[0]
    given = on.get("id")
    usable = on.get("type") == "cron" and isinstance(given, str) and given.strip() and len(given) <= ID_CHARS
    return f'cron trigger "{printable(given)}"' if usable and isinstance(given, str) else f"trigger at index {at}"


def _told(entry: str, wrong: Wrong) -> str:
    place = ", ".join(part for part in (entry, f'field "{printable(wrong.field)}"' if wrong.field else "") if part)
    return f"{place}: {wrong.reason}. {wrong.remedy}" if place else f"{wrong.reason}. {wrong.remedy}"


def _doubles(triggers: Sequence[tuple[int, CronTrigger]]) -> list[str]:
    first: dict[str, int] = {}
    faults = []
    for at, trigger in triggers:
        known = first.setdefault(trigger.on.id, at)
        if known != at:
            reason = f'is "{trigger.on.id}", which is the id of the trigger at index {known}'
            wrong = Wrong("on.id", reason, "Give each schedule an id of its own")
            faults.append(_told(f"trigger at index {at}", wrong))
    return faults

"""The triggers file: read as a whole, or refused as a whole with every broken entry named."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from pidispatch.config.operator_file import parse_json, refuse
from pidispatch.config.text import printable
from pidispatch.triggers.entry import CronOn, CronTrigger, LocalRun, TriggersFile
from pidispatch.triggers.kinds import ID_CHARS
from pidispatch.triggers.refused import Wrong, parts, refusals
from pidispatch.triggers.text import broken_places

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
    triggers = [(at, one) for at, one in enumerate(read) if isinstance(one, CronTrigger)]
    if faults := [*wrong, *_doubles(triggers)]:
        refuse(path, faults)
    return TriggersFile(triggers=tuple(one for _, one in triggers))


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


def _read(entry: object) -> CronTrigger | Wrong:
    """An entry, or the first thing that is wrong with it."""
    found = parts(entry)
    if isinstance(found, Wrong):
        return found
    on, run = found
    wrong = next(refusals(on, run), None)
    if wrong is not None:
        return wrong
    try:
        return CronTrigger.model_validate({"on": on, "run": run})
    except ValidationError as error:
        return _explained(error)


def _explained(error: ValidationError) -> Wrong:
    fault = error.errors()[0]
    part, name = map(str, fault["loc"][:2])
    reason = "is missing" if fault["type"] == "missing" else str(fault["ctx"]["error"])
    [field] = [field for field in _fields(part) if field.alias == name]
    [example, *_] = field.examples or [""]
    return Wrong(f"{part}.{name}", reason, f'Write for example: "{name}": {json.dumps(example)}')


def _fields(part: str) -> Sequence[FieldInfo]:
    return list((CronOn if part == "on" else LocalRun).model_fields.values())


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

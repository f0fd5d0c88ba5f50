"""What an entry of the triggers file must not say, in the order in which it is looked for.

Whatever bounds a run or changes what it may do is refused by name as long as nothing enforces it: a file must never be
taken and its meaning dropped. What only a rule for events must not say is in `refusedrules`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from pidispatch.triggers.spelling import SPELLINGS, meant
from pidispatch.values.forge import FORGES, JobKind

#: Types of rules for events.
EVENTS: Final = ("label", "comment", "pull_request", "issue")
#: Fields of `run` that a schedule never has.
NEVER_CRON: Final = {
    "waitFor": "its pattern says when it runs",
    "replicas": "a folder takes one job at a time",
    "instructions": "its task says what to do",
}
_UNSERVED_FIELDS: Final = ("secrets", "secretsProfile", "backend", "excludeTools", "models", "maxCostUsd")
#: Fields of `run` that nothing serves as yet, whatever stands in them: in a schedule, and in a rule for events.
UNSERVED_CRON: Final = ("command", "skillsDir", *_UNSERVED_FIELDS)
UNSERVED_RULES: Final = ("waitFor", *_UNSERVED_FIELDS)
#: Those of them in which `null` counts as left out.
NULL_IS_ABSENT: Final = frozenset({"models", "maxCostUsd"})
#: Switches of which nothing serves `true`, likewise.
SWITCHES_CRON: Final = ("packages", "portfolio")
SWITCHES_RULES: Final = ("packages", "resume")
#: Names that one who wants to withhold tools from the agent may try.
OLD_TOOLS: Final = ("tools", "noTools")
#: Fields of `on` that say something of an issue or pull request that is closed.
CLOSING: Final = ("number", "once", "disarmed")
TAKE_OUT: Final = "Take it out"
_EXACT_RUN: Final = frozenset(SPELLINGS) - {"missed"}
#: Fields of `on` that are told from their misspellings; a rule for events has none of them.
_EXACT_ON: Final = frozenset({"missed"})

_UNSERVED: Final = "is not served by this version"
_TAKE_OUT_OR: Final = "Take it out, or use a version that serves it"

Given = Mapping[str, object]


class Wrong(NamedTuple):
    """A field of an entry, why it cannot stand there, and what to do instead."""

    field: str
    reason: str
    remedy: str


Parts = tuple[Given, Given]


def parts(entry: object) -> Parts | Wrong:
    """The parts `on` and `run` of an entry."""
    shape = 'Write {"on": {...}, "run": {...}}'
    if not isinstance(entry, Mapping):
        return Wrong("", "it is no object", shape)
    found = []
    for name in ("on", "run"):
        if name not in entry:
            return Wrong(name, "is missing", shape)
        part = entry[name]
        if not isinstance(part, Mapping):
            return Wrong(name, "must be an object", shape)
        found.append(part)
    return found[0], found[1]


def of_its_kind(trigger: object, kind: object) -> Iterator[Wrong]:
    """What is wrong with the pair of what starts a job and where it works."""
    if trigger not in ("cron", *EVENTS):
        known = ", ".join(("cron", *EVENTS))
        yield Wrong("on.type", f"must be one of {known}", 'Write for example: "type": "cron"')
    if kind not in (JobKind.LOCAL, *FORGES):
        known = ", ".join((JobKind.LOCAL, *FORGES))
        place = JobKind.LOCAL if trigger == "cron" else JobKind.GITHUB
        yield Wrong("run.kind", f"must be one of {known}", f'Write for example: "kind": "{place}"')
    if trigger == "cron" and kind != JobKind.LOCAL:
        yield Wrong("run.kind", "must be local: a schedule works in a folder", 'Write "kind": "local"')
    if trigger != "cron" and kind == JobKind.LOCAL:
        forges = ", ".join(FORGES)
        yield Wrong("run.kind", "must not be local where an event starts the job", f"Name the forge: {forges}")


def of_a_schedule(on: Given, run: Given) -> Iterator[Wrong]:
    """What a schedule must not say, before the values of its fields are looked at."""
    yield from near("on", on)
    for name in CLOSING:
        if name in on:
            yield Wrong(f"on.{name}", "has no meaning for a schedule", TAKE_OUT)
    yield from near("run", run)
    yield from old_tools(run)
    for name, why in NEVER_CRON.items():
        if name in run:
            yield Wrong(f"run.{name}", f"cannot stand in a schedule: {why}", TAKE_OUT)
    if run.get("resume") is True:
        yield Wrong("run.resume", "cannot be true in a schedule: each occurrence begins anew", TAKE_OUT)
    if "flow" in run and "command" in run:
        yield Wrong("run.command", "stands beside run.flow, and a job has only one of them", "Keep run.flow")
    yield from unserved(run, UNSERVED_CRON, SWITCHES_CRON)


def near(part: str, given: Given) -> Iterator[Wrong]:
    """Keys of a part that are nearly the name of a field which bounds a run."""
    exact = _EXACT_ON if part == "on" else _EXACT_RUN
    for key in given:
        field = meant(key, exact)
        if field is None:
            continue
        place = "on" if field in _EXACT_ON else "run"
        remedy = f"Take it out, or write {place}.{field} if that is meant"
        yield Wrong(f"{part}.{key}", f"is no field, and {place}.{field} is one", remedy)


def old_tools(run: Given) -> Iterator[Wrong]:
    """Fields that never were any."""
    for name in OLD_TOOLS:
        if name in run:
            yield Wrong(f"run.{name}", "is no field", TAKE_OUT)


def unserved(run: Given, fields: Iterable[str], switches: Iterable[str]) -> Iterator[Wrong]:
    """What nothing enforces as yet."""
    for name in fields:
        if name in run and not (run[name] is None and name in NULL_IS_ABSENT):
            yield Wrong(f"run.{name}", _UNSERVED, _TAKE_OUT_OR)
    for name in switches:
        if run.get(name) is True:
            yield Wrong(f"run.{name}", _UNSERVED, "Write false, or take it out")

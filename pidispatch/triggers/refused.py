"""What an entry of the triggers file must not say, in the order in which it is looked for.

Whatever bounds a run or changes what it may do is refused by name as long as nothing enforces it: a file must never be
taken and its meaning dropped.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from pidispatch.triggers.spelling import SPELLINGS, meant

#: Kinds of event that later versions serve.
WEBHOOKS: Final = ("label", "comment", "pull_request", "issue")
_FORGES: Final = ("github", "gitlab", "forgejo", "azure")
#: Fields of `run` that a schedule never has.
NEVER_CRON: Final = {
    "waitFor": "its pattern says when it runs",
    "replicas": "a folder takes one job at a time",
    "instructions": "its task says what to do",
}
#: Fields of `run` that nothing serves as yet, whatever stands in them.
UNSERVED: Final = (
    "command",
    "skillsDir",
    "secrets",
    "secretsProfile",
    "backend",
    "excludeTools",
    "models",
    "maxCostUsd",
    "maxTokens",
)
#: Those of them in which `null` counts as left out.
NULL_IS_ABSENT: Final = frozenset({"models", "maxCostUsd"})
#: Switches of which nothing serves `true`.
UNSERVED_SWITCHES: Final = ("github", "packages", "portfolio")
#: Names that one who wants to withhold tools from the agent may try.
OLD_TOOLS: Final = ("tools", "noTools")
#: Fields of `on` that say something of an issue or pull request that is closed.
CLOSING: Final = ("number", "once", "disarmed")
_EXACT_RUN: Final = frozenset(SPELLINGS) - {"missed"}
_EXACT_ON: Final = frozenset({"missed"})

_UNSERVED: Final = "is not served by this version"
_TAKE_OUT: Final = "Take it out, or use a version that serves it"


class Wrong(NamedTuple):
    """A field of an entry, why it cannot stand there, and what to do instead."""

    field: str
    reason: str
    remedy: str


Parts = tuple[Mapping[str, object], Mapping[str, object]]


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


def refusals(on: Mapping[str, object], run: Mapping[str, object]) -> Iterator[Wrong]:
    """Everything that `on` and `run` must not say, before the values of their fields are looked at."""
    yield from _of_its_kind(on.get("type"), run.get("kind"))
    yield from _near("on", on, _EXACT_ON)
    for name in CLOSING:
        if name in on:
            yield Wrong(f"on.{name}", "has no meaning for a schedule", "Take it out")
    yield from _near("run", run, _EXACT_RUN)
    yield from _of_the_run(run)


def _of_its_kind(trigger: object, kind: object) -> Iterator[Wrong]:
    if trigger not in ("cron", *WEBHOOKS):
        known = ", ".join(("cron", *WEBHOOKS))
        yield Wrong("on.type", f"must be one of {known}", 'Write "type": "cron" for a schedule')
    if kind not in ("local", *_FORGES):
        known = ", ".join(("local", *_FORGES))
        yield Wrong("run.kind", f"must be one of {known}", 'Write "kind": "local" for a schedule')
    if trigger == "cron" and kind != "local":
        yield Wrong("run.kind", "must be local: a schedule works in a folder", 'Write "kind": "local"')
    if trigger != "cron" and kind == "local":
        yield Wrong("run.kind", "must not be local where a forge starts the job", "Name the forge")
    if trigger != "cron":
        yield Wrong("on.type", _UNSERVED, _TAKE_OUT)


def _near(part: str, given: Mapping[str, object], exact: frozenset[str]) -> Iterator[Wrong]:
    for key in given:
        field = meant(key, exact)
        if field is None:
            continue
        place = "on" if field == "missed" else "run"
        remedy = f"Take it out, or write {place}.{field} if that is meant"
        yield Wrong(f"{part}.{key}", f"is no field, and {place}.{field} is one", remedy)


def _of_the_run(run: Mapping[str, object]) -> Iterator[Wrong]:
    for name in OLD_TOOLS:
        if name in run:
            yield Wrong(f"run.{name}", "is no field", "Take it out")
    for name, why in NEVER_CRON.items():
        if name in run:
            yield Wrong(f"run.{name}", f"cannot stand in a schedule: {why}", "Take it out")
    if run.get("resume") is True:
        yield Wrong("run.resume", "cannot be true in a schedule: each occurrence begins anew", "Take it out")
    if "flow" in run and "command" in run:
        yield Wrong("run.command", "stands beside run.flow, and a job has only one of them", "Keep run.flow")
    for name in UNSERVED:
        if name in run and not (run[name] is None and name in NULL_IS_ABSENT):
            yield Wrong(f"run.{name}", _UNSERVED, _TAKE_OUT)
    for name in UNSERVED_SWITCHES:
        if run.get(name) is True:
            yield Wrong(f"run.{name}", _UNSERVED, "Write false, or take it out")

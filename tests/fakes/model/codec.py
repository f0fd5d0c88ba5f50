"""Scripts as JSON, both ways, strictly: an unknown key, a missing key or a wrong type is an error that says
where.

::

    {"my-edit": {"steps": [{"step": "call", "tool": "bash", "arguments": {"command": "ls"}},
                           {"step": "say", "text": "done"}],
                 "usage": {"input": 10, "cached": 0, "output": 5, "cache_write": 0}}}

``step`` is the lower-case name of a class in ``script``; the other keys are its fields. Fields with a default
may be left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, fields
from typing import TypeVar

from .script import Call, Calls, Cut, Echo, Fault, Hang, Length, NoUsage, Say, Scenario, Slow, Step
from .usage import Usage

T = TypeVar("T")

STEPS: Mapping[str, type[Step]] = {
    cls.__name__.lower(): cls for cls in (Say, Echo, Call, Calls, Fault, Cut, Hang, Slow, Length, NoUsage)
}


class CodecError(ValueError):
    """The JSON is not a script. The message starts with the place, for example ``edit.steps[0].text``."""


def loads(text: str) -> dict[str, Scenario]:
    """Scenarios by name. Raises CodecError."""
    try:
        document = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise CodecError(f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    return {name: _scenario(name, value) for name, value in _object(document, "document").items()}


def dumps(scenarios: Mapping[str, Scenario]) -> str:
    """The JSON that ``loads`` reads back to equal values. Keys must be the scenarios' own names."""
    for name, scenario in scenarios.items():
        if name != scenario.name:
            raise CodecError(f"{name}: the scenario calls itself {scenario.name!r}; use that as the key")
    return json.dumps({name: _dump_scenario(scenario) for name, scenario in scenarios.items()}, indent=1)


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise CodecError(f"{name}: this key stands twice in one object; remove one")
    return dict(pairs)


def _no_constant(name: str) -> object:
    raise CodecError(f"{name}: not JSON; write a finite number")


def _scenario(name: str, value: object) -> Scenario:
    entry = _object(value, name)
    _keys(entry, name, allowed={"steps", "usage"}, required={"steps"})
    items = _list(entry["steps"], f"{name}.steps")
    steps = tuple(_step(item, f"{name}.steps[{i}]") for i, item in enumerate(items))
    where = f"{name}.usage"
    usage = _build(Usage, _object(entry["usage"], where), where) if "usage" in entry else None
    return _construct(Scenario, name, {"name": name, "steps": steps, "usage": usage})


def _step(value: object, where: str) -> Step:
    entry = dict(_object(value, where))
    if "step" not in entry:
        raise CodecError(f'{where}: has no "step"; write one of {", ".join(STEPS)}')
    kind = _string(entry.pop("step"), f"{where}.step")
    if kind not in STEPS:
        raise CodecError(f"{where}.step: unknown step {kind!r}; write one of {', '.join(STEPS)}")
    return _build(STEPS[kind], entry, where)


def _build(cls: type[T], entry: Mapping[str, object], where: str) -> T:
    known = fields(cls)  # type: ignore[arg-type]
    required = {field.name for field in known if field.default is MISSING}
    _keys(entry, where, allowed={field.name for field in known}, required=required)
    return _construct(cls, where, {key: READERS[key](value, f"{where}.{key}") for key, value in entry.items()})


def _construct(cls: type[T], where: str, arguments: Mapping[str, object]) -> T:
    try:
        return cls(**arguments)
    except ValueError as error:
        raise CodecError(f"{where}: {error}") from None


def _keys(entry: Mapping[str, object], where: str, *, allowed: set[str], required: set[str]) -> None:
    for key in entry:
        if key not in allowed:
            known = ", ".join(sorted(allowed)) or "none"
            raise CodecError(f"{where}.{key}: unknown key; allowed: {known}")
    for key in sorted(required - set(entry)):
        raise CodecError(f"{where}.{key}: missing")


def _object(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise CodecError(f"{where}: expected an object, got {_shown(value)}")
    return value


def _list(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        raise CodecError(f"{where}: expected a list, got {_shown(value)}")
    return value


def _string(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise CodecError(f"{where}: expected a string, got {_shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise CodecError(f"{where}: not UTF-8 (a lone surrogate); write the whole character") from None
    return value


def _integer(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise CodecError(f"{where}: expected a whole number, got {_shown(value)}")
    return value


def _seconds(value: object, where: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise CodecError(f"{where}: expected a number of seconds, got {_shown(value)}")
    return float(value)


def _calls(value: object, where: str) -> tuple[Call, ...]:
    items = _list(value, where)
    return tuple(_build(Call, _object(item, f"{where}[{i}]"), f"{where}[{i}]") for i, item in enumerate(items))


def _times(value: object, where: str) -> int | None:
    return None if value is None else _integer(value, where)


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


#: A field's name means the same in every step, so one reader a name is enough.
READERS: Mapping[str, Callable[[object, str], object]] = {
    "text": _string,
    "prefix": _string,
    "tool": _string,
    "arguments": _object,
    "calls": _calls,
    "status": _integer,
    "message": _string,
    "times": _times,
    "after_text": _string,
    "chunk_delay_s": _seconds,
    "chunks": _integer,
    "input": _integer,
    "cached": _integer,
    "output": _integer,
    "cache_write": _integer,
}


def _dump_scenario(scenario: Scenario) -> dict[str, object]:
    entry: dict[str, object] = {"steps": [_dump_step(step) for step in scenario.steps]}
    if scenario.usage is not None:
        entry["usage"] = asdict(scenario.usage)
    return entry


def _dump_step(step: Step) -> dict[str, object]:
    return {"step": type(step).__name__.lower(), **asdict(step)}

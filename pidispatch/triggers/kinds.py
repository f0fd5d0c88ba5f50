"""The kinds of value a field of the triggers file can hold, each with one strict reading.

JSON has types, so a number in quotes is no number here. What cannot be read is refused, and no message repeats it.
"""

import re
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, WithJsonSchema

from pidispatch.triggers.cron import Schedule
from pidispatch.values.base import Value
from pidispatch.values.forge import FORGES, ForgeKind
from pidispatch.values.job import FLOW_NAME
from pidispatch.values.reference import image_reference

#: Longest id of a schedule: with what is added to it, it is the id of a job.
ID_CHARS: Final = 128
_MOST_TURNS: Final = 10**9
_ID: Final = "[A-Za-z0-9._-]+"
_PROVIDER: Final = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_MODEL: Final = "[~@]?[A-Za-z0-9][A-Za-z0-9._:/@-]*"
_MODEL_CHARS: Final = 64


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")
    if not value.strip():
        raise ValueError("must not be empty or blank")
    return value


def _matching(pattern: str, reason: str, most: int) -> Callable[[object], str]:
    def check(value: object) -> str:
        text = _text(value)
        if len(text) > most or not re.fullmatch(pattern, text):
            raise ValueError(reason)
        return text

    return check


def _id(value: object) -> str:
    text = _text(value)
    if ":" in text:
        raise ValueError("must not hold a colon, which sets the parts of a job's id apart")
    if len(text) > ID_CHARS or not re.fullmatch(_ID, text):
        raise ValueError(f"must be 1 to {ID_CHARS} letters, digits, '.', '_' and '-'")
    return text


def _pattern(value: object) -> str:
    text = _text(value)
    Schedule.parse(text, UTC)
    return text


def _folder(value: object) -> str:
    text = _text(value)
    if not text.startswith("/"):
        raise ValueError("must be an absolute path, which means the same whatever folder a worker is started in")
    if "\0" in text:
        raise ValueError("must not hold a null character")
    return text


def _image(value: object) -> str:
    return image_reference(_text(value))


def _turns(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("must be a whole number")
    if not 1 <= value <= _MOST_TURNS:
        raise ValueError("must be 1 or more" if value < 1 else f"must be at most {_MOST_TURNS:,}")
    return value


def one_of(*words: str) -> Callable[[object], str]:
    """A validator for one of a few words."""

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError(f"must be {' or '.join(words)}")
        return value

    return check


def off(value: object) -> bool:
    """A switch whose `true` nothing serves; said by its own refusal before it comes here."""
    if value is not False:
        raise ValueError("must be false, or left out")
    return value


def _or_null(check: Callable[[object], object]) -> Callable[[object], object]:
    """`check` for a field in which `null` counts as left out. In all others it is a value of a wrong kind."""
    return lambda value: None if value is None else check(value)


def _schema(kind: str, **bounds: Any) -> WithJsonSchema:
    return WithJsonSchema({"type": kind, **bounds})


def _whole(pattern: str) -> str:
    return f"^(?:{pattern})$"


_TEXT: Final = _schema("string", pattern=r"\S")

Text = Annotated[str, BeforeValidator(_text), _TEXT]
ScheduleId = Annotated[str, BeforeValidator(_id), _schema("string", pattern=_whole(_ID), maxLength=ID_CHARS)]
Pattern = Annotated[str, BeforeValidator(_pattern), _schema("string", pattern=r"^\s*\S+(?:\s+\S+){4,5}\s*$")]
Folder = Annotated[Path, BeforeValidator(_folder), _schema("string", pattern="^/")]
#: A job carries the name of a skill and no other text, so other flows wait for a version that serves them.
Flow = Annotated[
    str,
    BeforeValidator(_matching(FLOW_NAME, "must be lower-case letters, digits, '-' and '_', at most 64", 64)),
    _schema("string", pattern=FLOW_NAME),
]
Provider = Annotated[
    str | None,
    BeforeValidator(_or_null(_matching(_PROVIDER, "must be 1 to 64 letters, digits, '.', '_' and '-'", 64))),
    WithJsonSchema({"type": ["string", "null"], "pattern": _whole(_PROVIDER)}),
]
Model = Annotated[
    str | None,
    BeforeValidator(
        _or_null(_matching(_MODEL, "must be a model's id: 1 to 64 letters, digits and . _ : / @ -", _MODEL_CHARS))
    ),
    WithJsonSchema({"type": ["string", "null"], "pattern": _whole(_MODEL), "maxLength": _MODEL_CHARS}),
]
Turns = Annotated[
    int | None,
    BeforeValidator(_or_null(_turns)),
    WithJsonSchema({"type": ["integer", "null"], "minimum": 1, "maximum": _MOST_TURNS}),
]
Image = Annotated[str | None, BeforeValidator(_image), _TEXT]
Off = Annotated[bool | None, BeforeValidator(off), WithJsonSchema({"const": False})]


def _labels(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError("must be a list of labels")
    return tuple(_text(one) for one in value)


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError("must be a list with at least one word")
    return tuple(_text(one) for one in value)


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("must be a whole number of 1 or more")
    return value


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _replicas(value: object) -> int:
    if isinstance(value, bool) or value not in (2, 3):
        raise ValueError("must be 2 or 3")
    return int(str(value))


def _instructions(value: object) -> str:
    text = _text(value)
    if len(text) > _INSTRUCTIONS:
        raise ValueError(f"must be at most {_INSTRUCTIONS:,} characters")
    return text


def _plain(value: object) -> str:
    text = _text(value)
    if text != text.strip():
        raise ValueError("must not have blanks around it")
    return text


def _repository(value: object) -> str:
    text = _plain(value)
    if "/" in text:
        raise ValueError("must be the repository's name alone, without a slash")
    return text


def _command(value: object) -> str:
    text = _plain(value)
    if text.startswith("/"):
        raise ValueError("must be the command without its slash")
    if _CONTROL.search(text):
        raise ValueError("must not hold control characters")
    return text


_INSTRUCTIONS: Final = 2_000
_CONTROL: Final = re.compile("[\x00-\x1f\x7f]")
_LIST: Final = {"type": "array", "items": {"type": "string", "pattern": r"\S"}}


class Disarmed(Value):
    """The mark of a rule that has fired; without a job it is one that a person wrote."""

    at: Annotated[str, BeforeValidator(_text)]
    job_id: Annotated[str | None, BeforeValidator(_text)] = None


Labels = Annotated[tuple[str, ...], BeforeValidator(_labels), WithJsonSchema(_LIST)]
Words = Annotated[tuple[str, ...], BeforeValidator(_words), WithJsonSchema(_LIST | {"minItems": 1})]
Number = Annotated[int | None, BeforeValidator(_number), _schema("integer", minimum=1)]
Switch = Annotated[bool | None, BeforeValidator(_switch), _schema("boolean")]
Replicas = Annotated[int | None, BeforeValidator(_replicas), WithJsonSchema({"enum": [2, 3]})]
Instructions = Annotated[
    str | None, BeforeValidator(_instructions), _schema("string", pattern=r"\S", maxLength=_INSTRUCTIONS)
]
SkillsDir = Annotated[str | None, BeforeValidator(_plain), _TEXT]
Repository = Annotated[str | None, BeforeValidator(_repository), _schema("string", pattern=r"^[^/]*\S[^/]*$")]
Command = Annotated[str | None, BeforeValidator(_command), _schema("string", pattern=r"^[^/\s]")]
Tokens = Turns
ForgeFlow = Annotated[
    str | None,
    BeforeValidator(_matching(FLOW_NAME, "must be lower-case letters, digits, '-' and '_', at most 64", 64)),
    _schema("string", pattern=FLOW_NAME),
]
ForgeName = Annotated[ForgeKind, BeforeValidator(one_of(*FORGES)), WithJsonSchema({"enum": list(FORGES)})]

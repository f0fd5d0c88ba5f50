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
from pidispatch.values.job import FLOW_NAME
from pidispatch.values.reference import image_reference

#: Longest id of a schedule: with what is added to it, it is the id of a job.
ID_CHARS: Final = 128
_MOST: Final = 10**9
_ID: Final = "[A-Za-z0-9._-]+"
_PROVIDER: Final = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_MODEL: Final = "[~@]?[A-Za-z0-9][A-Za-z0-9._:/@-]*"
_MODEL_CHARS: Final = 64


def as_text(value: object) -> str:
    """Text that says something. Raises `ValueError` with the reason, as all of these do."""
    if not isinstance(value, str):
        raise ValueError("must be text")
    if not value.strip():
        raise ValueError("must not be empty or blank")
    return value


def _matching(pattern: str, reason: str, most: int) -> Callable[[object], str]:
    def check(value: object) -> str:
        text = as_text(value)
        if len(text) > most or not re.fullmatch(pattern, text):
            raise ValueError(reason)
        return text

    return check


def _id(value: object) -> str:
    text = as_text(value)
    if ":" in text:
        raise ValueError("must not hold a colon, which sets the parts of a job's id apart")
    if len(text) > ID_CHARS or not re.fullmatch(_ID, text):
        raise ValueError(f"must be 1 to {ID_CHARS} letters, digits, '.', '_' and '-'")
    return text


def _pattern(value: object) -> str:
    text = as_text(value)
    Schedule.parse(text, UTC)
    return text


def _folder(value: object) -> str:
    text = as_text(value)
    if not text.startswith("/"):
        raise ValueError("must be an absolute path, which means the same whatever folder a worker is started in")
    if "\0" in text:
        raise ValueError("must not hold a null character")
    return text


def _image(value: object) -> str:
    return image_reference(as_text(value))


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("must be a whole number")
    if not 1 <= value <= _MOST:
        raise ValueError("must be 1 or more" if value < 1 else f"must be at most {_MOST:,}")
    return value


def one_of(*words: str) -> Callable[[object], str]:
    """A validator for one of a few words."""

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError(f"must be {' or '.join(words)}")
        return value

    return check


def _off(value: object) -> bool:
    """A switch whose `true` nothing serves; said by its own refusal before it comes here."""
    if value is not False:
        raise ValueError("must be false, or left out")
    return value


def _or_null(check: Callable[[object], object]) -> Callable[[object], object]:
    """`check` for a field in which `null` counts as left out. In all others it is a value of a wrong kind."""
    return lambda value: None if value is None else check(value)


def schema(kind: str, **bounds: Any) -> WithJsonSchema:
    """What the schema of the file says of such a field."""
    return WithJsonSchema({"type": kind, **bounds})


def _whole(pattern: str) -> str:
    return f"^(?:{pattern})$"


#: Text that is not blank.
TEXT_SCHEMA: Final = schema("string", pattern=r"\S")

Text = Annotated[str, BeforeValidator(as_text), TEXT_SCHEMA]
ScheduleId = Annotated[str, BeforeValidator(_id), schema("string", pattern=_whole(_ID), maxLength=ID_CHARS)]
Pattern = Annotated[str, BeforeValidator(_pattern), schema("string", pattern=r"^\s*\S+(?:\s+\S+){4,5}\s*$")]
Folder = Annotated[Path, BeforeValidator(_folder), schema("string", pattern=r"^/[^\u0000]*$")]
#: A job carries the name of a skill and no other text, so other flows wait for a version that serves them.
FLOW: Final = (
    BeforeValidator(_matching(FLOW_NAME, "must be lower-case letters, digits, '-' and '_', at most 64", 64)),
    schema("string", pattern=FLOW_NAME),
)
Flow = Annotated[str, *FLOW]
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
    BeforeValidator(_or_null(_count)),
    WithJsonSchema({"type": ["integer", "null"], "minimum": 1, "maximum": _MOST}),
]
Tokens = Annotated[int | None, BeforeValidator(_count), schema("integer", minimum=1, maximum=_MOST)]
Image = Annotated[str | None, BeforeValidator(_image), TEXT_SCHEMA]
Off = Annotated[bool | None, BeforeValidator(_off), WithJsonSchema({"const": False})]

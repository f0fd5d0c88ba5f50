"""The kinds of value that only a rule for events has, read as strictly as the others (`kinds`).

What a value must be on a certain forge, or beside another field, is not said here (`vocabulary`, `refusedrules`).
"""

import re
from typing import Annotated, Final

from pydantic import BeforeValidator, WithJsonSchema

from pidispatch.triggers.kinds import FLOW, TEXT_SCHEMA, as_text, one_of, schema
from pidispatch.values.forge import FORGES, ForgeKind

#: Characters of the longest instructions.
INSTRUCTION_CHARS: Final = 2_000
#: Jobs for one event.
REPLICAS: Final = (2, 3)
_CONTROL: Final = re.compile("[\x00-\x1f\x7f]")
_LIST: Final = {"type": "array", "items": {"type": "string", "pattern": r"\S"}}


def _labels(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError("must be a list of labels")
    return tuple(as_text(one) for one in value)


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError("must be a list with at least one word")
    return tuple(as_text(one) for one in value)


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("must be a whole number of 1 or more")
    return value


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _replicas(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in REPLICAS:
        raise ValueError(f"must be {' or '.join(map(str, REPLICAS))}")
    return value


def _instructions(value: object) -> str:
    text = as_text(value)
    if len(text) > INSTRUCTION_CHARS:
        raise ValueError(f"must be at most {INSTRUCTION_CHARS:,} characters")
    return text


def _plain(value: object) -> str:
    text = as_text(value)
    if text != text.strip():
        raise ValueError("must not have blanks around it")
    if _CONTROL.search(text):
        raise ValueError("must not hold control characters")
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
    return text


def _mark(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError("must be an object")
    return value


Labels = Annotated[tuple[str, ...], BeforeValidator(_labels), WithJsonSchema(_LIST)]
Words = Annotated[tuple[str, ...], BeforeValidator(_words), WithJsonSchema(_LIST | {"minItems": 1})]
OptionalWords = Annotated[tuple[str, ...] | None, BeforeValidator(_words), WithJsonSchema(_LIST | {"minItems": 1})]
OptionalFlow = Annotated[str | None, *FLOW]
JobName = Annotated[str | None, BeforeValidator(as_text), TEXT_SCHEMA]
Number = Annotated[int | None, BeforeValidator(_number), schema("integer", minimum=1)]
Switch = Annotated[bool | None, BeforeValidator(_switch), schema("boolean")]
Replicas = Annotated[int | None, BeforeValidator(_replicas), WithJsonSchema({"enum": list(REPLICAS)})]
Instructions = Annotated[
    str | None, BeforeValidator(_instructions), schema("string", pattern=r"\S", maxLength=INSTRUCTION_CHARS)
]
SkillsDir = Annotated[
    str | None, BeforeValidator(_plain), schema("string", pattern=r"^(?!\s)[^\u0000-\u001f\u007f]*\S$")
]
Repository = Annotated[
    str | None, BeforeValidator(_repository), schema("string", pattern=r"^(?!\s)[^/\u0000-\u001f\u007f]*\S$")
]
Command = Annotated[
    str | None, BeforeValidator(_command), schema("string", pattern=r"^(?![\s/])[^\u0000-\u001f\u007f]*\S$")
]
ForgeName = Annotated[ForgeKind, BeforeValidator(one_of(*FORGES)), WithJsonSchema({"enum": list(FORGES)})]
#: Before an object: nothing else, also not null.
OBJECT: Final = BeforeValidator(_mark)

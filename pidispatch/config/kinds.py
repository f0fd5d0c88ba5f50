"""The kinds of value a variable can hold, each with one strict reading.

The rules are those of docs/reference/settings.md: an integer is its own plain decimal text (`03`, `+3`, `1_000`,
`3.0` and `1e2` are refused), and what cannot be read is refused with the remedy instead of guessed at.
"""

import re
from collections.abc import Callable
from typing import Annotated

from pydantic import BeforeValidator

from pidispatch.values.reference import image_reference

_DECIMAL = re.compile(r"0|[1-9][0-9]*")
_MAX_DIGITS = 15
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def strict_integer(value: object) -> int:
    """A whole number from its plain decimal text (blanks around it are allowed) or from an `int`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str) or not _DECIMAL.fullmatch(value.strip(" \t")):
        raise ValueError("must be a whole number in plain decimal digits")
    if len(value.strip(" \t")) > _MAX_DIGITS:
        raise ValueError(f"must have at most {_MAX_DIGITS} digits")
    return int(value)


def at_least(floor: int) -> Callable[[object], int]:
    """A validator for a whole number that is not below `floor`."""

    def check(value: object) -> int:
        number = strict_integer(value)
        if number < floor:
            raise ValueError(f"must be {floor} or more")
        return number

    return check


def within(floor: int, ceiling: int) -> Callable[[object], int]:
    """A validator for a whole number from `floor` to `ceiling`."""

    def check(value: object) -> int:
        number = strict_integer(value)
        if not floor <= number <= ceiling:
            raise ValueError(f"must be from {floor} to {ceiling}")
        return number

    return check


PositiveInt = Annotated[int, BeforeValidator(at_least(1))]
NonNegativeInt = Annotated[int, BeforeValidator(at_least(0))]
Percent = Annotated[int, BeforeValidator(within(1, 99))]
#: Hours of a week at most.
WeekHours = Annotated[int, BeforeValidator(within(0, 168))]


def switch(value: object) -> bool:
    """`1` for on, `0` for off; nothing else."""
    if isinstance(value, bool):
        return value
    if value not in ("0", "1"):
        raise ValueError("must be 0 or 1")
    return value == "1"


Switch = Annotated[bool, BeforeValidator(switch)]


def only_one(value: object) -> bool:
    """`1` turns it on; whatever else stands there leaves it off."""
    return value is True or value == "1"


StrictOne = Annotated[bool, BeforeValidator(only_one)]


def only_zero_off(value: object) -> bool:
    """`0` turns it off; whatever else stands there leaves it on."""
    return not (value is False or value == "0")


OnUnlessZero = Annotated[bool, BeforeValidator(only_zero_off)]


def name_list(value: object) -> tuple[str, ...]:
    """Variable names from a comma-separated text; empty parts are dropped."""
    if isinstance(value, tuple):
        return value
    names = tuple(part.strip() for part in str(value).split(",") if part.strip())
    for name in names:
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"holds {name!r}, which is not the name of a variable")
    return names


NameList = Annotated[tuple[str, ...], BeforeValidator(name_list)]


def plain_text(value: object) -> str:
    """One line of text without blanks around it, control characters or a leading dash."""
    text = str(value)
    if text != text.strip() or not text.isprintable() or not text:
        raise ValueError("must be text without blanks around it and without control characters")
    if text.startswith("-"):
        raise ValueError("must not begin with a dash")
    return text


PlainText = Annotated[str, BeforeValidator(plain_text)]

ImageReference = Annotated[str, BeforeValidator(image_reference)]

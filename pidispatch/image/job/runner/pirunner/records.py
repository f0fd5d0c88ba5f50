"""Careful reading of JSON that somebody else wrote: nothing here raises on a surprising shape."""

import json
from collections.abc import Mapping
from decimal import Decimal

#: One JSON object of pi's stream. Fractions are Decimal, never float.
Record = Mapping[str, object]

_EMPTY: Record = {}


def parse_record(line: bytes) -> Record | None:
    """The object on one line, or None for anything else: noise, a cut line, an array, a number too long to read."""
    try:
        value = json.loads(line, parse_float=Decimal, parse_constant=_no_number)
    except (ValueError, RecursionError, ArithmeticError):
        return None
    return value if isinstance(value, dict) else None


def _no_number(_token: str) -> None:
    """NaN and Infinity are no JSON; they read as absent."""


def mapping(record: Record, key: str) -> Record:
    """The object at `key`, or an empty one."""
    value = record.get(key)
    return value if isinstance(value, dict) else _EMPTY


def items(record: Record, key: str) -> list[object]:
    """The list at `key`, or an empty one."""
    value = record.get(key)
    return value if isinstance(value, list) else []


def objects(record: Record, key: str) -> list[Record]:
    """The objects of the list at `key`."""
    return [item for item in items(record, key) if isinstance(item, dict)]


def text(record: Record, key: str) -> str:
    """The string at `key`, or an empty one."""
    value = record.get(key)
    return value if isinstance(value, str) else ""


def integer(record: Record, key: str) -> int | None:
    """The integer at `key`; a fraction without remainder counts as one, a boolean does not."""
    value = record.get(key)
    if isinstance(value, bool):
        return None
    if isinstance(value, Decimal):
        # The bound comes first: Decimal("1e999999") is legal JSON and would become a million digits. It is compared as
        # it is, because arithmetic on it can overflow.
        if not value.is_finite() or value.copy_abs() > 2**53 or value != value.to_integral_value():
            return None
        return int(value)
    return value if isinstance(value, int) else None

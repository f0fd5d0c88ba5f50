"""The runner's last word, read from the end of a container's output: claims, and whatever is malformed is nothing.

Anything in the box can write to the same output. So the end of a run is read from the last exit line alone, every
field is rebuilt from checked parts, and nothing of it decides whether a run is retried (docs/reference/runner.md).
"""

import json
import re
import sys
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pidispatch.values.reason import KEPT_RUNNER_REASONS, RunnerReason
from pidispatch.values.usage import Context, Telemetry, Usage, UsageRow

_ANCHOR = '{"event":"'
_SAFE_INTEGER = 2**53 - 1
_NAME = re.compile(r"[a-z0-9][a-z0-9._:/-]{0,63}")
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")
_COUNTS = (
    "calls",
    "input",
    "output",
    "cacheRead",
    "cacheWrite",
    "cacheWrite1h",
    "reasoning",
    "total",
    "cost",
)
#: What the runner says of tokens (docs/reference/runner.md). Other names could carry text into a record.
_TOKENS = frozenset(
    [
        "input",
        "output",
        "total",
        "cost",
        "metered",
        "rootTotal",
        "otherTotal",
        "looseTotal",
        "sessions",
        "calls",
        "unresolved",
        "unpriced",
    ]
)
_MAX_FLOAT = Decimal(sys.float_info.max)
_MESSAGE_CHARS = 2000


class _Malformed(ValueError):
    """A field that is there and cannot be used."""


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _parse(text: str) -> Any:
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_refuse_constant)
    except (ValueError, RecursionError, ArithmeticError):
        return None


def parse_line(line: str) -> dict[str, Any] | None:
    """The object on one output line, also behind stray bytes; `None` for a line that was cut or is something else.

    Correct because `event` is an object's first key and JSON escapes quotes inside of texts.
    """
    whole = _parse(line)
    if isinstance(whole, dict):
        return whole
    start = line.find(_ANCHOR, 1)
    while start != -1:
        found = _parse(line[start:])
        if isinstance(found, dict):
            return found
        start = line.find(_ANCHOR, start + 1)
    return None


def last_exit(tail: str) -> dict[str, Any] | None:
    """The last exit line of `tail`; older ones are never consulted."""
    for line in reversed(tail.split("\n")):
        text = line.strip()
        # Most lines of a chatty agent are no events, and parsing them would cost more than the run's end.
        if _ANCHOR in text or text.startswith("{"):
            found = parse_line(text)
            if found is not None and found.get("event") == "exit":
                return found
    return None


def has_runner_line(tail: str) -> bool:
    """Whether the runner said anything at all: a container whose entry point never ran has no such line."""
    return any(
        _ANCHOR in line and isinstance((parse_line(line.strip()) or {}).get("event"), str) for line in tail.split("\n")
    )


def read_telemetry(tail: str) -> Telemetry:
    """Everything the last exit line says, field by field."""
    line = last_exit(tail)
    if line is None:
        return Telemetry()
    return Telemetry(
        turns=_integer(line.get("turns")),
        tokens=_tokens(line.get("tokens")),
        usage=_usage(line.get("usage")),
        context=_context(line.get("context")),
        reason=_reason(line.get("reason"), line.get("code")),
        message=_message(line.get("message")),
        truncated=line.get("truncated") is True,
    )


def _number(value: object) -> Decimal | None:
    """A finite number as a Decimal; `True` is no number."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    number = Decimal(value)
    return number if number.is_finite() and number.copy_abs() <= _MAX_FLOAT else None


def _integer(value: object) -> int | None:
    """A whole number no larger than JSON carries exactly; `3.0` is one, `True` is none."""
    number = _number(value)
    if number is None or number.copy_abs() > _SAFE_INTEGER or number != number.to_integral_value():
        return None
    return int(number)


def _tokens(value: object) -> dict[str, Decimal | bool] | None:
    if not isinstance(value, Mapping) or _number(value.get("total")) is None:
        return None
    kept: dict[str, Decimal | bool] = {}
    for name in _TOKENS & value.keys():
        part, number = value[name], _number(value[name])
        if isinstance(part, bool):
            kept[name] = part
        elif number is not None:
            kept[name] = number
    return kept


def _context(value: object) -> Context | None:
    if not isinstance(value, Mapping):
        return None
    tokens, window = _integer(value.get("tokens")), _integer(value.get("window"))
    if tokens is None or window is None or tokens < 0 or window <= 0:
        return None
    return Context(tokens=tokens, window=window)


def _reason(value: object, code: object) -> RunnerReason | None:
    # What follows a colon is the agent's own word, which is not kept.
    token = value.partition(":")[0] if isinstance(value, str) else None
    found = next((reason for reason in RunnerReason if reason == token), None)
    # These become the run's own reason, so the line must at least agree with itself.
    return None if found in KEPT_RUNNER_REASONS and code != 2 else found


def _message(value: object) -> str | None:
    return value[:_MESSAGE_CHARS] if isinstance(value, str) and value.strip() else None


def _usage(value: object) -> Usage | None:
    """The usage block rebuilt from checked parts: whole or not at all."""
    if not isinstance(value, Mapping):
        return None
    version, truncated = _integer(value.get("v")), _integer(value.get("truncated", 0))
    pi_ai, rows = value.get("piAi"), value.get("models")
    if version is None or version < 1 or truncated is None or truncated < 0:
        return None
    if pi_ai is not None and not (isinstance(pi_ai, str) and _VERSION.fullmatch(pi_ai)):
        return None
    if not isinstance(rows, list) or not 1 <= len(rows) <= 9:
        return None
    try:
        models = tuple(_row(row) for row in rows)
    except _Malformed:
        return None
    return Usage(v=version, pi_ai=pi_ai, truncated=truncated, models=models)


def _row(value: object) -> UsageRow:
    if not isinstance(value, Mapping):
        raise _Malformed
    fields: dict[str, Any] = {}
    for name in ("provider", "model"):
        text = value.get(name)
        if not isinstance(text, str) or not _NAME.fullmatch(text.lower()):
            raise _Malformed
        fields[name] = text.lower()
    for name in (*_COUNTS, "unpriced"):
        number = _number(value.get(name, 0))
        if number is None or number < 0:
            raise _Malformed
        fields[name] = number
    return UsageRow.model_validate(fields)

"""What the index says of a record: one row an attempt and one a model, computed from the record alone.

docs/reference/record.md tells what each column holds.
"""

import zlib
from collections.abc import Collection
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

from pidispatch.runs.records import microseconds
from pidispatch.values.record import EarlierAttempt, RunRecord
from pidispatch.values.usage import Usage, UsageRow

Row = dict[str, object]

#: Most that a column can hold; a box can claim any number.
_MOST: Final = 2**63 - 1
_MICROS: Final = 6
#: What the job is, which no attempt changes.
_OF_THE_JOB: Final = (
    *("job_id", "kind", "target", "flow", "command", "parent_job_id", "trigger_type", "trace_id"),
    *("chain_depth", "chain_enqueued", "chain_refused", "replica", "replicas", "trigger_index"),
)
#: What is kept of the last attempt alone.
_OF_THE_LAST: Final = ("outcome", "turns", "provider", "model", "host", "image_digest", "changed")
#: What is kept of each attempt.
_OF_EACH: Final = ("attempt", "reason", "cause", "exit_code", "git_restored", "budget_reserved")
#: Column by key of `tokens`.
_TOKENS: Final = {
    "input": "tokens_input",
    "output": "tokens_output",
    "total": "tokens_total",
    "calls": "calls",
    "unresolved": "unresolved",
    "unpriced": "unpriced",
}
#: Numbers of a row by model that stand under their own names.
_USAGE: Final = (
    *("calls", "input", "output", "cache_read", "cache_write"),
    *("cache_write1h", "reasoning", "total", "unpriced"),
)


def rows_of(file: str, record: RunRecord) -> tuple[list[Row], list[Row]]:
    """Rows of `attempts` and of `usage` for the record in `file`. Raises `ValueError` for text that is none."""
    tries: tuple[EarlierAttempt | RunRecord, ...] = (*record.attempts, record)
    attempts = [_attempt_row(file, place, one, record) for place, one in enumerate(tries)]
    usage = [
        _usage_row(file, place, number, row)
        for place, one in enumerate(tries)
        if one.usage is not None
        for number, row in enumerate(one.usage.models)
    ]
    return attempts, usage


def _attempt_row(file: str, place: int, one: EarlierAttempt | RunRecord, record: RunRecord) -> Row:
    last = one is record
    row: Row = {"file": file, "place": place, "last": last}
    row |= {name: _held(getattr(record, name)) for name in _OF_THE_JOB}
    row |= {name: _held(getattr(record, name)) if last else None for name in _OF_THE_LAST}
    row |= {name: _held(getattr(one, name)) for name in _OF_EACH}
    context = record.context if last else None
    row["context_tokens"] = whole(context.tokens) if context else None
    row["context_window"] = whole(context.window) if context else None
    started, ended = microseconds(one.started_at), microseconds(one.ended_at)
    row |= {"started_us": started, "ended_us": ended, "at_us": started if ended is None else ended}
    return row | _spent(one.tokens, one.usage)


def _spent(tokens: dict[str, Decimal | bool] | None, usage: Usage | None) -> Row:
    claimed = tokens or {}
    row: Row = {column: whole(claimed.get(key)) for key, column in _TOKENS.items()}
    metered = claimed.get("metered")
    row["metered"] = metered if isinstance(metered, bool) else None
    row["cost_micros"] = micros(claimed.get("cost"))
    row["usage_truncated"] = whole(usage.truncated) if usage else None
    return row


def _usage_row(file: str, place: int, number: int, row: UsageRow) -> Row:
    keys: Row = {"file": file, "place": place, "number": number}
    named = {"provider": _held(row.provider), "model": _held(row.model), "cost_micros": micros(row.cost)}
    return keys | named | {name: whole(getattr(row, name)) for name in _USAGE}


def _held(value: object) -> object:
    """A plain value as a column can hold it."""
    if isinstance(value, str):
        if not is_text(value):
            raise ValueError("half of a surrogate pair")
        return value
    return value if value is None or isinstance(value, bool) else whole(value)


def sums(names: Collection[str]) -> tuple[int, int]:
    """How many names, and the sum of their checksums: those of two sets are equal where the sets are."""
    # In few long steps instead of many short ones; no name holds a `/`.
    parts = "/".join(names).encode(errors="surrogateescape").split(b"/")
    return len(names), sum(map(zlib.crc32, parts))


def crc(name: str) -> int:
    """The checksum of a file's name."""
    return zlib.crc32(name.encode(errors="surrogateescape"))


def is_text(value: str | None) -> bool:
    """Whether a table can hold it: half of a surrogate pair is text to JSON and to file names alone."""
    try:
        (value or "").encode()
    except UnicodeEncodeError:
        return False
    return True


def whole(value: object) -> int | None:
    """A whole number that fits a column; `None` for every other value."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return int(value) if -_MOST <= value <= _MOST and value == int(value) else None


def micros(dollars: Decimal | bool | None) -> int | None:
    """US dollars in whole millionths; `None` where there are none, or more than any run costs."""
    if not isinstance(dollars, Decimal) or abs(dollars) > _MOST:
        return None
    return whole(dollars.scaleb(_MICROS).to_integral_value(ROUND_HALF_EVEN))

"""The exit line's ``tokens``, ``usage`` and ``context``: the meter's sums in the shape the worker reads.

Shapes: docs/reference/runner.md.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from pirunner import records
from pirunner.meter import NO_MODEL, Meter, ModelKey, Row, Source

#: Models that get a row of their own; the rest share one.
NAMED_ROWS = 8
_OTHER: ModelKey = ("other", "other")

#: What the worker accepts as a name. One name outside of it would cost the whole block, so such a model is folded.
_NAME = re.compile(r"[a-z0-9][a-z0-9._:/-]{0,63}", re.ASCII)
_VERSION = re.compile(r"\d+\.\d+\.\d+", re.ASCII)


def tokens(meter: Meter) -> Mapping[str, object]:
    """Totals of the run; ``rootTotal + otherTotal + looseTotal == total``."""
    total = meter.total
    return {
        "input": total.input,
        "output": total.output,
        "total": total.total,
        "cost": total.cost,
        "metered": True,
        "rootTotal": meter.by_source[Source.ROOT],
        "otherTotal": meter.by_source[Source.OTHER],
        "looseTotal": meter.by_source[Source.LOOSE],
        "sessions": int(total.calls > 0),
        "calls": total.calls,
        "unresolved": meter.unresolved,
        "unpriced": total.unpriced,
    }


def usage(meter: Meter, pi_ai: str | None) -> Mapping[str, object] | None:
    """Rows per model that sum exactly to the totals; None when no call was metered."""
    if not meter.total.calls:
        return None
    nameable = [key for key in meter.by_model if key != NO_MODEL and all(map(_is_name, key))]
    # sorted() is stable: models with equal totals stay in first-seen order.
    named = sorted(nameable, key=lambda key: meter.by_model[key].total, reverse=True)[:NAMED_ROWS]
    rows = [_row(key, meter.by_model[key]) for key in named]
    folded = [key for key in meter.by_model if key not in named]
    if folded:
        rest = Row()
        for key in folded:
            rest.merge(meter.by_model[key])
        rows.append(_row(_OTHER, rest))
    truncated = sum(key != NO_MODEL for key in folded)
    return {"v": 1, "piAi": pi_ai, "truncated": truncated, "models": rows}


def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name.lower()) is not None


def _row(key: ModelKey, row: Row) -> Mapping[str, object]:
    return {
        "provider": key[0],
        "model": key[1],
        "calls": row.calls,
        "input": row.input,
        "output": row.output,
        "cacheRead": row.cache_read,
        "cacheWrite": row.cache_write,
        "cacheWrite1h": row.cache_write_1h,
        "reasoning": row.reasoning,
        "total": row.total,
        "cost": row.cost,
        "unpriced": row.unpriced,
    }


def context(meter: Meter, window: int | None) -> Mapping[str, object] | None:
    """How full the model's context is at the end; None when either side is unknown. Both are token counts."""
    if meter.context_tokens is None or window is None or window <= 0:
        return None
    return {"tokens": meter.context_tokens, "window": window}


def pi_ai_version(manifest: Path) -> str | None:
    """The version in pi-ai's package manifest, whose price table made the costs; None when it cannot be read."""
    try:
        record = records.parse_record(manifest.read_bytes())
    except OSError:
        return None
    version = records.text(record, "version") if record is not None else ""
    return version if _VERSION.fullmatch(version) else None

"""The keys that a page documents, and those that a document has, to be compared."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[2] / "docs"


def documented(page: str, heading: str) -> set[str]:
    """Every key in the first column of the tables below `heading` of a page, up to the next heading of any level."""
    _, found, rest = (DOCS / page).read_text(encoding="utf-8").partition(f"\n{heading}\n")
    assert found, f"{page} has no heading {heading!r}"
    section = re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    rows = re.findall(r"^\| (`[^|]+`) \|", section, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def keys(value: Any, path: str = "") -> set[str]:
    """Every key of a document, `a.b` for one of an object in `a`, also of the objects in a list."""
    return set(_keys(value, path))


def _keys(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for one in value:
            yield from _keys(one, path)
    elif isinstance(value, dict):
        for name, one in value.items():
            yield f"{path}{name}"
            yield from _keys(one, f"{path}{name}.")

"""Triggers files for the tests."""

import json
from pathlib import Path
from typing import Any

from pidispatch.triggers.file import parse_triggers

PATH = Path("/etc/pi-dispatch/triggers.json")
#: In the place of a field: it is left out.
ABSENT = object()


def entry(on: dict[str, Any] | None = None, run: dict[str, Any] | None = None) -> dict[str, Any]:
    """A schedule as it is written, with other or further fields."""
    whole = {
        "on": {"type": "cron", "id": "nightly", "pattern": "0 3 * * *"} | (on or {}),
        "run": {"kind": "local", "folder": "/srv/site", "flow": "tidy", "task": "run the nightly tidy"} | (run or {}),
    }
    return {
        part: {key: value for key, value in fields.items() if value is not ABSENT} for part, fields in whole.items()
    }


def text(*entries: Any) -> str:
    """A file of these entries."""
    return json.dumps({"triggers": list(entries)})


def document(*entries: Any) -> Any:
    """The entries of a file as they come out of it."""
    return parse_triggers(text(*entries), PATH).document()["triggers"]

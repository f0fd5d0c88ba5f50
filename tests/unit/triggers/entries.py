"""Triggers files for the tests."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pidispatch.triggers.entry import TriggersFile
from pidispatch.triggers.file import parse_triggers
from pidispatch.triggers.vocabulary import words_of
from pidispatch.values.errors import ConfigError
from pidispatch.values.forge import FORGES

PATH = Path("/etc/pi-dispatch/triggers.json")
#: In the place of a field: it is left out.
ABSENT = object()


def entry(on: dict[str, Any] | None = None, run: dict[str, Any] | None = None) -> dict[str, Any]:
    """A schedule as it is written, with other or further fields."""
    whole = {
        "on": {"type": "cron", "id": "nightly", "pattern": "0 3 * * *"} | (on or {}),
        "run": {"kind": "local", "folder": "/srv/site", "flow": "tidy", "task": "run the nightly tidy"} | (run or {}),
    }
    return _written(whole)


def rule(
    kind: str = "github", trigger: str = "label", on: dict[str, Any] | None = None, run: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The smallest rule for events of this kind and type, with other or further fields."""
    row = next(row for row in FORGES.values() if row.kind == kind)
    own: dict[str, dict[str, Any]] = {
        "label": {"any": ["pi:fix"]},
        "comment": {"phrase": "@pi"},
        "pull_request": {"action": list(words_of(row, "pull_request")[:1])},
        "issue": {"action": [row.close_word]},
    }
    named = {"repository": "widgets"} if row.names_repository and trigger in ("label", "comment") else {}
    whole = {
        "on": {"type": trigger} | own[trigger] | (on or {}),
        "run": {"kind": kind, "flow": "fix"} | named | (run or {}),
    }
    return _written(whole)


def _written(whole: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        part: {key: value for key, value in fields.items() if value is not ABSENT} for part, fields in whole.items()
    }


def parsed(*entries: Any) -> TriggersFile:
    """A file of these entries, read."""
    return parse_triggers(text(*entries), PATH)


def refusal(content: str) -> str:
    """What is said of a file that is refused, without its path before each line."""
    with pytest.raises(ConfigError) as caught:
        parse_triggers(content, PATH)
    assert caught.value.cause == "operator-file"
    assert caught.value.exit_code == 2
    for line in caught.value.message.splitlines():
        assert line.startswith(f"{PATH}: ")
        assert ". " in line
        assert not re.search(r"(?<!\.)\.\.(?!\.)", line), "two sentences that end one another"
    return caught.value.message.replace(f"{PATH}: ", "")


def text(*entries: Any) -> str:
    """A file of these entries."""
    return json.dumps({"triggers": list(entries)})


def document(*entries: Any) -> Any:
    """The entries of a file as they come out of it."""
    return parsed(*entries).document()["triggers"]

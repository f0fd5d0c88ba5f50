"""Which forges this version hears, told without loading any of them or the models of the triggers file."""

import json
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from pidispatch.config.operator_file import read_bytes
from pidispatch.config.settings import load_only
from pidispatch.values.errors import ConfigError
from pidispatch.values.forge import FORGES


def is_served(kind: str) -> bool:
    """Whether there is a module for a forge."""
    return find_spec(f"pidispatch.forges.{kind}") is not None


def unheard_rules() -> dict[str, list[int]]:
    """Of each forge that is not served the places of its armed rules in PI_TRIGGERS_FILE.

    Read with doubt, so that a look at the queue neither loads a model nor hangs on the file: what is wrong with it is
    told by who serves it. Empty where it is not named or cannot be read.
    """
    found: dict[str, list[int]] = {}
    for index, entry in enumerate(_entries()):
        match entry:
            case {"on": {**on}, "run": {"kind": str(kind)}} if kind in FORGES and not _disarmed(on):
                if not is_served(kind):
                    found.setdefault(kind, []).append(index)
    return found


def _disarmed(on: Mapping[Any, Any]) -> bool:
    return on.get("disarmed") is not None


def _entries() -> list[Any]:
    try:
        path = load_only(("PI_TRIGGERS_FILE",)).triggers_file
        document = None if path is None else json.loads(read_bytes(path))
    except (ConfigError, ValueError, RecursionError):
        return []
    entries = document.get("triggers") if isinstance(document, dict) else None
    return entries if isinstance(entries, list) else []

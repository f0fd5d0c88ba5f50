"""The operator's overlay (`PI_GLOBAL_PI_DIR`): what of it is served, and that no credential stands in it."""

import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from pidispatch.values.errors import ConfigError, InfraError

_MAX_BYTES = 1024 * 1024
_REFERENCE = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})")
_SECRET_HEADERS = ("authorization", "api-key", "token", "secret", "cookie")


def check_overlay(folder: Path) -> None:
    """Refuse (`ConfigError`) an overlay that holds more than a credential-free `models.json`.

    What this version does not serve is refused by name instead of ignored, so that nobody believes it in force.
    """
    try:
        entries = sorted(os.listdir(folder))
    except OSError as error:
        raise InfraError(f"PI_GLOBAL_PI_DIR cannot be listed: {error.strerror}", "overlay-unreadable") from None
    if others := [entry for entry in entries if entry != "models.json"]:
        raise ConfigError(
            f"PI_GLOBAL_PI_DIR holds {', '.join(map(repr, others))}, which this version does not serve: only "
            "models.json is. Move the rest out of the folder",
            "overlay-not-served",
        )
    if entries:
        _check_models(folder / "models.json")


def _check_models(path: Path) -> None:
    try:
        facts = path.lstat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > _MAX_BYTES:
            raise ConfigError(
                "models.json in PI_GLOBAL_PI_DIR must be a regular file of at most 1 MiB, not a link",
                "overlay-models",
            )
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise ConfigError("models.json in PI_GLOBAL_PI_DIR is not JSON; mend it", "overlay-models") from None
    except OSError as error:
        raise InfraError(f"models.json cannot be read: {error.strerror}", "overlay-unreadable") from None
    if not isinstance(document, dict) or not isinstance(document.get("providers", {}), dict):
        raise ConfigError('models.json must be an object like {"providers": {...}}', "overlay-models")
    for place in _secrets(document, ""):
        raise ConfigError(
            f"models.json holds a literal credential or a command at {place}. The agent can read the file: write a "
            'reference to a variable instead ("$NAME") and name the variable in PI_FORWARD_ENV',
            "overlay-credential",
        )


def _secrets(node: object, place: str) -> Iterator[str]:
    """Places of literal keys, key commands and credential headers."""
    if isinstance(node, dict):
        for key, value in node.items():
            here = f"{place}.{key}" if place else str(key)
            if _is_secret_key(str(key)) and isinstance(value, str) and not _REFERENCE.fullmatch(value):
                yield here
            else:
                yield from _secrets(value, here)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _secrets(value, f"{place}[{index}]")


def _is_secret_key(key: str) -> bool:
    lowered = key.lower()
    if lowered in ("apikey", "x-api-key"):
        return True
    return not lowered.startswith("max") and any(
        lowered == word or lowered.endswith("-" + word) for word in _SECRET_HEADERS
    )

"""The API key that pi itself keeps on this machine (`auth.json` in its own folder), and what of it is never taken.

Only a plain key is: a login is bound to a person, and a command or a reference would have to be run or looked up here.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from pidispatch.box.providers import KEY_VARIABLES
from pidispatch.config.settings import Settings
from pidispatch.values.base import Value
from pidispatch.values.errors import InfraError

_MAX_BYTES = 1024 * 1024


class StoredKey(Value):
    """What `auth.json` gives for one provider."""

    #: The key under its variable's name; empty when there is none to take.
    variables: dict[str, str] = Field(default_factory=dict, repr=False)
    #: Why an entry that is there is not taken.
    refused: str | None = None


def stored_key(provider: str, agent_dir: Path, forwarded: Mapping[str, str]) -> StoredKey:
    """The key of `provider` in `agent_dir`; `forwarded` are the variables that enter the box anyway.

    A missing or malformed file gives none. Raises `InfraError` for a file that is there and cannot be read now.
    """
    names = KEY_VARIABLES.get(provider)
    entry = _read(agent_dir / "auth.json").get(provider)
    if names is None or entry is None:
        return StoredKey()
    if not isinstance(entry, dict) or entry.get("type") != "api_key":
        return StoredKey(refused="is a login, not an API key, and is never handed to a job")
    key = entry.get("key")
    if not isinstance(key, str) or not key or key.startswith("!") or "$" in key or "\0" in key:
        return StoredKey(refused="is no literal key (a command or a reference to a variable)")
    companions = entry.get("env") or {}
    if not isinstance(companions, dict) or any(not forwarded.get(name) for name in companions):
        return StoredKey(refused="needs further variables (env), which PI_FORWARD_ENV does not name")
    # The last name is that of the plain API key; the ones before it are of logins.
    return StoredKey(variables={names[-1]: key})


def key_beside(provider: str, settings: Settings, environ: Mapping[str, str]) -> StoredKey:
    """pi's own key of `provider`, where the settings let it be taken. Raises like `stored_key`."""
    if not settings.auth_from_pi:
        return StoredKey()
    return stored_key(provider, settings.agent_dir, {name: environ.get(name, "") for name in settings.forward_env})


def _read(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        document = json.loads(content) if len(content) <= _MAX_BYTES else None
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
        return {}
    except OSError as error:
        raise InfraError(
            f"auth.json in pi's own folder cannot be read: {error.strerror}. Check its owner and mode, or set "
            "PI_AUTH_FROM_PI=0",
            "auth-unreadable",
        ) from None
    return document if isinstance(document, dict) else {}

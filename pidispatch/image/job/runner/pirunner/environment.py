"""The runner's environment, parsed once and strictly: a variable that is not understood ends the job before any spend.

The names and rules are listed in docs/reference/runner.md.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pirunner.refusal import config

#: Largest integer both ends of the line protocol represent exactly.
MAX_SAFE_INTEGER = 2**53 - 1

#: Features whose enforcement this image does not have. Accepting and ignoring one would be a silent hole.
NOT_SERVED = (
    "PI_COMMAND",
    "PI_PACKAGES",
    "PI_SESSION_FILE",
    "PI_EXCLUDE_TOOLS",
    "PI_ALLOWED_MODELS",
    "PI_MAX_COST_MICROS",
    "PI_EXIT_AUTH",
    "PI_GLOBAL_ALLOW_EXTENSIONS",
)

_POSITIVE = re.compile(r"[1-9][0-9]{0,15}", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Environment:
    """What the job was asked to do with which limits."""

    provider: str
    model: str
    #: Turns the agent may take, at least 1.
    max_turns: int
    #: Billed tokens after which the agent is stopped; None means no cap.
    max_tokens: int | None
    #: How often pi restarts a turn that failed at the provider.
    retry_max: int
    #: First delay of that restart in milliseconds; it doubles each time.
    retry_base_ms: int
    #: Name of the skill the job follows, or an empty string.
    flow: str
    #: HOME as given, or an empty string.
    home: str


def parse(environ: Mapping[str, str]) -> Environment:
    """Read the variables; raises Refusal for reason ``config`` at the first one that is wrong."""
    for name in NOT_SERVED:
        if environ.get(name):
            raise config(f"{name} is not served by this image")
    max_turns = _integer(environ, "PI_MAX_TURNS")
    if max_turns is None:
        raise config("PI_MAX_TURNS is not set: give the number of turns the agent may take, for example 30")
    return Environment(
        provider=_required(environ, "PI_PROVIDER", "anthropic"),
        model=_required(environ, "PI_MODEL", "claude-sonnet-4-5-20250929"),
        max_turns=max_turns,
        max_tokens=_integer(environ, "PI_MAX_TOKENS"),
        retry_max=_integer(environ, "PI_RETRY_MAX") or 2,
        retry_base_ms=_integer(environ, "PI_RETRY_BASE_MS") or 2000,
        flow=environ.get("PI_FLOW", ""),
        home=environ.get("HOME", ""),
    )


def _required(environ: Mapping[str, str], name: str, example: str) -> str:
    value = environ.get(name, "")
    if not value:
        raise config(f"{name} is not set: give its exact name, for example {example}")
    return value


def _integer(environ: Mapping[str, str], name: str) -> int | None:
    """A positive integer whose text is the number's only spelling; None when unset or empty."""
    text = environ.get(name, "")
    if not text:
        return None
    value = int(text) if _POSITIVE.fullmatch(text) else 0
    if not 1 <= value <= MAX_SAFE_INTEGER:
        raise config(f"{name} must be an integer of at least 1 without sign, blanks or leading zeros")
    return value


def secrets(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Values that must not appear in a message, longest first: whatever is named like a credential."""
    named = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(_|$)", re.IGNORECASE)
    found = {value for name, value in environ.items() if named.search(name) and len(value) >= 8}
    # A limit is called PI_MAX_TOKENS, not a token; and a plain number is no credential.
    return tuple(sorted((value for value in found if not value.isdigit()), key=len, reverse=True))

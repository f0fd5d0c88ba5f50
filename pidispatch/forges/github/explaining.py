"""Why GitHub did not do what was asked of it, for the one who can mend it, and whether asking again can help."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pidispatch.forges.github.connection import Unanswered
from pidispatch.values.errors import ConfigError, DispatchError, InfraError, RateLimited

#: What an App is told whose word is not of this hour: a claim of its token, or that the token is past its time.
_CLOCK: Final = re.compile(r"'(?:iat|exp|nbf)'|issued at|expiration time|\bexpired?\b", re.IGNORECASE)
#: What is to be looked at, as a rule.
ALLOWED: Final = "Check what that account may do; docs/how-to/github.md says what it needs"


@dataclass(frozen=True)
class Asked:
    """What was asked for, and by whom."""

    #: Where the API answers.
    base_url: str
    #: What the credential is called.
    who: str
    #: Whether that is an App.
    app: bool
    #: What was to be done, after "does not".
    what: str
    #: The repository that the answer was to be about.
    repo: str | None = None
    #: What is to be looked at where it is refused.
    remedy: str = ALLOWED

    @property
    def where(self) -> str:
        """What answered, or did not."""
        return f"GitHub ({self.base_url})"


@contextmanager
def explaining(asked: Asked) -> Iterator[None]:
    """Raise what is not answered in the block as what it is for the house."""
    try:
        yield
    except Unanswered as unanswered:
        raise explained(unanswered, asked) from None


def explained(unanswered: Unanswered, asked: Asked) -> DispatchError:
    """What a refusal or a missing answer is for the house."""
    if unanswered.reason == "lookup-refused":
        return _refused(unanswered, asked)
    if unanswered.reason == "lookup-redirected" and asked.repo is not None:
        return _unseen(unanswered, asked)
    return _unanswered(unanswered, asked)


def _refused(unanswered: Unanswered, asked: Asked) -> ConfigError:
    said = _said(unanswered)
    if asked.app and unanswered.status == 401 and _CLOCK.search(said):
        return ConfigError(
            f"{asked.where} does not take {asked.who}: {said}. The clock of this machine is off: have it set by the "
            "network (timedatectl set-ntp true)",
            "forge-clock",
            unanswered.said,
        )
    if unanswered.status == 404 and asked.repo is not None:
        return _unseen(unanswered, asked)
    return ConfigError(f"{asked.where} does not {asked.what}: {said}. {asked.remedy}", "forge-refused", unanswered.said)


def _unseen(unanswered: Unanswered, asked: Asked) -> ConfigError:
    remedy = "install the App on it" if asked.app else "give the account access to it"
    return ConfigError(
        f"{asked.where} does not {asked.what}: {_said(unanswered)}. There is nothing of that name (any more), or "
        f"{asked.who} does not see it. Check the name of {asked.repo}, or {remedy}",
        "repository-unseen",
        unanswered.said,
    )


def _unanswered(unanswered: Unanswered, asked: Asked) -> InfraError:
    status = "" if unanswered.status is None else f", HTTP {unanswered.status}"
    until = "" if unanswered.resets is None else f", not before {unanswered.resets:%Y-%m-%dT%H:%M:%SZ}"
    message = (
        f"{asked.where} does not {asked.what}: {unanswered.reason}{status}. Try again{until}; check GITHUB_API_URL and "
        "the network"
    )
    if unanswered.resets is not None:
        return RateLimited(message, unanswered.resets, "forge-rate-limited")
    return InfraError(message, "forge-unanswered")


def _said(unanswered: Unanswered) -> str:
    """The status, and GitHub's own words where it had any."""
    return f"HTTP {unanswered.status}" + (f', "{unanswered.said}"' if unanswered.said else "")

"""What the work of a job needs at GitHub, and what of a credential goes beyond it.

https://docs.github.com/en/apps/creating-github-apps/registering-a-github-app/choosing-permissions-for-a-github-app and
https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/scopes-for-oauth-apps
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from pidispatch.config.text import printable
from pidispatch.forges.rights import Flaw


class Need(NamedTuple):
    """A permission, and what cannot be done without it."""

    name: str
    level: str
    without: str

    def __str__(self) -> str:
        return f"{self.name}: {self.level}"


#: What receiver, poller and jobs need together; docs/how-to/github.md says which of them needs what.
NEEDS: Final = (
    Need("metadata", "read", "nothing can be asked about a repository"),
    Need("contents", "write", "no branch can be pushed"),
    Need("issues", "write", "nothing can be said on an issue"),
    Need("pull_requests", "write", "no pull request can be opened"),
)
#: Permissions that harm nobody where an agent writes with them too.
_HARMLESS: Final = frozenset({"checks", "statuses"})
_RANKS: Final = ("read", "write", "admin")
#: The scope for everything in a repository, and the one for everything in a public one.
SCOPE: Final = "repo"
_PUBLIC: Final = "public_repo"
#: How the scopes begin that give no more than these two, or reading.
_WITHIN: Final = ("read:", "repo:")
_PAGE: Final = "on the App's page, under Permissions & events, and accept it where the App is installed"


def told_needs(found: Mapping[str, object] | None = None) -> str:
    """What is needed; with permissions, what of it these hold."""
    return ", ".join(str(need) for need in NEEDS if found is None or _holds(found, need)) or "nothing that is needed"


def lacking(found: Mapping[str, object]) -> tuple[Flaw, ...]:
    """What an App's permissions lack."""
    return tuple(
        Flaw(f"{need} is missing, so that {need.without}", f"set it {_PAGE} (docs/how-to/github.md)")
        for need in NEEDS
        if not _holds(found, need)
    )


def more_than_needed(found: Mapping[str, object]) -> tuple[Flaw, ...]:
    """What an App may write that no job needs to: its jobs' tokens may too."""
    known = {need.name for need in NEEDS} | _HARMLESS
    more = [
        f"{printable(name)}: {level}"
        for name, level in sorted(found.items())
        if name not in known and _rank(level) > _rank("read")
    ]
    if not more:
        return ()
    return (Flaw(f"the token of each job may also {', '.join(more)}, which no job needs", f"take it away {_PAGE}"),)


def missing_scope(scopes: Sequence[str]) -> tuple[Flaw, ...]:
    """What a person's token lacks. One for public repositories suffices for them, and does not see others."""
    if SCOPE in scopes or _PUBLIC in scopes:
        return ()
    return (
        Flaw(
            f"the scope {SCOPE} is missing, so that nothing can be pushed or said",
            f"tick it on the token's page; for a login of gh: gh auth refresh --scopes {SCOPE}",
        ),
    )


def lent(scopes: Sequence[str], *, login: bool) -> tuple[Flaw, ...]:
    """What jobs are given with a person's token that they do not need; `login` where it is gh's."""
    more = [one for one in scopes if one not in (SCOPE, _PUBLIC) and not one.startswith(_WITHIN)]
    told = f" with the scopes {', '.join(more)}, which no job needs" if more else ""
    if login:
        remedy = "for anything but a trial use an App: docs/how-to/github.md"
        return (Flaw(f"every job is given the whole of a person's login{',' if told else ''}{told}", remedy),)
    if not more:
        return ()
    return (Flaw(f"every job is given this token{told}", f"make one with the scope {SCOPE} alone, or an App"),)


def _holds(found: Mapping[str, object], need: Need) -> bool:
    return _rank(found.get(need.name)) >= _rank(need.level)


def _rank(level: object) -> int:
    """How much a level is; less than all for none."""
    return _RANKS.index(level) if isinstance(level, str) and level in _RANKS else -1

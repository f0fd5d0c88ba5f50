"""What became of the pull requests of a repository between two looks: which were opened, pushed to, opened again."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from pidispatch.forges.polling import OpenPull, Pulls

#: In the place of its commit: one that was open and is not any more.
CLOSED: Final = "closed"


class Change(NamedTuple):
    """Something that a webhook would have told."""

    pull: OpenPull
    #: As GitHub calls it.
    action: str


def changes(known: Mapping[int, str], pulls: Pulls) -> list[Change]:
    """What is new, in the order in which it was done; `known` has the commit of each pull request."""
    found = [Change(one, _action(known.get(one.number), one.sha)) for one in reversed(pulls.open)]
    return [change for change in found if change.action]


def known_after(known: Mapping[int, str], pulls: Pulls) -> dict[int, str]:
    """What is known from then on."""
    there = {one.number: one.sha for one in pulls.open}
    if not pulls.whole:
        # One that is not shown may be open all the same.
        return {**known, **there}
    return {**dict.fromkeys(known, CLOSED), **there}


def open_ones(known: Mapping[int, str]) -> list[int]:
    """Numbers of those that are open, the newest first."""
    return sorted((number for number, sha in known.items() if sha != CLOSED), reverse=True)


def _action(before: str | None, sha: str) -> str:
    if before is None:
        return "opened"
    if before == CLOSED:
        return "reopened"
    return "" if before == sha else "synchronize"

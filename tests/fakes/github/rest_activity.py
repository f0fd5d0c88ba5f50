"""REST: who pushed what. https://docs.github.com/en/rest/repos/repos#list-repository-activities

Heard of as a webhook tells it, so only of branches with an open pull request.
"""

from dataclasses import dataclass
from datetime import datetime
from weakref import WeakKeyDictionary

from tests.fakes.github.calls import Call, route
from tests.fakes.github.faults import Reply
from tests.fakes.github.model import Pull, Repository, User
from tests.fakes.github.shapes import shown
from tests.fakes.github.state import Happening, State


@dataclass(frozen=True)
class Push:
    """A branch that was brought from one commit to another."""

    id: int
    repository: Repository
    branch: str
    before: str
    after: str
    by: User
    at: datetime


_PUSHES: "WeakKeyDictionary[State, list[Push]]" = WeakKeyDictionary()


def note_pushes(state: State) -> None:
    """Note from now on who pushes; nothing is told of what was before."""
    pushes: list[Push] = []
    _PUSHES[state] = pushes
    new_id, instant = state.new_id, state.instant

    def hear(told: Happening) -> None:
        if told.action == "synchronize":
            pull = told.issue
            assert isinstance(pull, Pull)
            before, after = told.more["before"], told.more["after"]
            pushes.append(Push(new_id(), told.repository, pull.head, before, after, told.sender, instant()))

    state.listeners.append(hear)


@route("GET", "/repos/{owner}/{repo}/activity", "contents")
def activity(call: Call) -> Reply:
    """https://docs.github.com/en/rest/repos/repos#list-repository-activities"""
    ref = call.query.get("ref", "").removeprefix("refs/heads/")
    rows = [one for one in _PUSHES.get(call.state, []) if one.repository is call.repository and one.branch == ref]
    return call.page(
        rows[::-1],
        lambda one: {
            "id": one.id,
            "node_id": f"PSH_{one.id}",
            "before": one.before,
            "after": one.after,
            "ref": f"refs/heads/{one.branch}",
            "timestamp": shown(one.at),
            "activity_type": "push",
            "actor": call.shapes.user(one.by),
        },
    )

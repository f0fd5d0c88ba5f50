"""What there is on the edge: plain values that its state changes and its answers show."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from tests.fakes.github.git import GitRepository

Level = Literal["read", "write", "admin"]
#: What a permission holds.
RANK = {"none": 0, "read": 1, "write": 2, "admin": 3}
#: What an installation may do that nobody narrows.
FULL: dict[str, Level] = {"metadata": "read", "contents": "write", "issues": "write", "pull_requests": "write"}


@dataclass(frozen=True)
class User:
    """An account."""

    id: int
    login: str
    type: Literal["User", "Bot", "Organization"] = "User"


@dataclass(frozen=True)
class Label:
    """A label of a repository."""

    id: int
    name: str


@dataclass
class Comment:
    """On an issue or a pull request."""

    id: int
    user: User
    body: str
    created: datetime
    updated: datetime


@dataclass
class Review:
    """Of a pull request, as it stood at `commit`; `state` as the API says it: `APPROVED`."""

    id: int
    user: User
    body: str
    state: str
    commit: str
    submitted: datetime


@dataclass
class Issue:
    """An issue, or what a pull request has of one."""

    id: int
    number: int
    user: User
    title: str
    body: str | None
    created: datetime
    updated: datetime
    labels: dict[str, Label] = field(default_factory=dict)
    comments: list[Comment] = field(default_factory=list)
    closed: datetime | None = None
    closed_by: User | None = None

    @property
    def state(self) -> str:
        """`open` or `closed`."""
        return "open" if self.closed is None else "closed"


@dataclass
class Pull(Issue):
    """A pull request, of a branch of the same repository."""

    head: str = ""
    sha: str = ""
    base: str = ""
    draft: bool = False
    reviews: list[Review] = field(default_factory=list)
    merged: datetime | None = None
    merge_commit: str | None = None


@dataclass(frozen=True)
class IssueEvent:
    """Something that happened to an issue, as the list of events tells it."""

    id: int
    event: str
    actor: User
    issue: Issue
    label: Label | None
    created: datetime


@dataclass
class Repository:
    """A repository; only who is named may do anything where it is private."""

    id: int
    owner: User
    name: str
    git: GitRepository
    default: str
    private: bool
    created: datetime
    #: By login: `read`, `write` or `admin`.
    permissions: dict[str, Level]
    #: Whose word counts how much; where nobody says otherwise, it follows from the permissions.
    associations: dict[str, str] = field(default_factory=dict)
    #: Branches that a ruleset keeps, besides those that are protected.
    ruled: set[str] = field(default_factory=set)
    labels: dict[str, Label] = field(default_factory=dict)
    #: Issues and pull requests, by number.
    issues: dict[int, Issue] = field(default_factory=dict)
    events: list[IssueEvent] = field(default_factory=list)

    @property
    def full_name(self) -> str:
        """`owner/name`."""
        return f"{self.owner.login}/{self.name}"

    @property
    def pulls(self) -> list[Pull]:
        """The pull requests."""
        return [one for one in self.issues.values() if isinstance(one, Pull)]

    def permission(self, login: str) -> str:
        """What somebody may do."""
        if login == self.owner.login:
            return "admin"
        return self.permissions.get(login, "none" if self.private else "read")

    def association(self, user: User) -> str:
        """What somebody is to it."""
        if user.login in self.associations:
            return self.associations[user.login]
        if user.login == self.owner.login:
            return "OWNER"
        return "MEMBER" if RANK[self.permission(user.login)] > 1 else "NONE"


@dataclass
class Installation:
    """An App's, on an account; `repositories` are full names."""

    id: int
    account: User
    repositories: set[str]
    permissions: dict[str, Level] = field(default_factory=lambda: dict(FULL))


@dataclass
class Token:
    """A credential. `name` is what the log calls it."""

    value: str = field(repr=False)
    name: str
    user: User
    #: `None` for a person's.
    installation: Installation | None = None
    #: `None`: all that its owner may see.
    repositories: frozenset[str] | None = None
    permissions: dict[str, Level] | None = None
    expires: datetime | None = None

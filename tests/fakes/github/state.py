"""What happens on the edge: every change to its repositories, issues and pull requests, told to whoever listens."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.fakes.github.git import GitRepository
from tests.fakes.github.model import (
    RANK,
    Comment,
    Installation,
    Issue,
    IssueEvent,
    Label,
    Level,
    Pull,
    Repository,
    Review,
    Token,
    User,
)
from tests.fakes.github.rate import Rate


class Refused(Exception):
    """What GitHub would not do (422), in its words."""


@dataclass(frozen=True)
class Happening:
    """Something that a webhook tells of. `more` is what else its payload holds."""

    event: str
    action: str
    repository: Repository
    sender: User
    issue: Issue
    more: Mapping[str, Any] = field(default_factory=dict)


class State:
    """All of it. Every method may be called by several threads at once."""

    def __init__(self, folder: Path, now: Callable[[], datetime]) -> None:
        """Repositories lie below `folder`; `now` is the clock of all that happens."""
        self.folder = folder
        self.now = now
        self.lock = threading.RLock()
        self.users: dict[str, User] = {}
        self.repositories: dict[str, Repository] = {}
        self.installations: dict[int, Installation] = {}
        self.tokens: dict[str, Token] = {}
        self.listeners: list[Callable[[Happening], None]] = []
        self.rate = Rate()
        #: Seconds that the list of events asks to be left alone for.
        self.poll_interval_s = 60
        self._ids = 5000

    def instant(self) -> datetime:
        """Now, in whole seconds."""
        return self.now().replace(microsecond=0)

    def new_id(self) -> int:
        """A number that nothing else has."""
        with self.lock:
            self._ids += 1
            return self._ids

    def user(self, login: str) -> User:
        """An account, which is made where there is none."""
        with self.lock:
            if login not in self.users:
                kind: Any = "Bot" if login.endswith("[bot]") else "User"
                self.users[login] = User(1001 + len(self.users), login, kind)
            return self.users[login]

    def add_repository(
        self,
        full_name: str,
        files: Mapping[str, bytes | str],
        *,
        default: str = "main",
        private: bool = True,
        protected: bool = True,
        permissions: Mapping[str, Level] | None = None,
    ) -> Repository:
        """A new repository, whose first commit has these files."""
        owner, _, name = full_name.partition("/")
        git = GitRepository(self.folder / owner / f"{name}.git", default)
        if files:
            git.commit(default, files, "Start")
        if protected:
            git.protect((default,))
        with self.lock:
            if owner not in self.users:
                self.users[owner] = User(1001 + len(self.users), owner, "Organization")
            made = Repository(
                self.new_id(), self.users[owner], name, git, default, private, self.instant(), dict(permissions or {})
            )
            self.repositories[full_name.lower()] = made
        return made

    def repository(self, full_name: str) -> Repository:
        """By its name, in any case. Raises `KeyError`."""
        return self.repositories[full_name.lower()]

    def add_token(self, token: Token) -> Token:
        """Let it be taken from now on."""
        with self.lock:
            self.tokens[token.value] = token
        return token

    def known(self, value: str) -> Token | None:
        """The credential of this value, where it has not expired."""
        token = self.tokens.get(value)
        if token is None or (token.expires is not None and token.expires <= self.now()):
            return None
        return token

    def expire(self, name: str = "") -> int:
        """End all tokens whose names begin so and that do expire; how many."""
        ended = [one for one in self.tokens.values() if one.expires is not None and one.name.startswith(name)]
        for one in ended:
            one.expires = self.now() - timedelta(seconds=1)
        return len(ended)

    def issue(self, repository: Repository, user: User, title: str, body: str | None, labels: tuple[str, ...]) -> Issue:
        """Open an issue."""
        with self.lock:
            number = len(repository.issues) + 1
            made = Issue(self.new_id(), number, user, title, body, self.instant(), self.instant())
            made.labels = {name: self._label(repository, name) for name in labels}
            repository.issues[number] = made
            self._happened("issues", "opened", repository, user, made)
            for label in made.labels.values():
                self._labelled(repository, made, user, label)
        return made

    def pull(
        self,
        repository: Repository,
        user: User,
        title: str,
        body: str | None,
        head: str,
        base: str,
        draft: bool = False,
    ) -> Pull:
        """Open a pull request. Raises `Refused`."""
        head = head.rpartition(":")[2]
        with self.lock:
            branches = repository.git.branches()
            if head not in branches or base not in branches:
                raise Refused(f"{'head' if head not in branches else 'base'} invalid")
            if any((one.head, one.base, one.state) == (head, base, "open") for one in repository.pulls):
                raise Refused(f"A pull request already exists for {repository.owner.login}:{head}.")
            if not repository.git.count(base, head):
                raise Refused(f"No commits between {base} and {head}")
            number = len(repository.issues) + 1
            made = Pull(self.new_id(), number, user, title, body, self.instant(), self.instant())
            made.head, made.sha, made.base, made.draft = head, branches[head], base, draft
            repository.git.pull(number, made.sha)
            repository.issues[number] = made
            self._happened("pull_request", "opened", repository, user, made)
        return made

    def label(self, repository: Repository, issue: Issue, user: User, name: str) -> None:
        """Put a label on; one that is there already stays, and nothing happens."""
        with self.lock:
            if name in issue.labels:
                return
            issue.labels[name] = self._label(repository, name)
            self._labelled(repository, issue, user, issue.labels[name])

    def unlabel(self, repository: Repository, issue: Issue, user: User, name: str) -> None:
        """Take a label off. Raises `KeyError` where it is not on."""
        with self.lock:
            label = issue.labels.pop(name)
            self._noted(repository, issue, user, "unlabeled", label)
            self._happened(_kind(issue), "unlabeled", repository, user, issue, label=label)

    def comment(self, repository: Repository, issue: Issue, user: User, body: str) -> Comment:
        """Write a comment."""
        with self.lock:
            made = Comment(self.new_id(), user, body, self.instant(), self.instant())
            issue.comments.append(made)
            issue.updated = made.created
            self._happened("issue_comment", "created", repository, user, issue, comment=made)
        return made

    def review(self, repository: Repository, pull: Pull, user: User, state: str, body: str) -> Review:
        """Submit a review."""
        with self.lock:
            made = Review(self.new_id(), user, body, state, pull.sha, self.instant())
            pull.reviews.append(made)
            self._happened("pull_request_review", "submitted", repository, user, pull, review=made)
        return made

    def close(self, repository: Repository, issue: Issue, user: User) -> None:
        """Close it; one that is closed stays so."""
        with self.lock:
            if issue.closed is None:
                issue.closed, issue.closed_by, issue.updated = self.instant(), user, self.instant()
                self._noted(repository, issue, user, "closed")
                self._happened(_kind(issue), "closed", repository, user, issue)

    def reopen(self, repository: Repository, issue: Issue, user: User) -> None:
        """Open it again."""
        with self.lock:
            if issue.closed is not None:
                issue.closed, issue.closed_by, issue.updated = None, None, self.instant()
                self._noted(repository, issue, user, "reopened")
                self._happened(_kind(issue), "reopened", repository, user, issue)

    def merge(self, repository: Repository, pull: Pull, user: User) -> None:
        """Merge a pull request, which closes it."""
        with self.lock:
            told = f"Merge pull request #{pull.number} from {repository.owner.login}/{pull.head}"
            pull.merge_commit = repository.git.merge(pull.base, pull.sha, told)
            pull.merged = self.instant()
            self._noted(repository, pull, user, "merged")
            self.close(repository, pull, user)

    def moved(self, repository: Repository, user: User) -> None:
        """See to the pull requests whose branches somebody has pushed to."""
        with self.lock:
            branches = repository.git.branches()
            for pull in repository.pulls:
                now = branches.get(pull.head)
                if pull.closed is not None or now == pull.sha:
                    continue
                if now is None:
                    self.close(repository, pull, user)
                    continue
                before, pull.sha, pull.updated = pull.sha, now, self.instant()
                repository.git.pull(pull.number, now)
                self._happened("pull_request", "synchronize", repository, user, pull, before=before, after=now)

    def _label(self, repository: Repository, name: str) -> Label:
        return repository.labels.setdefault(name, Label(self.new_id(), name))

    def _labelled(self, repository: Repository, issue: Issue, user: User, label: Label) -> None:
        self._noted(repository, issue, user, "labeled", label)
        self._happened(_kind(issue), "labeled", repository, user, issue, label=label)

    def _noted(self, repository: Repository, issue: Issue, user: User, event: str, label: Label | None = None) -> None:
        issue.updated = self.instant()
        repository.events.append(IssueEvent(self.new_id(), event, user, issue, label, issue.updated))

    def _happened(
        self, event: str, action: str, repository: Repository, sender: User, issue: Issue, **more: Any
    ) -> None:
        told = Happening(event, action, repository, sender, issue, more)
        for listener in self.listeners:
            listener(told)


def _kind(issue: Issue) -> str:
    return "pull_request" if isinstance(issue, Pull) else "issues"


def may(token: Token, repository: Repository, wanted: Mapping[str, Level]) -> bool:
    """Whether it may do any of this in the repository, for example `{"issues": "write"}`."""
    if not sees(token, repository):
        return False
    own = RANK[repository.permission(token.user.login)] if token.installation is None else RANK["admin"]
    if not _covers(token, repository):
        own = RANK["read"]
    granted = [RANK["admin" if token.permissions is None else token.permissions.get(name, "none")] for name in wanted]
    return any(min(had, own) >= RANK[level] for had, level in zip(granted, wanted.values(), strict=True))


def sees(token: Token, repository: Repository) -> bool:
    """Whether the repository is there for it."""
    if not repository.private:
        return True
    if not _covers(token, repository):
        return False
    return token.installation is not None or repository.permission(token.user.login) != "none"


def _covers(token: Token, repository: Repository) -> bool:
    return token.repositories is None or repository.full_name in token.repositories


def utc_now() -> datetime:
    """The clock of the machine."""
    return datetime.now(UTC)

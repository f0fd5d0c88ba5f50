"""An account at a forge whose answers are a test's own, for what is decided about them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pidispatch.forges.protocol import Account, Answer, Branch, Token
from pidispatch.values.event import Authority, Event, Identity
from pidispatch.values.job import Target

SHA = "a" * 40
PROTECTED = Branch("main", SHA, True)


@dataclass
class SaidAccount:
    """Says what it is told to, or raises it; `asked` has every question."""

    token: Any = "ghs_marked"
    branch: Branch | Exception = PROTECTED
    acts: bool | Exception = False
    said: Callable[[], None] = lambda: None
    asked: list[tuple[object, ...]] = field(default_factory=list)

    def identity(self) -> Identity:
        """Number nine."""
        return Identity(id=9)

    def authority(self, event: Event) -> Answer:
        """Nobody may."""
        self.asked.append(("authority", event.repo))
        return Answer(Authority.NO)

    def mint(self, repo: str | None) -> Token:
        """The token of the test."""
        self.asked.append(("mint", repo))
        if isinstance(self.token, Exception):
            raise self.token
        return Token(self.token)

    def default_branch(self, repo: str, token: Token) -> Branch:
        """The branch of the test."""
        self.asked.append(("branch", repo, token.value))
        if isinstance(self.branch, Exception):
            raise self.branch
        return self.branch

    def acted(self, repo: str, target: Target, since: datetime, token: Token) -> bool:
        """Whether it has, as the test says."""
        self.asked.append(("acted", repo, target.number, since, token.value))
        if isinstance(self.acts, Exception):
            raise self.acts
        return self.acts

    def comment(self, repo: str, target: Target, text: str, marker: str, since: datetime) -> None:
        """Nothing but what the test does then."""
        self.asked.append(("comment", repo, target.number, text, marker, since))
        self.said()

    def clone_url(self, repo: str) -> str:
        """An address that nobody answers at."""
        return f"http://127.0.0.1:9/{repo}.git"

    def variables(self, token: Token) -> Mapping[str, str]:
        """None more."""
        del token
        return {}


#: It is one.
_: type[Account] = SaidAccount

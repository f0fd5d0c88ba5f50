"""A GitHub that answers what a test tells it to, path by path, and nothing else but the word of an App."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from pidispatch.config.clock import SystemClock
from pidispatch.forges.github.account import GitHubAccount
from pidispatch.values.clock import Clock
from pidispatch.workspace import process
from tests.fakes.github import apps
from tests.fakes.github.answering import Answering, Listening
from tests.fakes.github.faults import NOT_FOUND, Fault, Reply
from tests.support.settings import settings_of

MINT = "POST /app/installations/88/access_tokens"
#: What no message, log or name may hold.
APP_TOKEN, USER_TOKEN = "ghs_MARKEDapp", "ghp_MARKEDuser"

Asker = Callable[[Mapping[str, str]], Reply]


@dataclass(frozen=True)
class Asked:
    """One request: its method and path as they came, and what it had with it."""

    line: str
    query: Mapping[str, str]
    token: str
    body: Any
    if_new: str | None


@dataclass
class Scripted(Listening):
    """One of it, at `url`, between `with` and its end."""

    #: What is answered, by method and path without its query; to all else that there is no such thing.
    replies: dict[str, Reply | Fault | Asker] = field(default_factory=dict)
    #: What its clock shows.
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    asked: list[Asked] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self.replies.setdefault(MINT, self._minted)
        return super().__enter__()

    @property
    def url(self) -> str:
        """What `GITHUB_API_URL` is to be."""
        return self.origin

    def lines(self) -> list[str]:
        """What was asked for, in order."""
        return [one.line for one in self.asked]

    def _minted(self, _query: Mapping[str, str]) -> Reply:
        """A token of the installation, which is on the account `acme`."""
        wanted = self.asked[-1].body.get("repositories")
        told = {} if wanted is None else {"repositories": [{"full_name": f"acme/{name}"} for name in wanted]}
        return Reply(201, {"token": APP_TOKEN, **told})

    def pages(self, *parts: Sequence[Mapping[str, Any]]) -> Asker:
        """A list in several parts, each of which names the next."""

        def reply(query: Mapping[str, str]) -> Reply:
            number = int(query.get("page", "1"))
            more = {"link": f'<{self.url}{self.asked[-1].line.partition(" ")[2]}?page={number + 1}>; rel="next"'}
            return Reply(200, list(parts[number - 1]), more if number < len(parts) else {})

        return reply


class _Handler(Answering):
    fake: Scripted

    def origin(self) -> str:
        return self.fake.url

    def serve(self) -> None:
        content = self.content()
        parts = urlsplit(self.path)
        line, query = f"{self.command} {parts.path}", {name: one[0] for name, one in parse_qs(parts.query).items()}
        token = (self.headers.get("Authorization") or "").rpartition(" ")[2]
        body = json.loads(content) if content else None
        self.fake.asked.append(Asked(line, query, token, body, self.headers.get("If-None-Match")))
        reply = self.fake.replies.get(line, NOT_FOUND)
        if line.split(" ")[1].startswith("/app"):
            reply = apps.refused(token, 77, self.fake.now()) or reply
        if isinstance(reply, Fault):
            self.misbehave(reply)
        else:
            self.send(reply if isinstance(reply, Reply) else reply(query))


def by_token(script: Scripted, clock: Clock | None = None, timeout_s: float = 10, **more: str) -> GitHubAccount:
    """The account of a personal token."""
    environment = {"GITHUB_API_URL": script.url, "GITHUB_AUTH_SOURCE": "pat", "GITHUB_PAT": USER_TOKEN} | more
    return GitHubAccount.of(settings_of(environment), environment, process, clock or SystemClock(), timeout_s)


def by_app(script: Scripted, clock: Clock | None = None, timeout_s: float = 10, **more: str) -> GitHubAccount:
    """The account of an App."""
    app = {
        "GITHUB_AUTH_SOURCE": "app",
        "GITHUB_APP_ID": "77",
        "GITHUB_APP_INSTALLATION_ID": "88",
        "GITHUB_APP_PRIVATE_KEY": apps.private_key().replace("\n", "\\n"),
    }
    return by_token(script, clock, timeout_s, **app | more)


Scripted.handler = _Handler

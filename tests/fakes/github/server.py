"""The few REST calls by which a person's word is asked for, out of a table: no state, no repository, faults on demand.

It checks what GitHub checks: tokens, what they were made for, and an App's key and clock. Bodies come as GitHub sends
them, in pieces and compressed. `edge.Edge` is the whole of it.
"""

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from tests.fakes.github import apps
from tests.fakes.github.answering import Answering, Listening
from tests.fakes.github.apps import other_key, private_key
from tests.fakes.github.faults import (
    BAD_CREDENTIALS,
    ELSEWHERE,
    FAULTS,
    NOT_FOUND,
    RESET,
    RETRY_AFTER_S,
    YES,
    Fault,
    Reply,
    message,
)

__all__ = ["RESET", "RETRY_AFTER_S", "Asked", "Fault", "GitHubServer", "other_key", "private_key"]

_PERMISSION = re.compile(r"/repos/([^/]+/[^/]+)/collaborators/([^/]+)/permission")
_MINT = re.compile(r"/app/installations/(\d+)/access_tokens")


@dataclass(frozen=True)
class Asked:
    """One request that came."""

    method: str
    path: str
    token: str
    body: Any
    version: str | None


@dataclass
class GitHubServer(Listening):
    """One of it, at `url`, between `with` and its end. Faults and answers may be changed at any time."""

    #: The users' tokens, with their ids.
    tokens: dict[str, int] = field(default_factory=lambda: {"pat-secret": 9001})
    #: What `(repository, login)` may do; whoever is not named is nobody.
    permissions: dict[tuple[str, str], str] = field(default_factory=dict)
    app_id: int = 77
    installation_id: int = 88
    slug: str = "pi-dispatch-test"
    bot_id: int = 9002
    #: What its clock shows, by which an App's word is judged.
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    #: What goes wrong, by a pattern that the path must match from its beginning.
    faults: dict[str, Fault] = field(default_factory=dict)
    #: A path before all of them, as on GitHub Enterprise Server.
    prefix: str = ""
    asked: list[Asked] = field(default_factory=list)
    #: Tokens that were made for the App, and for what.
    minted: dict[str, dict[str, Any]] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """What `GITHUB_API_URL` is to be."""
        return f"{self.origin}{self.prefix}"

    def paths(self) -> list[str]:
        """What was asked for, in order."""
        return [f"{one.method} {one.path}" for one in self.asked]


class _Handler(Answering):
    fake: GitHubServer

    def origin(self) -> str:
        return self.fake.url

    def serve(self) -> None:
        content = self.content()
        body = json.loads(content) if content else None
        token = (self.headers.get("Authorization") or "").rpartition(" ")[2]
        path = unquote(self.path).removeprefix(self.fake.prefix)
        self.fake.asked.append(Asked(self.command, path, token, body, self.headers.get("X-GitHub-Api-Version")))
        fault = next((one for pattern, one in self.fake.faults.items() if re.match(pattern, path)), None)
        if fault is not None:
            self.misbehave(fault)
        else:
            self.send(self._answer(path, token, body))

    def _answer(self, path: str, token: str, body: Any) -> Reply:
        """What GitHub would say. https://docs.github.com/en/rest"""
        fake = self.fake
        if path == ELSEWHERE:
            return Reply(200, YES)
        if path == "/app" or _MINT.fullmatch(path):
            return self._as_app(path, token, body)
        if token not in fake.tokens and token not in fake.minted:
            return BAD_CREDENTIALS
        if path == "/user":
            if token in fake.minted:
                return FAULTS[Fault.FORBIDDEN]
            return Reply(200, {"login": "someone", "id": fake.tokens[token], "type": "User"})
        if path == f"/users/{fake.slug}[bot]":
            return Reply(200, {"login": f"{fake.slug}[bot]", "id": fake.bot_id, "type": "Bot"})
        if (found := _PERMISSION.fullmatch(path)) is not None:
            return self._permission(found[1], found[2], fake.minted.get(token))
        return NOT_FOUND

    def _permission(self, repo: str, login: str, scope: dict[str, Any] | None) -> Reply:
        if scope is not None:
            if repo.partition("/")[2] not in scope.get("repositories", [repo.partition("/")[2]]):
                return NOT_FOUND
            if scope.get("permissions", {}).get("metadata") != "read":
                return FAULTS[Fault.FORBIDDEN]
        permission = self.fake.permissions.get((repo, login))
        if permission is None:
            return message(404, f"{login} is not a user")
        user = {"login": login, "id": 1002, "type": "User", "site_admin": False}
        return Reply(200, {"permission": permission, "role_name": permission, "user": user})

    def _as_app(self, path: str, token: str, body: Any) -> Reply:
        fake = self.fake
        if (refusal := apps.refused(token, fake.app_id, fake.now())) is not None:
            return refusal
        if path == "/app":
            return Reply(200, {"id": fake.app_id, "slug": fake.slug, "name": "pi-dispatch test"})
        found = _MINT.fullmatch(path)
        if found is None or int(found[1]) != fake.installation_id:
            return NOT_FOUND
        made = f"ghs_minted{len(fake.minted)}"
        scope = dict(body or {})
        fake.minted[made] = scope
        return Reply(
            201, {"token": made, "expires_at": "2030-01-01T00:00:00Z", "permissions": scope.get("permissions", {})}
        )


GitHubServer.handler = _Handler

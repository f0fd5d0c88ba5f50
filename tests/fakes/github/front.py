"""What the edge answers on its port and on its socket: REST, GraphQL or git, as the path says, or what goes wrong."""

import json
import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.fakes.github import (
    HOSTS,
    calls,
    githttp,
    graphql,
    rest_activity,
    rest_apps,
    rest_issues,
    rest_pulls,
    rest_repositories,
)
from tests.fakes.github.answering import Answering
from tests.fakes.github.faults import FAULTS, Fault, Reply, message
from tests.fakes.github.model import Token
from tests.fakes.github.selection import Unfit
from tests.fakes.github.shapes import Shapes
from tests.fakes.github.state import State

#: The modules that hold endpoints.
ENDPOINTS = (rest_activity, rest_apps, rest_issues, rest_pulls, rest_repositories)
#: What GitHub Enterprise Server has before the paths of its API.
_PREFIX = "/api/v3"


@dataclass(frozen=True)
class Asked:
    """One request that came, and how it was answered; without the value of any token."""

    method: str
    #: With its query.
    path: str
    #: Name of the token it came with: `alice`, `installation-88-1`, `app`, `unknown` or `nobody`.
    token: str
    status: int
    #: Whether it came through the socket.
    boxed: bool


@dataclass
class Trouble:
    """A fault, and how often it is still to come; `None`: always."""

    fault: Fault
    times: int | None


@dataclass
class Front:
    """What all connections share."""

    state: State
    app: rest_apps.App
    #: With the addresses of this machine.
    shapes: Callable[[], Shapes]
    asked: list[Asked] = field(default_factory=list)
    #: What broke in the edge itself.
    broken: list[str] = field(default_factory=list)
    #: By a pattern that the path must match from its beginning.
    faults: dict[str, Trouble] = field(default_factory=dict)


class Handler(Answering):
    """One connection to it; `boxed` where it came through the socket."""

    front: Front
    boxed = False

    def do_PATCH(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def origin(self) -> str:
        return self.shapes().api

    def shapes(self) -> Shapes:
        """With the addresses that whoever asks knows."""
        if self.boxed:
            api, pages = HOSTS
            return Shapes(f"https://{api}", f"https://{pages}")
        return self.front.shapes()

    def serve(self) -> None:
        try:
            self._serve()
        except ConnectionError:
            raise
        except Exception:
            self.front.broken.append(f"{self.command} {self.path}\n{traceback.format_exc()}")
            self.send(FAULTS[Fault.SERVER_ERROR])

    def _serve(self) -> None:
        url = urlsplit(self.path)
        body = self.content()
        fault = self._fault(unquote(url.path))
        if fault is not None:
            self._note("unasked", 0)
            self.misbehave(fault)
        elif githttp.PATH.fullmatch(unquote(url.path)):
            self._git(unquote(url.path), url.query, body)
        else:
            self._api(unquote(url.path).removeprefix(_PREFIX), dict(parse_qsl(url.query)), body)

    def _fault(self, path: str) -> Fault | None:
        for pattern, trouble in self.front.faults.items():
            if re.match(pattern, path) and trouble.times != 0:
                trouble.times = None if trouble.times is None else trouble.times - 1
                return trouble.fault
        return None

    def _git(self, path: str, query: str, body: bytes) -> None:
        front = self.front
        asked = githttp.access(front.state, path, query, self.headers.get("Authorization") or "")
        if isinstance(asked, Reply):
            self._note(self._named(), asked.status)
            self.send(asked)
            return
        status, headers, pieces = githttp.backend(asked, self, query, body)
        self._note(self._named(), status)
        # What follows from a push is there before whoever pushed knows that it went well.
        answer = [*pieces] if asked.pushes else pieces
        if asked.pushes:
            githttp.pushed(front.state, asked)
        self.start(status, headers)
        self.stream(answer)

    def _api(self, path: str, query: Mapping[str, str], body: bytes) -> None:
        reply, name = self._answer(path, query, body)
        reply = calls.tagged(reply, self.headers.get("If-None-Match"))
        rate, now = self.front.state.rate, self.front.state.now()
        if reply.status == 304:
            rate.give_back()
        scopes = {} if name.startswith(("installation-", "app")) else {"x-oauth-scopes": "repo, read:org"}
        self._note(name, reply.status)
        self.send(Reply(reply.status, reply.body, {**scopes, **rate.headers(now), **reply.headers}))

    def _answer(self, path: str, query: Mapping[str, str], content: bytes) -> tuple[Reply, str]:
        """What is said, and the name of the token it was asked with."""
        state, shapes, word = self.front.state, self.shapes(), self._word() or ""
        if path != "/rate_limit" and (refusal := state.rate.take(state.now())) is not None:
            return refusal, self._named()
        try:
            body: Any = json.loads(content) if content else {}
        except ValueError:
            return message(400, "Problems parsing JSON"), self._named()
        told = rest_apps.answer(self.front.app, state, shapes, word, self.command, path, body)
        if told is not None:
            return told, "app"
        token = state.known(word)
        if path in ("/graphql", "/api/graphql"):
            return self._graphql(token, body), self._named()
        accept = self.headers.get("Accept") or ""
        return calls.answer(state, shapes, token, self.command, path, query, body, accept), self._named()

    def _graphql(self, token: Token | None, body: Mapping[str, Any]) -> Reply:
        try:
            return graphql.answer(self.front.state, self.shapes(), token, body)
        except Unfit as unfit:
            return graphql.failed("UNDEFINED", str(unfit))

    def _word(self) -> str | None:
        return githttp.password(self.headers.get("Authorization") or "")

    def _named(self) -> str:
        word = self._word()
        if not word:
            return "nobody"
        token = self.front.state.tokens.get(word)
        return "unknown" if token is None else token.name

    def _note(self, token: str, status: int) -> None:
        self.front.asked.append(Asked(self.command, self.path, token, status, self.boxed))

"""How a REST call is answered: found by method and path, let through by what its token may do, paged and tagged."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlencode

from tests.fakes.github.faults import BAD_CREDENTIALS, NOT_FOUND, Reply, message
from tests.fakes.github.model import Issue, Level, Pull, Repository, Token, User
from tests.fakes.github.shapes import Shapes
from tests.fakes.github.state import Refused, State, may, sees

Handler: TypeAlias = Callable[["Call"], Reply]
#: Methods that change nothing.
_READING = ("GET", "HEAD")


@dataclass(frozen=True)
class Route:
    """One endpoint. `path` is as GitHub writes it, for example `/repos/{owner}/{repo}`."""

    method: str
    path: str
    answer: Handler
    #: Permissions of which one must be held, to read or to write as the method does; none of them: no token is needed.
    needs: tuple[str, ...]
    pattern: re.Pattern[str]


ROUTES: list[Route] = []


def route(method: str, path: str, *needs: str) -> Callable[[Handler], Handler]:
    """Let a function answer an endpoint; `{+name}` in the path holds slashes too."""
    shown = path.replace("{+", "{")
    long = re.sub(r"\{\+(\w+)\}", r"(?P<\1>.+)", path)
    pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", long))

    def register(handler: Handler) -> Handler:
        ROUTES.append(Route(method, shown, handler, needs, pattern))
        return handler

    return register


class NotFound(Exception):
    """There is no such thing, or not for who asks."""


@dataclass
class Call:
    """One call that was let through."""

    state: State
    shapes: Shapes
    token: Token
    path: str
    parts: Mapping[str, str]
    query: Mapping[str, str]
    #: Its JSON; `{}` where there is none.
    body: Any
    #: What kind of answer is wanted.
    accept: str = ""

    @property
    def user(self) -> User:
        """Who asks."""
        return self.token.user

    @property
    def repository(self) -> Repository:
        """The one in the path. Raises `NotFound`."""
        try:
            found = self.state.repository(f"{self.parts['owner']}/{self.parts['repo']}")
        except KeyError:
            raise NotFound from None
        if not sees(self.token, found):
            raise NotFound
        return found

    @property
    def issue(self) -> Issue:
        """The issue or pull request in the path. Raises `NotFound`."""
        number = self.parts.get("issue_number") or self.parts["pull_number"]
        found = self.repository.issues.get(int(number)) if number.isdecimal() else None
        if found is None:
            raise NotFound
        return found

    @property
    def pull(self) -> Pull:
        """The pull request in the path. Raises `NotFound`."""
        if not isinstance(found := self.issue, Pull):
            raise NotFound
        return found

    def page(self, rows: list[Any], shape: Callable[[Any], Any]) -> Reply:
        """The page that is asked for, and where the others are.

        https://docs.github.com/en/rest/using-the-rest-api/using-pagination-in-the-rest-api
        """
        return Reply(200, *self.cut(rows, shape))

    def cut(self, rows: list[Any], shape: Callable[[Any], Any]) -> tuple[list[Any], dict[str, str]]:
        """The rows of that page, and its headers."""
        size = min(int(self.query.get("per_page", "30")), 100)
        number = max(int(self.query.get("page", "1")), 1)
        last = max(-(-len(rows) // size), 1)
        places = {"prev": number - 1, "next": number + 1, "last": last, "first": 1}
        named = {name: at for name, at in places.items() if 1 <= at <= last and at != number}
        links = [
            f'<{self.shapes.api}{self.path}?{urlencode({**self.query, "page": at})}>; rel="{name}"'
            for name, at in named.items()
        ]
        return [shape(row) for row in rows[(number - 1) * size : number * size]], {
            "link": ", ".join(links)
        } if links else {}


def answer(
    state: State,
    shapes: Shapes,
    token: Token | None,
    method: str,
    path: str,
    query: Mapping[str, str],
    body: Any,
    accept: str = "",
) -> Reply:
    """What GitHub would say to a call with a token of its own, or with none that it knows."""
    found = find(method, path)
    if token is None:
        return BAD_CREDENTIALS
    if found is None:
        return NOT_FOUND
    one, parts = found
    call = Call(state, shapes, token, path, parts, query, body, accept)
    try:
        with state.lock:
            return _denied(one, call) or one.answer(call)
    except NotFound:
        return NOT_FOUND
    except Refused as refused:
        return _invalid(str(refused))


def find(method: str, path: str) -> tuple[Route, Mapping[str, str]] | None:
    """The endpoint of a call, and the parts of its path."""
    for one in ROUTES:
        if one.method == method and (match := one.pattern.fullmatch(path)) is not None:
            return one, match.groupdict()
    return None


def _denied(one: Route, call: Call) -> Reply | None:
    if "owner" not in call.parts:
        return None
    level: Level = "read" if one.method in _READING else "write"
    if may(call.token, call.repository, dict.fromkeys(one.needs, level)):
        return None
    if call.token.installation is not None:
        return message(403, "Resource not accessible by integration")
    if call.token.permissions is not None:
        return message(403, "Resource not accessible by personal access token")
    return NOT_FOUND if level == "read" else message(403, "Must have push access to the repository.")


def _invalid(text: str) -> Reply:
    """https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api#validation-failed"""
    refusal = message(422, "Validation Failed")
    return Reply(422, {**refusal.body, "errors": [{"resource": "PullRequest", "code": "custom", "message": text}]})


def tagged(reply: Reply, known: str | None) -> Reply:
    """The same with its ETag; 304 where whoever asks knows it already.

    https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api#use-conditional-requests
    """
    if reply.status != 200 or isinstance(reply.body, bytes):
        return reply
    tag = f'W/"{hashlib.sha256(json.dumps(reply.body).encode()).hexdigest()}"'
    headers = {**reply.headers, "etag": tag}
    return Reply(304, None, headers) if known == tag else Reply(200, reply.body, headers)

"""The REST calls, with GitHub's shapes, headers and refusals, and faults on demand.

It checks what GitHub checks: tokens, what they were made for, and an App's key and clock. Bodies come as GitHub sends
them, in pieces and compressed.
"""

import contextlib
import gzip
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, auto
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import unquote

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

#: When a used-up rate limit is full again.
RESET = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
RETRY_AFTER_S = 60
_PERMISSION = re.compile(r"/repos/([^/]+/[^/]+)/collaborators/([^/]+)/permission")
_MINT = re.compile(r"/app/installations/(\d+)/access_tokens")


class Fault(Enum):
    """What goes wrong with an answer."""

    SERVER_ERROR = auto()
    BAD_GATEWAY = auto()
    NOT_FOUND = auto()
    BAD_CREDENTIALS = auto()
    FORBIDDEN = auto()
    FORBIDDEN_BY_A_PROXY = auto()
    RATE_LIMITED = auto()
    SECONDARY_LIMIT = auto()
    LIMIT_IN_WORDS = auto()
    TOO_MANY_REQUESTS = auto()
    ODD_LIMIT = auto()
    GONE = auto()
    #: To a place that would say yes.
    MOVED_PERMANENTLY = auto()
    FOUND = auto()
    TEMPORARY_REDIRECT = auto()
    ACCEPTED = auto()
    GARBAGE = auto()
    NO_JSON = auto()
    DEEP = auto()
    A_LIST = auto()
    WRONG_SHAPE = auto()
    UNKNOWN_WORD = auto()
    HUGE = auto()
    #: No answer before the test is over.
    SLOW = auto()
    #: One byte after the other.
    DRIP = auto()
    HANG_UP = auto()
    CUT_OFF = auto()


@cache
def private_key() -> str:
    """The key of the tests' App, as GitHub hands one out."""
    return _pem(_key())


@cache
def other_key() -> str:
    """A key of another App."""
    return _pem(rsa.generate_private_key(public_exponent=65537, key_size=2048))


@cache
def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _pem(key: rsa.RSAPrivateKey) -> str:
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(encoding, form, serialization.NoEncryption()).decode()


@dataclass(frozen=True)
class Asked:
    """One request that came."""

    method: str
    path: str
    token: str
    body: Any
    version: str | None


@dataclass
class GitHubServer:
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

    def __enter__(self) -> Self:
        this: GitHubServer = self

        class Handler(_Handler):
            fake = this

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._http.shutdown()
        self._thread.join(10)
        self._http.server_close()

    @property
    def url(self) -> str:
        """What `GITHUB_API_URL` is to be."""
        return f"http://127.0.0.1:{self._http.server_address[1]}{self.prefix}"

    def paths(self) -> list[str]:
        """What was asked for, in order."""
        return [f"{one.method} {one.path}" for one in self.asked]


@dataclass(frozen=True)
class _Reply:
    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)


def _message(status: int, message: str, **headers: str) -> _Reply:
    body = {"message": message, "documentation_url": "https://docs.github.com/rest", "status": str(status)}
    return _Reply(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


_BAD_CREDENTIALS = _message(401, "Bad credentials")
_NOT_FOUND = _message(404, "Not Found")
_YES = {"permission": "admin", "role_name": "admin", "user": {"login": "bob", "id": 1002, "type": "User"}}
_ELSEWHERE = "/repositories/1/yes"
_FAULTS: dict[Fault, _Reply] = {
    Fault.SERVER_ERROR: _message(500, "Server Error"),
    Fault.BAD_GATEWAY: _Reply(502, b"<html><title>Unicorn! \xc2\xb7 GitHub</title></html>"),
    Fault.NOT_FOUND: _NOT_FOUND,
    Fault.BAD_CREDENTIALS: _BAD_CREDENTIALS,
    Fault.FORBIDDEN: _message(403, "Resource not accessible by integration"),
    Fault.FORBIDDEN_BY_A_PROXY: _Reply(403, b"<html>API rate limit exceeded</html>"),
    Fault.RATE_LIMITED: _message(
        403,
        "API rate limit exceeded for user ID 1.",
        x_ratelimit_remaining="0",
        x_ratelimit_reset=str(int(RESET.timestamp())),
    ),
    Fault.SECONDARY_LIMIT: _message(403, "You have been limited.", retry_after=str(RETRY_AFTER_S)),
    Fault.LIMIT_IN_WORDS: _message(403, "You have exceeded a secondary rate limit. Please wait."),
    Fault.TOO_MANY_REQUESTS: _message(429, "Too many requests", x_ratelimit_reset=str(int(RESET.timestamp()))),
    Fault.ODD_LIMIT: _message(429, "no", x_ratelimit_limit="a", x_ratelimit_remaining="b", x_ratelimit_reset="nan"),
    Fault.GONE: _Reply(410, {"message": 7}),
    Fault.MOVED_PERMANENTLY: _message(301, "Moved Permanently", location=_ELSEWHERE),
    Fault.FOUND: _message(302, "Found", location=_ELSEWHERE),
    Fault.TEMPORARY_REDIRECT: _message(307, "Temporary Redirect", location=_ELSEWHERE),
    Fault.ACCEPTED: _Reply(202, _YES),
    Fault.GARBAGE: _Reply(200, b'{"permission":"wri'),
    Fault.NO_JSON: _Reply(200, b"admin"),
    Fault.DEEP: _Reply(200, b"[" * 200_000),
    Fault.A_LIST: _Reply(200, [_YES]),
    Fault.WRONG_SHAPE: _Reply(200, {"permission": ["admin"], "id": "9", "slug": "a/b", "token": "a\nb"}),
    Fault.UNKNOWN_WORD: _Reply(200, {"permission": "owner", "id": 0, "slug": "", "token": "é"}),
    Fault.HUGE: _Reply(200, b'{"permission":"admin","x":"' + b"x" * 3_000_000 + b'"}'),
}


class _Handler(BaseHTTPRequestHandler):
    fake: GitHubServer
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        # Who asked may leave in the middle of an answer.
        with contextlib.suppress(ConnectionError):
            self._serve()

    def do_POST(self) -> None:
        self.do_GET()

    def _serve(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        body = json.loads(content) if content else None
        token = (self.headers.get("Authorization") or "").rpartition(" ")[2]
        path = unquote(self.path).removeprefix(self.fake.prefix)
        self.fake.asked.append(Asked(self.command, path, token, body, self.headers.get("X-GitHub-Api-Version")))
        fault = next((one for pattern, one in self.fake.faults.items() if re.match(pattern, path)), None)
        if fault is Fault.HANG_UP:
            self.close_connection = True
        elif fault is Fault.SLOW:
            self.fake.over.wait(30)
            self.close_connection = True
        elif fault is Fault.DRIP:
            self._drip()
        elif fault is Fault.CUT_OFF:
            self._send(_Reply(200, _YES), cut=True)
        elif fault is not None:
            self._send(_FAULTS[fault])
        else:
            self._send(self._answer(path, token, body))

    def _answer(self, path: str, token: str, body: Any) -> _Reply:
        """What GitHub would say. https://docs.github.com/en/rest"""
        fake = self.fake
        if path == _ELSEWHERE:
            return _Reply(200, _YES)
        if path == "/app" or _MINT.fullmatch(path):
            return self._as_app(path, token, body)
        if token not in fake.tokens and token not in fake.minted:
            return _BAD_CREDENTIALS
        if path == "/user":
            if token in fake.minted:
                return _FAULTS[Fault.FORBIDDEN]
            return _Reply(200, {"login": "someone", "id": fake.tokens[token], "type": "User"})
        if path == f"/users/{fake.slug}[bot]":
            return _Reply(200, {"login": f"{fake.slug}[bot]", "id": fake.bot_id, "type": "Bot"})
        if (found := _PERMISSION.fullmatch(path)) is not None:
            return self._permission(found[1], found[2], fake.minted.get(token))
        return _NOT_FOUND

    def _permission(self, repo: str, login: str, scope: dict[str, Any] | None) -> _Reply:
        if scope is not None:
            if repo.partition("/")[2] not in scope.get("repositories", [repo.partition("/")[2]]):
                return _NOT_FOUND
            if scope.get("permissions", {}).get("metadata") != "read":
                return _FAULTS[Fault.FORBIDDEN]
        permission = self.fake.permissions.get((repo, login))
        if permission is None:
            return _message(404, f"{login} is not a user")
        user = {"login": login, "id": 1002, "type": "User", "site_admin": False}
        return _Reply(200, {"permission": permission, "role_name": permission, "user": user})

    def _as_app(self, path: str, token: str, body: Any) -> _Reply:
        fake = self.fake
        now = fake.now().timestamp()
        try:
            claims = jwt.decode(
                token,
                _key().public_key(),
                algorithms=["RS256"],
                options={"verify_exp": False, "verify_iat": False, "require": ["iat", "exp", "iss"]},
            )
        except jwt.InvalidTokenError:
            return _message(401, "A JSON web token could not be decoded")
        if claims["iss"] != str(fake.app_id):
            return _message(404, "Integration not found")
        if claims["iat"] > now:
            return _message(401, "'Issued at' claim ('iat') must be an Integer representing a time in the past")
        if not now < claims["exp"] <= now + 600:
            return _message(401, "'Expiration time' claim ('exp') is too far in the future or past")
        if path == "/app":
            return _Reply(200, {"id": fake.app_id, "slug": fake.slug, "name": "pi-dispatch test"})
        found = _MINT.fullmatch(path)
        if found is None or int(found[1]) != fake.installation_id:
            return _NOT_FOUND
        made = f"ghs_minted{len(fake.minted)}"
        fake.minted[made] = dict(body)
        return _Reply(201, {"token": made, "expires_at": "2030-01-01T00:00:00Z", "permissions": body["permissions"]})

    def _send(self, reply: _Reply, *, cut: bool = False) -> None:
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        packed = "gzip" in (self.headers.get("Accept-Encoding") or "")
        body = gzip.compress(body) if packed else body
        self.send_response(reply.status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        if packed:
            self.send_header("Content-Encoding", "gzip")
        usual = {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "4999", "x-github-request-id": "A:1"}
        for name, value in (usual | reply.headers).items():
            self.send_header(name, self.fake.url + value if name == "location" else value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        half = len(body) // 2
        for piece in (body[:half], body[half:]):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            if cut:
                self.close_connection = True
                return
        self.wfile.write(b"0\r\n\r\n")

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        self.close_connection = True
        while not self.fake.over.wait(0.02):
            self.wfile.write(b" ")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a test says what it looks for."""

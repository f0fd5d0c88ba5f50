"""Git over HTTP: git's own server, behind GitHub's tokens. https://git-scm.com/docs/git-http-backend"""

import base64
import binascii
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler

from tests.fakes.github.faults import Reply
from tests.fakes.github.git import environment
from tests.fakes.github.model import Repository, Token
from tests.fakes.github.state import State, may, sees

#: A path of git's; its service too.
PATH = re.compile(r"/(?P<name>[^/]+/[^/]+?)(?:\.git)?/(?P<rest>info/refs|git-upload-pack|git-receive-pack)")
_PUSH = "git-receive-pack"
_CHUNK = 65536


@dataclass(frozen=True)
class Access:
    """What is asked for and may be had."""

    repository: Repository
    token: Token | None
    rest: str
    pushes: bool


def password(header: str) -> str | None:
    """The token in an `Authorization` header; the name before it is of no matter."""
    kind, _, value = header.partition(" ")
    if kind.lower() != "basic":
        return value or None
    try:
        name, _, word = base64.b64decode(value).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return word or name


def access(state: State, path: str, query: str, header: str) -> Access | Reply:
    """What a request may have, or the refusal in GitHub's words."""
    found = PATH.fullmatch(path)
    assert found is not None, "it is one of git's"
    word = password(header)
    token = state.known(word) if word else None
    if word is not None and token is None:
        return _said(401, "Invalid username or token. Password authentication is not supported for Git operations.")
    repository = state.repositories.get(found["name"].lower())
    pushes = _PUSH in (found["rest"], query.partition("service=")[2])
    if token is None and (repository is None or repository.private or pushes):
        return _said(401, "No anonymous write access.")
    if repository is None or (token is not None and not sees(token, repository)):
        return _said(404, "Repository not found.")
    if token is not None and pushes and not may(token, repository, {"contents": "write"}):
        if token.installation is not None:
            return _said(403, "Write access to repository not granted.")
        return _said(403, f"Permission to {repository.full_name}.git denied to {token.user.login}.")
    if token is not None and repository.private and not may(token, repository, {"contents": "read"}):
        return _said(403, "Write access to repository not granted.")
    return Access(repository, token, found["rest"], pushes)


def _said(status: int, text: str) -> Reply:
    asks = {"www-authenticate": 'Basic realm="GitHub"'} if status == 401 else {}
    return Reply(status, f"{text}\n".encode(), {"content-type": "text/plain; charset=utf-8", **asks})


def backend(
    asked: Access, request: BaseHTTPRequestHandler, query: str, body: bytes
) -> tuple[int, dict[str, str], Iterator[bytes]]:
    """Status, headers and body of what git's own server answers."""
    headers = request.headers
    variables = {
        **environment(),
        "GIT_PROJECT_ROOT": str(asked.repository.git.path),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": f"/{asked.rest}",
        "QUERY_STRING": query,
        "REQUEST_METHOD": request.command,
        "CONTENT_TYPE": headers.get("Content-Type") or "",
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_CONTENT_ENCODING": headers.get("Content-Encoding") or "",
        "GIT_PROTOCOL": headers.get("Git-Protocol") or "",
        "REMOTE_USER": asked.token.user.login if asked.token is not None else "",
        "REMOTE_ADDR": "127.0.0.1",
    }
    # A file, since the program may answer before it has read everything.
    with tempfile.TemporaryFile() as sent:
        sent.write(body)
        sent.seek(0)
        process = subprocess.Popen(
            ["git", "http-backend"], env=variables, stdin=sent, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    told = _head(process)
    status = int(told.pop("status", "200").split(" ")[0])
    return status, told, _rest(process)


def _head(process: subprocess.Popen[bytes]) -> dict[str, str]:
    assert process.stdout is not None
    told = {}
    while line := process.stdout.readline().strip():
        name, _, value = line.decode("latin-1").partition(":")
        told[name.lower()] = value.strip()
    return told


def _rest(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    assert process.stdout is not None
    with process:
        while piece := process.stdout.read(_CHUNK):
            yield piece
    yield b""


def pushed(state: State, asked: Access) -> None:
    """See to what a push has moved."""
    assert asked.token is not None, "nobody pushes without one"
    state.moved(asked.repository, asked.token.user)

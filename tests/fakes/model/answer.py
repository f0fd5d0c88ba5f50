"""From a request to what goes over the wire, as a value: nothing here touches a socket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from . import anthropic, ask, openai
from .ask import BadRequest
from .director import Director, UnknownModel
from .script import Cut, Fault, Hang, Slow
from .sse import Frame
from .usage import Api


@dataclass(frozen=True)
class JsonReply:
    """A status and a JSON body: every error is one."""

    status: int
    body: dict[str, object]


@dataclass(frozen=True)
class Silence:
    """No answer at all."""


@dataclass(frozen=True)
class Stream:
    """Status 200 and a stream of chunks."""

    chunks: tuple[bytes, ...]
    #: Seconds to wait before each chunk.
    pause_s: float = 0
    #: False: close the connection after the last chunk instead of ending the body.
    complete: bool = True


Reply: TypeAlias = JsonReply | Silence | Stream


@dataclass(frozen=True)
class Answer:
    """The reply, and the name of the step it comes from (None: refused before the script)."""

    reply: Reply
    step: str | None = None

    @property
    def status(self) -> int | None:
        """HTTP status; None for silence."""
        if isinstance(self.reply, Silence):
            return None
        return self.reply.status if isinstance(self.reply, JsonReply) else 200


def answer(
    director: Director, api: Api, headers: Mapping[str, str], body: object, *, serial: int, created: int
) -> Answer:
    """Answer one request. ``headers`` have lower-case names."""
    try:
        if refused := _header_error(api, headers):
            raise refused
        request = ask.read(api, body)
        step = director.step(request, key_of(headers))
    except BadRequest as error:
        return Answer(failure(api, error.status, error.message, serial))
    except UnknownModel as error:
        unknown = (anthropic if api == "anthropic" else openai).unknown_model(str(error))
        return Answer(failure(api, 404, unknown, serial))
    name = type(step).__name__
    if isinstance(step, Fault):
        return Answer(failure(api, step.status, step.message, serial), name)
    if isinstance(step, Hang):
        return Answer(Silence(), name)
    frame = Frame(model=request.model, serial=serial, created=created)
    usage = director.scenario(request.model).usage_at(request.turn)
    if api == "anthropic":
        chunks = anthropic.encode(step, usage, frame)
    else:
        chunks = openai.encode(step, usage, frame, include_usage=request.wants_usage)
    pause_s = step.chunk_delay_s if isinstance(step, Slow) else 0
    return Answer(Stream(tuple(chunks), pause_s, complete=not isinstance(step, Cut)), name)


def failure(api: Api, status: int, message: str, serial: int) -> JsonReply:
    """An error in the API's own shape."""
    if api == "anthropic":
        return JsonReply(status, anthropic.error_body(status, message, serial))
    return JsonReply(status, openai.error_body(status, message))


def key_of(headers: Mapping[str, str]) -> str:
    """The bearer token, else the x-api-key, else the empty string."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")


def _header_error(api: Api, headers: Mapping[str, str]) -> BadRequest | None:
    """What the vendors demand of the headers: a key, and Anthropic a version."""
    if not key_of(headers):
        missing = "x-api-key header is required" if api == "anthropic" else "You didn't provide an API key."
        return BadRequest(401, missing)
    if api == "anthropic" and "anthropic-version" not in headers:
        return BadRequest(400, "anthropic-version: header is required")
    return None

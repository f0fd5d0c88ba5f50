"""What a request body says, read once and the same way for both APIs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .usage import Api


class BadRequest(Exception):
    """The provider would refuse this body: HTTP status and message, in the provider's words."""

    def __init__(self, status: int, message: str) -> None:
        """Keep both for the error body."""
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True)
class Ask:
    """One request for an answer."""

    api: Api
    model: str
    #: Number of assistant messages in the request: 0 for the first answer.
    turn: int
    #: False for the agent's own summary requests.
    has_tools: bool
    #: Text of the last user message.
    prompt: str
    #: ``stream_options.include_usage``; only OpenAI has it, Anthropic always reports usage.
    wants_usage: bool


def count_turns(body: object) -> int:
    """Number of assistant messages; 0 where the body has no messages."""
    return sum(1 for message in _messages(body) if message.get("role") == "assistant")


def read(api: Api, body: object) -> Ask:
    """The request as a value. Raises BadRequest where the provider would answer 400.

    Only streams are spoken: https://platform.openai.com/docs/api-reference/chat-streaming and
    https://docs.anthropic.com/en/docs/build-with-claude/streaming.
    """
    if not isinstance(body, dict):
        raise BadRequest(400, "We could not parse the JSON body of your request.")
    if api == "anthropic":
        _check_anthropic(body)
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise BadRequest(400, _missing(api, "model"))
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        raise BadRequest(400, _missing(api, "messages"))
    if body.get("stream") is not True:
        raise BadRequest(400, 'stream: this model only streams; send "stream": true')
    options = body.get("stream_options")
    return Ask(
        api=api,
        model=model,
        turn=count_turns(body),
        has_tools=bool(body.get("tools")),
        prompt=_last_user_text(body),
        wants_usage=isinstance(options, dict) and options.get("include_usage") is True,
    )


def _check_anthropic(body: Mapping[str, object]) -> None:
    """Message threads need state on the provider's side; a stateless endpoint refuses the field by name.

    pi then sends the whole conversation again, without the field, for the rest of the session.
    """
    if "thread" in body:
        raise BadRequest(400, "thread: Extra inputs are not permitted")
    if not isinstance(body.get("max_tokens"), int):
        raise BadRequest(400, _missing("anthropic", "max_tokens"))


def _missing(api: Api, field: str) -> str:
    return f"{field}: Field required" if api == "anthropic" else f"Missing required parameter: '{field}'."


def _messages(body: object) -> list[Mapping[str, object]]:
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list):
        return []
    return [message for message in messages if isinstance(message, dict)]


def _last_user_text(body: object) -> str:
    for message in reversed(_messages(body)):
        text = _text(message.get("content")) if message.get("role") == "user" else ""
        if text:
            return text
    return ""


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))

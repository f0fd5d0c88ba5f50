"""OpenAI Chat Completions: answers and errors as bytes.

Shapes: https://platform.openai.com/docs/api-reference/chat-streaming and
https://platform.openai.com/docs/guides/error-codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .script import Call, Calls, Cut, Length, NoUsage
from .sse import Frame, Streamed, arguments_pieces, calls_of, data_event, paced, text_pieces
from .usage import Usage


def encode(step: Streamed, usage: Usage, frame: Frame, *, include_usage: bool = True) -> list[bytes]:
    """The answer's stream, chunk by chunk. A Cut has no end: no finish reason, no usage, no ``[DONE]``."""
    stream = _Stream(frame, nulls=include_usage)
    opening: dict[str, object] = {
        "role": "assistant",
        "content": None if calls_of(step) else "",
        "refusal": None,
    }
    deltas = [stream.delta({"content": piece}) for piece in text_pieces(step)]
    deltas.extend(stream.delta(delta) for delta in _call_deltas(calls_of(step), frame))
    closing: list[bytes] = []
    if not isinstance(step, Cut):
        closing.append(stream.delta({}, finish=_finish(step)))
        if include_usage and not isinstance(step, NoUsage):
            closing.append(stream.usage(usage.seen_by("openai")))
        closing.append(data_event("[DONE]"))
    return paced(step, [stream.delta(opening)], deltas, closing)


def error_body(status: int, message: str) -> dict[str, object]:
    """The JSON body of an error answer."""
    kind, code = _ERRORS.get(status, ("server_error" if status >= 500 else "invalid_request_error", None))
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def unknown_model(model: str) -> str:
    """The message of the 404 for a model id that does not exist."""
    return f"The model `{model}` does not exist or you do not have access to it."


def model_list(ids: Iterable[str], created: int) -> dict[str, object]:
    """The body of ``GET /v1/models``: https://platform.openai.com/docs/api-reference/models/list."""
    return {
        "object": "list",
        "data": [{"id": id_, "object": "model", "created": created, "owned_by": "system"} for id_ in ids],
    }


_ERRORS: dict[int, tuple[str, str | None]] = {
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}


class _Stream:
    """Chunk objects of one answer: same id, time and model in each."""

    def __init__(self, frame: Frame, *, nulls: bool) -> None:
        self._head: dict[str, object] = {
            "id": f"chatcmpl-{frame.serial:06}",
            "object": "chat.completion.chunk",
            "created": frame.created,
            "model": frame.model,
            "service_tier": "default",
            "system_fingerprint": None,
        }
        # With include_usage the vendor sends "usage": null in every chunk but the last.
        self._tail: dict[str, object] = {"usage": None} if nulls else {}

    def delta(self, delta: dict[str, object], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return data_event({**self._head, "choices": [choice], **self._tail})

    def usage(self, usage: Usage) -> bytes:
        counts = {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.output,
            "total_tokens": usage.total,
            "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        }
        return data_event({**self._head, "choices": [], "usage": counts})


def _call_deltas(calls: tuple[Call, ...], frame: Frame) -> Iterator[dict[str, object]]:
    for index, call in enumerate(calls):
        head = {"name": call.tool, "arguments": ""}
        call_id = f"call_{frame.serial:06}_{index}"
        yield {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": head}]}
        for piece in arguments_pieces(call.arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _finish(step: Streamed) -> str:
    if isinstance(step, Call | Calls):
        return "tool_calls"
    return "length" if isinstance(step, Length) else "stop"

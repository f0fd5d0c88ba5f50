"""Anthropic Messages: answers and errors as bytes.

Shapes: https://docs.anthropic.com/en/docs/build-with-claude/streaming and
https://docs.anthropic.com/en/api/errors.
"""

from __future__ import annotations

from collections.abc import Iterable

from .script import Call, Calls, Cut, Length, NoUsage
from .sse import Frame, Streamed, arguments_pieces, calls_of, data_event, paced, text_pieces
from .usage import Usage


def encode(step: Streamed, usage: Usage, frame: Frame) -> list[bytes]:
    """The answer's stream, chunk by chunk. A Cut stops inside its text block.

    The API always reports usage, so NoUsage reports zeros.
    """
    reported = Usage() if isinstance(step, NoUsage) else usage
    opening = [_message_start(reported.started, frame)]
    deltas: list[bytes] = []
    closing: list[bytes] = []
    if calls := calls_of(step):
        for index, call in enumerate(calls):
            deltas.extend(_tool_block(index, call, frame))
    else:
        opening += [_block_start(0, {"type": "text", "text": ""}), _event("ping")]
        deltas += [_delta(0, {"type": "text_delta", "text": piece}) for piece in text_pieces(step)]
        closing += [_event("content_block_stop", index=0)]
    delta = {"stop_reason": _stop_reason(step), "stop_sequence": None}
    closing += [_event("message_delta", delta=delta, usage={"output_tokens": reported.output})]
    closing += [_event("message_stop")]
    return paced(step, opening, deltas, [] if isinstance(step, Cut) else closing)


def error_body(status: int, message: str, serial: int) -> dict[str, object]:
    """The JSON body of an error answer."""
    kind = _ERRORS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id(serial)}


def request_id(serial: int) -> str:
    """Value of the ``request-id`` header."""
    return f"req_{serial:06}"


def unknown_model(model: str) -> str:
    """The message of the 404 for a model id that does not exist."""
    return f"model: {model}"


def model_list(ids: Iterable[str]) -> dict[str, object]:
    """The body of ``GET /v1/models``: https://docs.anthropic.com/en/api/models-list."""
    created = "2025-01-01T00:00:00Z"
    data = [{"type": "model", "id": id_, "display_name": id_, "created_at": created} for id_ in ids]
    first, last = (data[0]["id"], data[-1]["id"]) if data else (None, None)
    return {"data": data, "has_more": False, "first_id": first, "last_id": last}


_ERRORS: dict[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def _event(kind: str, **fields: object) -> bytes:
    return data_event({"type": kind, **fields}, name=kind)


def _message_start(usage: Usage, frame: Frame) -> bytes:
    counts = {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
    }
    message: dict[str, object] = {
        "id": f"msg_{frame.serial:06}",
        "type": "message",
        "role": "assistant",
        "model": frame.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": counts,
    }
    return _event("message_start", message=message)


def _block_start(index: int, block: dict[str, object]) -> bytes:
    return _event("content_block_start", index=index, content_block=block)


def _delta(index: int, delta: dict[str, object]) -> bytes:
    return _event("content_block_delta", index=index, delta=delta)


def _tool_block(index: int, call: Call, frame: Frame) -> list[bytes]:
    block: dict[str, object] = {
        "type": "tool_use",
        "id": f"toolu_{frame.serial:06}_{index}",
        "name": call.tool,
        "input": {},
    }
    pieces = ["", *arguments_pieces(call.arguments)]
    return [
        _block_start(index, block),
        *(_delta(index, {"type": "input_json_delta", "partial_json": piece}) for piece in pieces),
        _event("content_block_stop", index=index),
    ]


def _stop_reason(step: Streamed) -> str:
    if isinstance(step, Call | Calls):
        return "tool_use"
    return "max_tokens" if isinstance(step, Length) else "end_turn"

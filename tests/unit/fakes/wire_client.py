"""A client of both APIs written from the vendors' documentation alone: it shares no code with the fake."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

OPENAI_HEADERS = {"Authorization": "Bearer key-1", "Content-Type": "application/json"}
ANTHROPIC_HEADERS = {"x-api-key": "key-1", "anthropic-version": "2023-06-01", "Content-Type": "application/json"}
TOOL_OPENAI = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
TOOL_ANTHROPIC = {"name": "bash", "input_schema": {"type": "object"}}


@dataclass(frozen=True)
class Reply:
    """One HTTP answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    data: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.data)


@dataclass
class Assembled:
    """What a client makes of a stream. ``finish`` is None when the stream had no end."""

    text: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    finish: str | None = None
    usage: dict[str, Any] | None = None


def conversation(turn: int) -> list[dict[str, str]]:
    """Messages with ``turn`` assistant answers in them."""
    messages = [{"role": "user", "content": "do it"}]
    for number in range(turn):
        messages += [{"role": "assistant", "content": f"a{number}"}, {"role": "user", "content": f"u{number}"}]
    return messages


def openai_body(model: str, turn: int = 0) -> dict[str, object]:
    """A streamed Chat Completions request with one tool."""
    body: dict[str, object] = {"model": model, "messages": conversation(turn), "stream": True, "tools": [TOOL_OPENAI]}
    return {**body, "stream_options": {"include_usage": True}}


def anthropic_body(model: str, turn: int = 0) -> dict[str, object]:
    """A streamed Messages request with one tool."""
    body: dict[str, object] = {"model": model, "messages": conversation(turn), "stream": True, "max_tokens": 4096}
    return {**body, "tools": [TOOL_ANTHROPIC]}


def exchange(
    connection: http.client.HTTPConnection, path: str, body: object, headers: Mapping[str, str], method: str = "POST"
) -> Reply:
    """Send one request on an open connection and read the whole answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, body=data if method == "POST" else None, headers=dict(headers))
    answer = connection.getresponse()
    return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())


def ask(
    port: int,
    api: str,
    model: str,
    turn: int = 0,
    *,
    key: str = "key-1",
    timeout_s: float = 20,
    changed: Mapping[str, object] | None = None,
) -> Reply:
    """One request on a connection of its own, straight to the server; ``changed`` replaces fields of the body."""
    path, body, headers = "/v1/chat/completions", openai_body(model, turn), {**OPENAI_HEADERS}
    headers["Authorization"] = f"Bearer {key}"
    if api == "anthropic":
        path, body, headers = "/v1/messages?beta=true", anthropic_body(model, turn), {**ANTHROPIC_HEADERS}
        headers["x-api-key"] = key
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        return exchange(connection, path, {**body, **(changed or {})}, headers)
    finally:
        connection.close()


def events(stream: bytes) -> list[tuple[str | None, str]]:
    """Server-sent events as (event name, data): https://html.spec.whatwg.org/multipage/server-sent-events.html."""
    found = []
    for block in stream.decode().split("\n\n"):
        fields = [line.split(": ", 1) for line in block.split("\n") if line]
        named = [value for name, value in fields if name == "event"]
        data = "\n".join(value for name, value in fields if name == "data")
        if fields:
            found.append((named[0] if named else None, data))
    return found


def assemble(api: str, chunks: Iterable[bytes]) -> Assembled:
    """Put a stream's pieces together."""
    stream = b"".join(chunks)
    return assemble_openai(stream) if api == "openai" else assemble_anthropic(stream)


def assemble_openai(stream: bytes) -> Assembled:
    """Chat Completions: deltas by choice and tool call index, usage in a chunk without choices, then [DONE]."""
    result = Assembled()
    calls: dict[int, list[str]] = {}
    for name, data in events(stream):
        assert name is None
        if data == "[DONE]":
            continue
        chunk = json.loads(data)
        assert chunk["object"] == "chat.completion.chunk"
        result.usage = chunk.get("usage") or result.usage
        for choice in chunk["choices"]:
            result.text += choice["delta"].get("content") or ""
            result.finish = choice["finish_reason"] or result.finish
            for delta in choice["delta"].get("tool_calls", []):
                call = calls.setdefault(delta["index"], ["", ""])
                call[0] += delta["function"].get("name", "")
                call[1] += delta["function"]["arguments"]
    result.calls = [(call[0], json.loads(call[1])) for _, call in sorted(calls.items())]
    return result


def assemble_anthropic(stream: bytes) -> Assembled:
    """Messages: content blocks by index, usage in message_start, its output count replaced by message_delta."""
    result = Assembled()
    blocks: dict[int, dict[str, Any]] = {}
    parts: dict[int, str] = {}
    for name, data in events(stream):
        event = json.loads(data)
        assert event["type"] == name
        if name == "message_start":
            result.usage = dict(event["message"]["usage"])
        elif name == "content_block_start":
            blocks[event["index"]] = event["content_block"]
            parts[event["index"]] = ""
        elif name == "content_block_delta":
            delta = event["delta"]
            parts[event["index"]] += delta["text"] if delta["type"] == "text_delta" else delta["partial_json"]
        elif name == "message_delta":
            result.finish = event["delta"]["stop_reason"]
            result.usage = {**(result.usage or {}), **event["usage"]}
    for index, block in sorted(blocks.items()):
        if block["type"] == "tool_use":
            result.calls.append((block["name"], json.loads(parts[index])))
        else:
            result.text += parts[index]
    return result

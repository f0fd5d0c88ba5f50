"""Both encoders send what was scripted, in the shape the vendors document."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.model import Call, Calls, Cut, Length, NoUsage, Say, Slow, Usage, usage_of
from tests.fakes.model import anthropic as anthropic_wire
from tests.fakes.model import openai as openai_wire
from tests.fakes.model.sse import PIECE, Frame, Streamed
from tests.unit.fakes.test_script_codec import CALL
from tests.unit.fakes.wire_client import assemble, events

FRAME = Frame(model="m", serial=7, created=1_700_000_000)
APIS = pytest.mark.parametrize("api", ["openai", "anthropic"])
TEXT = st.text(max_size=200)


def encode(api: str, step: Streamed, usage: Usage | None = None) -> list[bytes]:
    usage = usage or usage_of(0)
    return openai_wire.encode(step, usage, FRAME) if api == "openai" else anthropic_wire.encode(step, usage, FRAME)


@APIS
@given(text=TEXT)
def test_any_text_survives(api: str, text: str) -> None:
    for step in (Say(text), Slow(text, 0, 5), Length(text), NoUsage(text), Cut(text)):
        assert assemble(api, encode(api, step)).text == text


@APIS
@given(calls=st.lists(CALL, min_size=1, max_size=4))
def test_any_tool_calls_survive(api: str, calls: list[Call]) -> None:
    got = assemble(api, encode(api, Calls(tuple(calls))))
    assert got.calls == [(call.tool, call.arguments) for call in calls]
    assert got.text == ""
    assert assemble(api, encode(api, calls[0])).calls == got.calls[:1]


@APIS
def test_text_and_arguments_come_in_pieces(api: str) -> None:
    assert len(encode(api, Say("x" * (PIECE * 10)))) >= 10
    assert len(encode(api, Call("bash", {"command": "x" * (PIECE * 10)}))) >= 10


@APIS
@pytest.mark.parametrize(
    ("step", "openai", "anthropic"),
    [
        (Say("hi"), "stop", "end_turn"),
        (Slow("hi", 0, 2), "stop", "end_turn"),
        (NoUsage("hi"), "stop", "end_turn"),
        (Length("hi"), "length", "max_tokens"),
        (Call("bash", {}), "tool_calls", "tool_use"),
        (Calls((Call("a", {}), Call("b", {}))), "tool_calls", "tool_use"),
        (Cut("hi"), None, None),
    ],
)
def test_why_an_answer_ends(api: str, step: Streamed, openai: str | None, anthropic: str | None) -> None:
    assert assemble(api, encode(api, step)).finish == (openai if api == "openai" else anthropic)


@APIS
@given(text=TEXT, chunks=st.integers(min_value=1, max_value=30))
def test_slow_is_exactly_as_many_chunks_as_asked_for(api: str, text: str, chunks: int) -> None:
    assert len(encode(api, Slow(text, 1, chunks))) == chunks


def test_usage_in_each_vendors_words() -> None:
    usage = Usage(input=11, cached=13, output=17, cache_write=19)
    said = assemble("openai", encode("openai", Say("hi"), usage)).usage
    assert said is not None
    assert (said["prompt_tokens"], said["completion_tokens"], said["total_tokens"]) == (43, 17, 60)
    assert said["prompt_tokens_details"]["cached_tokens"] == 13
    assert assemble("anthropic", encode("anthropic", Say("hi"), usage)).usage == {
        "input_tokens": 11,
        "cache_read_input_tokens": 13,
        "cache_creation_input_tokens": 19,
        "output_tokens": 17,
    }


def test_answers_without_usage() -> None:
    assert assemble("openai", encode("openai", NoUsage("hi"))).usage is None
    assert assemble("openai", openai_wire.encode(Say("hi"), usage_of(0), FRAME, include_usage=False)).usage is None
    zeros = assemble("anthropic", encode("anthropic", NoUsage("hi"))).usage
    assert zeros is not None
    assert set(zeros.values()) == {0}


def test_a_cut_openai_stream_told_nothing_about_usage_and_an_anthropic_one_told_its_prompt() -> None:
    assert assemble("openai", encode("openai", Cut("hi"))).usage is None
    told = assemble("anthropic", encode("anthropic", Cut("hi"), Usage(input=5, output=9))).usage
    assert told is not None
    assert (told["input_tokens"], told["output_tokens"]) == (5, 1)


def test_every_openai_chunk_is_whole() -> None:
    stream = events(b"".join(encode("openai", Calls((Call("a", {"x": 1}), Call("b", {}))))))
    assert stream[-1] == (None, "[DONE]")
    chunks = [json.loads(data) for _, data in stream[:-1]]
    head = {"id": "chatcmpl-000007", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m"}
    for chunk in chunks:
        assert head.items() <= chunk.items()
    # https://platform.openai.com/docs/api-reference/chat-streaming: usage is null in every chunk but the last.
    assert [chunk["usage"] is None for chunk in chunks] == [True] * (len(chunks) - 1) + [False]
    assert [len(chunk["choices"]) for chunk in chunks] == [1] * (len(chunks) - 1) + [0]
    first = chunks[0]["choices"][0]["delta"]
    assert first == {"role": "assistant", "content": None, "refusal": None}
    opened = [
        call
        for chunk in chunks
        for choice in chunk["choices"]
        for call in choice["delta"].get("tool_calls", [])
        if "id" in call
    ]
    assert [(call["index"], call["type"]) for call in opened] == [(0, "function"), (1, "function")]
    assert len({call["id"] for call in opened}) == 2


@pytest.mark.parametrize(
    ("step", "order"),
    [
        (
            Say("hi"),
            [
                "message_start",
                "content_block_start",
                "ping",
                "content_block_delta",
                "content_block_stop",
                "message_delta",
                "message_stop",
            ],
        ),
        (
            Call("bash", {}),
            [
                "message_start",
                "content_block_start",
                "content_block_delta",
                "content_block_delta",
                "content_block_stop",
                "message_delta",
                "message_stop",
            ],
        ),
        (Cut("hi"), ["message_start", "content_block_start", "ping", "content_block_delta"]),
    ],
)
def test_the_order_of_anthropic_events(step: Streamed, order: list[str]) -> None:
    assert [name for name, _ in events(b"".join(encode("anthropic", step)))] == order


def test_anthropic_message_start_is_an_empty_message() -> None:
    start = json.loads(events(encode("anthropic", Say("hi"))[0])[0][1])["message"]
    assert start["id"] == "msg_000007"
    assert (start["role"], start["model"], start["content"], start["stop_reason"]) == ("assistant", "m", [], None)


@pytest.mark.parametrize(
    ("status", "openai", "anthropic"),
    [
        (400, ("invalid_request_error", None), "invalid_request_error"),
        (401, ("invalid_request_error", "invalid_api_key"), "authentication_error"),
        (403, ("invalid_request_error", None), "permission_error"),
        (404, ("invalid_request_error", "model_not_found"), "not_found_error"),
        (418, ("invalid_request_error", None), "invalid_request_error"),
        (429, ("requests", "rate_limit_exceeded"), "rate_limit_error"),
        (500, ("server_error", None), "api_error"),
        (503, ("server_error", None), "api_error"),
        (529, ("server_error", None), "overloaded_error"),
    ],
)
def test_error_bodies(status: int, openai: tuple[str, str | None], anthropic: str) -> None:
    body = openai_wire.error_body(status, "why")
    assert body == {"error": {"message": "why", "type": openai[0], "param": None, "code": openai[1]}}
    assert anthropic_wire.error_body(status, "why", 3) == {
        "type": "error",
        "error": {"type": anthropic, "message": "why"},
        "request_id": "req_000003",
    }


def test_an_empty_list_of_models() -> None:
    assert openai_wire.model_list([], 0) == {"object": "list", "data": []}
    assert anthropic_wire.model_list([]) == {"data": [], "has_more": False, "first_id": None, "last_id": None}

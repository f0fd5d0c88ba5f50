"""The line protocol: exact bytes, one exit line, bounded messages."""

import json
import os
import threading
from collections.abc import Iterator
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pirunner.lines import MESSAGE_LIMIT, Lines, cap_message, encode

Json = dict[str, object]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def test_line_is_delimited_on_both_sides_and_begins_with_event_and_job(pipe: tuple[int, int]) -> None:
    Lines("pi-job-x", pipe[1]).event("turn", turns=1, tokens=20)
    assert os.read(pipe[0], 1000) == b'\n{"event":"turn","jobId":"pi-job-x","turns":1,"tokens":20}\n'


def test_first_exit_line_counts_and_nothing_follows_it(pipe: tuple[int, int]) -> None:
    lines = Lines("x", pipe[1])
    assert lines.exit({"code": 143, "reason": "terminated"}) == 143
    assert lines.exit({"code": 0, "reason": "stop"}) == 143
    lines.event("turn", turns=2, tokens=3)
    assert os.read(pipe[0], 1000) == b'\n{"event":"exit","jobId":"x","code":143,"reason":"terminated"}\n'


def test_exit_from_many_threads_is_one_line(pipe: tuple[int, int]) -> None:
    lines = Lines("x", pipe[1])
    codes: list[int] = []
    threads = [
        threading.Thread(target=lambda code=code: codes.append(lines.exit({"code": code, "reason": "r"})))
        for code in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    line = json.loads(os.read(pipe[0], 10_000))
    assert set(codes) == {line["code"]}


def test_exit_code_must_be_an_integer(pipe: tuple[int, int]) -> None:
    with pytest.raises(TypeError, match="integer code"):
        Lines("x", pipe[1]).exit({"code": "0"})


def test_reader_that_left_does_not_change_the_code() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    assert Lines("x", writing).exit({"code": 2, "reason": "config"}) == 2
    os.close(writing)


def test_exit_does_not_wait_for_a_writer_that_hangs() -> None:
    reading, writing = os.pipe()
    lines = Lines("x", writing)
    stuck = threading.Thread(target=lambda: lines.event("turn", text="x" * 1_000_000))
    stuck.start()
    # The pipe holds less than the line, so the writer has the lock until somebody reads.
    first = os.read(reading, 1)
    assert lines.exit({"code": 143, "reason": "terminated"}, timeout=0.01) == 143
    rest = b""
    while not rest.endswith(b"}\n"):
        rest += os.read(reading, 1 << 16)
    stuck.join()
    os.close(reading)
    os.close(writing)
    assert b"terminated" not in first + rest


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("0.000001234567"), "0.000001234567"),
        (Decimal("1E+3"), "1000"),
        (Decimal("0E-12"), "0"),
        (Decimal("0.10"), "0.1"),
        ([1, None, True, "\u2028"], '[1,null,true,"\\u2028"]'),
    ],
)
def test_encode(value: object, text: str) -> None:
    assert encode(value) == text


def test_encode_refuses_what_is_no_json() -> None:
    with pytest.raises(TypeError, match="float"):
        encode(0.1)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_encode_is_json_on_one_line(value: object) -> None:
    text = encode(value)
    assert json.loads(text) == value
    assert text.isascii()
    assert "\n" not in text


@given(st.text(max_size=30), st.integers(min_value=0, max_value=40))
def test_capped_message_is_the_longest_prefix_of_whole_characters(message: str, limit: int) -> None:
    capped = cap_message(message, limit=limit)
    assert message.startswith(capped)
    assert len(json.dumps(capped)) - 2 <= limit
    if capped != message:
        assert len(json.dumps(message[: len(capped) + 1])) - 2 > limit


def test_message_limit_counts_escapes() -> None:
    assert cap_message("\n" * 5000) == "\n" * (MESSAGE_LIMIT // 2)
    assert cap_message("\U0001f600" * 500) == "\U0001f600" * (MESSAGE_LIMIT // 12)


def test_secrets_go_before_the_cut() -> None:
    assert cap_message("key abcdefgh, key abcdefgh", ("abcdefgh",), limit=20) == "key [redacted], key "

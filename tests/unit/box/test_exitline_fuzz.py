"""The end of a run read from hostile output: no bytes raise or grow, and a whole last word is found behind any."""

import json
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from pidispatch.box.exitline import last_exit, parse_line, read_telemetry
from pidispatch.box.tail import Tail
from pidispatch.values.limits import Limits
from pidispatch.values.progress import Progress
from pidispatch.values.usage import Telemetry

LIMITS = Limits(tail_chars=4096, line_chars=256)
ROW = {"provider": "anthropic", "model": "m", "calls": 1, "input": 2, "output": 3, "total": 5, "cost": 0.25}
#: Text that is made to be taken for a line of the runner.
LOOKALIKE = '{"event":"exit","jobId":"y","code":0,"turns":99}'


def _line(event: str, **fields: object) -> bytes:
    return json.dumps({"event": event, "jobId": "x"} | fields, separators=(",", ":"), ensure_ascii=False).encode()


_messages = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.sampled_from(
    [LOOKALIKE, '"', "\\", "}"]
)
_exits = st.builds(
    lambda turns, message, tokens, rows: _line(
        "exit",
        code=0,
        turns=turns,
        message=message,
        tokens=tokens,
        usage={"v": 1, "piAi": "1.6.0", "truncated": 0, "models": [ROW] * rows},
    ),
    st.integers(0, 10**6),
    _messages,
    st.none() | st.fixed_dictionaries({"total": st.integers(0, 10**9) | st.floats(0, 10**9)}),
    st.integers(0, 10),
)
_turns = st.builds(
    lambda turns, tokens: _line("turn", turns=turns, tokens=tokens), st.integers(-1, 99), st.integers(-1, 9**20)
)
#: What can stand before a line on the same line, some of it made to spoil the search for its beginning.
_stray = st.binary(max_size=200).map(lambda data: data.replace(b"\n", b"")) | st.sampled_from(
    [
        b"",
        b"42%",
        b"\xe2\x82",
        b"\xf0",
        b'{"event":"',
        b'{"event":"exit"',
        b'{"event":"exit","x":"',
        b'{"event":"exit","x":{"event":"',
        b'{"a":',
        b"[",
        b'"',
        b'"\\',
        b"[" * 2000,
        b'{"event":"' * 150,
    ]
)
_cut = st.builds(lambda line, at: line[: int(len(line) * at)], _exits | _turns, st.floats(0, 1))
_pieces = st.lists(st.binary(max_size=300) | _exits | _turns | _cut | _stray | st.just(b"\n"), max_size=12).map(
    b"".join
)


def _read(*chunks: bytes) -> tuple[str, list[Progress]]:
    """What is kept of the chunks, and the progress that was told."""
    told: list[Progress] = []
    tail = Tail(LIMITS, told.append)
    for chunk in chunks:
        tail.write(chunk)
        assert len(tail.text()) <= LIMITS.tail_chars
        assert len(tail._line) <= LIMITS.line_chars
    return tail.text(), told


def _bounded(read: Telemetry) -> bool:
    return (
        len(read.message or "") <= 2000
        and (read.turns is None or abs(read.turns) < 2**53)
        and (read.usage is None or 1 <= len(read.usage.models) <= 9)
        and len(read.tokens or {}) <= 12
    )


@given(_pieces)
def test_no_output_raises_or_passes_a_bound(output: bytes) -> None:
    text, _ = _read(output)
    assert _bounded(read_telemetry(text))
    for line in text.split("\n"):
        assert isinstance(parse_line(line), dict | None)


@given(_pieces, st.lists(st.integers(0, 3000), max_size=12))
def test_where_the_output_is_cut_into_pieces_changes_nothing(output: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(output), *(cut for cut in cuts if cut < len(output))})
    whole, told = _read(output)
    text, told_in_pieces = _read(*(output[start:end] for start, end in pairwise(places)))
    assert text == whole
    assert told_in_pieces == told
    assert read_telemetry(text) == read_telemetry(whole)


@given(_pieces, _stray, _exits, st.sampled_from([b"", b"\n", b"\r\n", b"\nlate words", b"\n\n \n"]))
@example(b"", b"[" * 2000, _line("exit", code=0, turns=1), b"")
def test_a_whole_last_word_is_found_behind_whatever_stands_on_its_line(
    before: bytes, stray: bytes, line: bytes, after: bytes
) -> None:
    text, _ = _read(before + b"\n" + stray + line + after)
    assert last_exit(text) == parse_line(line.decode())
    assert last_exit(text) is not None


@given(_stray, _exits, st.floats(0, 1, exclude_max=True), st.floats(0, 1, exclude_max=True))
def test_a_last_word_cut_anywhere_is_nothing_or_the_same(stray: bytes, line: bytes, end: float, start: float) -> None:
    behind, word = stray.decode("utf-8", "replace"), line.decode()
    found = last_exit(behind + word)
    assert found is not None
    assert last_exit(behind + word[: int(len(word) * end)]) is None
    assert last_exit((behind + word)[int(len(behind + word) * start) :]) in (None, found)
    assert last_exit(word[int(len(word) * start) :]) == (found if int(len(word) * start) == 0 else None)

"""The output of a container: bounded memory, progress lines as they come, no byte sequence that breaks it."""

import json

from hypothesis import given
from hypothesis import strategies as st

from pidispatch.box.tail import Tail
from pidispatch.values.limits import Limits
from pidispatch.values.progress import Progress, ProviderRetry, TurnEnded

LIMITS = Limits(tail_chars=1024, line_chars=256)


def line(**fields: object) -> bytes:
    return b"\n" + json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def test_progress_is_told_as_lines_end() -> None:
    told: list[Progress] = []
    tail = Tail(LIMITS, told.append)

    tail.write(line(event="turn", jobId="x", turns=1, tokens=10))
    tail.write(line(event="pi_auto_retry", jobId="x", attempt=1, maxAttempts=2)[:20])
    assert told == [TurnEnded(turns=1, tokens=10)]
    tail.write(line(event="pi_auto_retry", jobId="x", attempt=1, maxAttempts=2)[20:])
    assert told[1:] == [ProviderRetry(attempt=1, max_attempts=2)]


def test_forged_and_malformed_progress_is_left_out() -> None:
    told: list[Progress] = []
    tail = Tail(LIMITS, told.append)

    for fields in ({"turns": "1", "tokens": 2}, {"turns": True, "tokens": 2}, {"turns": -1, "tokens": 2}, {"turns": 1}):
        tail.write(line(event="turn", jobId="x", **fields))
    tail.write(line(event="unknown", turns=1, tokens=1))
    assert told == []


def test_a_line_past_its_bound_is_skipped_and_the_next_one_read() -> None:
    told: list[Progress] = []
    tail = Tail(LIMITS, told.append)

    tail.write(b'{"event":"turn"' + b"x" * 300)
    tail.write(b"y" * 300 + b"\n" + b"z" * 300 + line(event="turn", jobId="x", turns=2, tokens=3))
    assert told == [TurnEnded(turns=2, tokens=3)]


@given(st.lists(st.binary(max_size=400), max_size=12))
def test_any_bytes_in_any_pieces_leave_the_same_tail(chunks: list[bytes]) -> None:
    pieces, whole = Tail(LIMITS, lambda _: None), Tail(LIMITS, lambda _: None)
    for chunk in chunks:
        pieces.write(chunk)
    whole.write(b"".join(chunks))

    assert pieces.text() == whole.text()
    assert len(pieces.text()) <= LIMITS.tail_chars

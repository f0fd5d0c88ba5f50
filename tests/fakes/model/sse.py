"""What the two encoders share: pieces of text, one server-sent event, the facts around an answer."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from .script import Call, Calls, Cut, Length, NoUsage, Say, Slow

#: Steps that stream something; Fault and Hang do not.
Streamed: TypeAlias = Say | Call | Calls | Cut | Slow | Length | NoUsage

#: Characters in one delta. Small, so that every client has to put pieces together.
PIECE = 16


@dataclass(frozen=True)
class Frame:
    """What stands around an answer's content."""

    model: str
    #: Number of the request at this server; makes ids unique.
    serial: int
    #: Unix time in whole seconds.
    created: int


def calls_of(step: Streamed) -> tuple[Call, ...]:
    """The tool calls of a step; empty for text."""
    if isinstance(step, Calls):
        return step.calls
    return (step,) if isinstance(step, Call) else ()


def text_of(step: Streamed) -> str:
    """The text of a step; empty for tool calls."""
    if isinstance(step, Cut):
        return step.after_text
    return "" if isinstance(step, Call | Calls) else step.text


def text_pieces(step: Streamed) -> list[str]:
    """The step's text in pieces: joined they are the text, and none is empty unless Slow asks for it."""
    text = text_of(step)
    if not isinstance(step, Slow):
        return pieces(text, PIECE)
    bounds = [len(text) * i // step.chunks for i in range(step.chunks + 1)]
    return [text[start:end] for start, end in itertools.pairwise(bounds)]


def pieces(text: str, size: int) -> list[str]:
    """``text`` cut every ``size`` characters; nothing for an empty text."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def data_event(data: object, name: str | None = None) -> bytes:
    """One server-sent event: https://html.spec.whatwg.org/multipage/server-sent-events.html."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def arguments_pieces(arguments: Mapping[str, object]) -> list[str]:
    """A tool call's arguments as JSON text, in pieces."""
    return pieces(json.dumps(arguments), PIECE)


def paced(step: Streamed, opening: Iterable[bytes], deltas: Iterable[bytes], closing: Iterable[bytes]) -> list[bytes]:
    """The stream's byte chunks.

    For Slow they are exactly ``step.chunks``: opening and closing travel with the first and last piece, so
    that the server's delay between chunks is a delay between pieces of text.
    """
    if not isinstance(step, Slow):
        return [*opening, *deltas, *closing]
    chunks = list(deltas)
    chunks[0] = b"".join(opening) + chunks[0]
    chunks[-1] += b"".join(closing)
    return chunks

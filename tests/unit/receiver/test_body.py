"""How much of a request is read, for how long, and what of it is JSON."""

import asyncio
import sys
from collections.abc import MutableMapping, Sequence
from typing import Any

import pytest

from pidispatch.receiver.body import MOST_BYTES, Bodies, Unread, parsed


def reading(bodies: Bodies, *parts: bytes | None) -> bytes | Unread:
    """Read a body that comes in these parts and then no further; `None`: the sender goes."""
    coming = list(parts)

    async def receive() -> MutableMapping[str, Any]:
        if not coming:
            await asyncio.Event().wait()
        part = coming.pop(0)
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": part != b"" and bool(coming)}

    return asyncio.run(bodies.read(receive))


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ((b"abc",), b"abc"),
        ((b"a", b"bc"), b"abc"),
        ((b"a", b"b", b""), b"ab"),
        ((b"",), b""),
        ((b"12345", b"12345"), b"1234512345"),
        ((b"12345", b"123456"), Unread.TOO_LARGE),
        ((b"12345678901",), Unread.TOO_LARGE),
        ((b"1", None), Unread.GONE),
    ],
)
def test_a_body_is_read_up_to_its_bound(parts: Sequence[bytes | None], found: object) -> None:
    assert reading(Bodies(most=10), *parts) == found


def test_a_message_without_more_ends_a_body() -> None:
    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request"}

    assert asyncio.run(Bodies().read(receive)) == b""


def test_a_slow_body_is_given_up() -> None:
    async def receive() -> MutableMapping[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    assert asyncio.run(Bodies(within_s=0.01).read(receive)) is Unread.SLOW


def test_a_body_that_drips_is_given_up_too() -> None:
    async def receive() -> MutableMapping[str, Any]:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"", "more_body": True}

    assert asyncio.run(Bodies(within_s=0.05).read(receive)) is Unread.SLOW


def test_what_all_bodies_take_together_is_bounded() -> None:
    bodies = Bodies(most=10, together=12)

    async def both() -> list[bytes | Unread]:
        gate = asyncio.Event()

        async def first() -> MutableMapping[str, Any]:
            if gate.is_set():
                return {"type": "http.request", "body": b"", "more_body": False}
            gate.set()
            return {"type": "http.request", "body": b"1234567", "more_body": True}

        async def second() -> MutableMapping[str, Any]:
            await gate.wait()
            return {"type": "http.request", "body": b"123456", "more_body": False}

        async def held() -> bytes | Unread:
            async def slow() -> MutableMapping[str, Any]:
                message = await first()
                if not message["more_body"]:
                    await done.wait()
                return message

            return await bodies.read(slow)

        done = asyncio.Event()
        waiting = asyncio.create_task(held())
        refused = await bodies.read(second)
        done.set()
        return [refused, await waiting, await bodies.read(second)]

    assert asyncio.run(both()) == [Unread.BUSY, b"1234567", b"123456"]


@pytest.mark.parametrize(
    ("said", "beyond"),
    [
        (None, False),
        ("", False),
        ("x", False),
        ("-1", False),
        (str(MOST_BYTES), False),
        (str(MOST_BYTES + 1), True),
        ("9" * 5000, True),
    ],
)
def test_what_a_request_says_of_its_size(said: str | None, beyond: bool) -> None:
    assert MOST_BYTES == 2_097_152
    headers = {} if said is None else {"content-length": said}
    assert Bodies().too_large(headers) is beyond


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"{} {}",
        b"\xff",
        b"\xef\xbb\xbf{}",
        b"NaN",
        b"[Infinity]",
        b"[-Infinity]",
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b"1" * (sys.get_int_max_str_digits() + 1),
        "{}".encode("utf-16"),
    ],
    ids=lambda body: repr(body[:12]),
)
def test_what_is_no_json(body: bytes) -> None:
    with pytest.raises(ValueError):
        parsed(body)


def test_what_is_json() -> None:
    assert parsed(b' {"a": [1, "\\ud800", null]} ') == {"a": [1, "\ud800", None]}

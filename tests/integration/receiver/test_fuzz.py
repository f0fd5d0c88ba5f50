"""Ten thousand requests a route that nobody meant well, to a real receiver: it answers each, and does not grow."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pidispatch.values.forge import FORGES
from tests.fakes.github.payloads import SECRET, encode, headers, issues
from tests.payloads import payloads
from tests.support.rawhttp import RawHttp
from tests.support.receiver import ReceiverProgram, label

Run = Callable[..., ReceiverProgram]
#: Requests of one example, and how many examples a route has.
TOGETHER, EXAMPLES = 100, 100
#: What may be answered. Only a 503 is the surroundings' fault, and none is provoked here.
ANSWERS: Final = {202, 204, 400, 401, 404, 405, 408, 413, 415}
#: Bytes by which the program may grow after a warm-up of a fifth of all requests.
GROWTH_BYTES: Final = 12 * 1024 * 1024
_EVENTS: Final = ("issues", "issue_comment", "pull_request", "pull_request_review", "ping", "push", "", "x" * 300)
_NUMBERS: Final = (True, -1, 0, 2**70, 1.5)
_TEXTS: Final = ("", "\ud800", "../..", "a/b/c", "\0")
_VALUES: Final[tuple[Any, ...]] = (None, *_NUMBERS, *_TEXTS, [], {}, [[]], {"a": {"b": 1}})
_TYPES: Final = ("application/json", "application/json; charset=utf-8", "text/plain", "", "application/JSON", "a/b/c;;")
_METHODS: Final = ("GET", "PUT", "HEAD", "OPTIONS", "DELETE", "PATCH", "post")


@pytest.mark.parametrize("route", [row.route for row in FORGES.values()])
def test_nothing_that_is_sent_breaks_it(program: Run, route: str) -> None:
    receiver = program(label("pi:fix"), label(kind="gitlab"))
    run = receiver.start()
    sizes: list[int] = []
    seen: Counter[int | None] = Counter()
    with RawHttp(receiver.port) as wire:

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.integers(0, 2**64 - 1))
        def sent(seed: int) -> None:
            for request in requests(random.Random(seed), route):
                answer = wire.ask(request)
                seen[answer[0] if answer else None] += 1
                assert answer is None or answer[0] in ANSWERS, (answer, request[:2000])
            sizes.append(_resident(run.process.pid))

        sent()
        # It still does what it is there for.
        body = encode(issues(number=10**6))
        answer = wire.ask(whole("POST", "/", {**headers("issues", body, "after-all")}, body))
    assert answer == (202, b'{"status":"queued"}')
    assert sum(seen.values()) >= TOGETHER * EXAMPLES
    if route == "/":
        # What was meant to get through did.
        assert all(seen[status] for status in (202, 204, 400, 401))
    assert run.events("verify_handler_error") == run.events("lane_broke") == []
    assert max(sizes) - sizes[len(sizes) // 5] < GROWTH_BYTES, sizes


def requests(chance: random.Random, route: str) -> Iterator[bytes]:
    """Requests that begin as right ones and are bent."""
    for _ in range(TOGETHER):
        body = _body(chance)
        event = chance.choice(_EVENTS)
        sent: dict[str, str] = {**headers(event, body, f"{chance.getrandbits(64):x}")}
        for name in list(sent):
            bent = chance.random()
            if bent < 0.04:
                del sent[name]
            elif bent < 0.08:
                sent[name] = _word(chance)
        if chance.random() < 0.1:
            sent["Content-Type"] = chance.choice(_TYPES)
        if chance.random() < 0.1:
            sent["X-Hub-Signature-256"] = chance.choice(("sha256=", "sha1=00", "sha256=" + "0" * 64, SECRET))
        method = "POST" if chance.random() < 0.9 else chance.choice(_METHODS)
        path = route if chance.random() < 0.9 else route + chance.choice(("?a=b", "/", "//", "/%00", "/x", "#"))
        yield whole(method, path, sent, body, chance)


def whole(method: str, path: str, sent: dict[str, str], body: bytes, chance: random.Random | None = None) -> bytes:
    """A request as it goes over the wire; with `chance` now and then not even HTTP, or in chunks."""
    drawn = chance.random() if chance is not None else 1.0
    if chance is not None and drawn < 0.01:
        return chance.randbytes(chance.randrange(1, 400)) + b"\r\n\r\n"
    lengths = {"Content-Length": str(len(body))}
    if drawn < 0.05:
        lengths = {"Transfer-Encoding": "chunked"}
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    elif drawn < 0.07:
        lengths = {"Content-Length": "2097153"}
        body = b""
    lines = "".join(f"{name}: {value}\r\n" for name, value in ({"Host": "receiver"} | lengths | sent).items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("utf-8", "replace") + body


_SEEDS: Final[list[Any]] = []


def _body(chance: random.Random) -> bytes:
    """A body: one of a forge's own, one of those with something in it changed, or no JSON at all."""
    if not _SEEDS:
        _SEEDS.extend(json.loads(body) for _, body in list(payloads())[::25])
    drawn = chance.random()
    if drawn < 0.1:
        return chance.randbytes(chance.randrange(300))
    if drawn < 0.15:
        return b"[" * chance.randrange(1, 50_000)
    document = issues(number=chance.randrange(1, 10**6)) if drawn < 0.7 else chance.choice(_SEEDS)
    if drawn > 0.3:
        document = _bent(chance, document)
    return json.dumps(document).encode()


def _bent(chance: random.Random, value: Any) -> Any:
    """The same with one thing in it changed, or left out."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        name = chance.choice(list(value))
        if chance.random() < 0.1:
            return {other: inner for other, inner in value.items() if other != name}
        return {**value, name: _bent(chance, value[name])}
    if isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        return [*value[:at], _bent(chance, value[at]), *value[at + 1 :]]
    return chance.choice(_VALUES)


def _word(chance: random.Random) -> str:
    return "".join(chance.choice("ab0=/;, .\t\x7f\xe9") for _ in range(chance.randrange(20)))


def _resident(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * 4096

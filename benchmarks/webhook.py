"""What the receiver takes: signed webhooks of 10 kB, each to a job in the store, beside a bare application.

And how long `pi-dispatch explain-event` takes to say what would become of one.
"""

import itertools
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import median

from benchmarks.deployment import PREFIX, Deployment, deployment
from benchmarks.load import send
from benchmarks.measure import Figure, Quantity, figure
from tests.fakes.github.payloads import headers, issues
from tests.fakes.github.server import GitHubServer
from tests.support.program import PROGRAM
from tests.support.server import until

ROUNDS, REQUESTS = 7, 1_000
#: Seconds at half of the rate.
PACED_S = 5
LEAST_RATIO = 0.8
P99_BOUND_MS = 25
EXPLAIN_RUNS, EXPLAIN_BOUND_MS = 30, 400
_BODY_BYTES = 10_000
_SECRET = "bench-secret"
_TAKE_S = 30.0
_RULE = {"on": {"type": "label", "any": ["pi:fix"]}, "run": {"kind": "github", "flow": "fix"}}
_NUMBERS = itertools.count(1)


def webhooks() -> Iterator[Figure | Quantity]:
    """Accepted webhooks a second, and how long one takes at half of that."""
    with GitHubServer() as github, deployment(1) as place:
        port = _receiver(place, github)
        bare_port = free_port()
        place.start("bare_receiver", sys.executable, "-m", "benchmarks.bare_receiver", str(bare_port), _SECRET)
        until(lambda: _listens(bare_port), "the bare application", _TAKE_S)
        ours, bare = [], []
        for number in range(ROUNDS + 1):
            rates = [_rate(bare_port), _rate(port)]
            # What stands in the queues is of no use to the next round.
            _taken(place, REQUESTS)
            if number:
                bare.append(rates[0])
                ours.append(rates[1])
        rate = median(ours) / 2
        _, took = send(port, _requests(int(rate * PACED_S)), rate)
        explained = [_explained(place) for _ in range(EXPLAIN_RUNS)]
    what = "signed webhooks of 10 kB, each to a job in the store and its ticket, beside an application that checks "
    what += "the signature and publishes a task"
    yield Quantity("webhooks", what, "1/s", ROUNDS, median(ours), baseline=median(bare), least_ratio=LEAST_RATIO)
    # The bound is on the slowest of a hundred.
    at_half = figure("webhook at half load", "from when it is due to the answer", took, None, None)
    yield Quantity(
        "webhook at half load, p99", "slowest of a hundred", "ms", len(took), at_half.p99_ms, bound=P99_BOUND_MS
    )
    yield at_half
    yield figure("pi-dispatch explain-event", "process start to exit", explained, None, EXPLAIN_BOUND_MS)


def _receiver(place: Deployment, github: GitHubServer) -> int:
    """A receiver of the product's; its port."""
    port = free_port()
    triggers = place.settings.state_dir.parent / "triggers.json"
    triggers.write_text(json.dumps({"triggers": [_RULE]}))
    place.start(
        "receiver",
        PROGRAM,
        "receiver",
        more={
            "PI_TRIGGERS_FILE": str(triggers),
            "WEBHOOK_SECRET": _SECRET,
            "RECEIVER_BIND": "127.0.0.1",
            "RECEIVER_PORT": str(port),
            "GITHUB_AUTH_SOURCE": "pat",
            "GITHUB_PAT": next(iter(github.tokens)),
            "GITHUB_API_URL": github.url,
        },
    )
    until(lambda: _listens(port), "the receiver", _TAKE_S)
    return port


def _explained(place: Deployment) -> float:
    payload = place.settings.state_dir.parent / "payload.json"
    payload.write_text(json.dumps(issues()))
    command = [PROGRAM, "explain-event", "--event", "issues", str(payload)]
    began = time.perf_counter()
    environ = place.environment | {"PI_TRIGGERS_FILE": str(payload.with_name("triggers.json"))}
    subprocess.run(command, check=True, capture_output=True, env=environ)
    return time.perf_counter() - began


def _rate(port: int) -> float:
    elapsed, _ = send(port, _requests(REQUESTS))
    return REQUESTS / elapsed


def _requests(count: int) -> list[bytes]:
    """Deliveries, each about another issue, whole as they go over the wire."""
    return [_request(next(_NUMBERS)) for _ in range(count)]


def _request(number: int) -> bytes:
    payload = issues(number=number)
    payload["issue"]["body"] = ""
    payload["issue"]["body"] = "x" * (_BODY_BYTES - len(json.dumps(payload)))
    body = json.dumps(payload).encode()
    head = {"Host": "127.0.0.1", "Content-Length": str(len(body))} | headers("issues", body, f"bench-{number}", _SECRET)
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    return f"POST / HTTP/1.1\r\n{lines}\r\n".encode() + body


def _taken(place: Deployment, count: int) -> None:
    """Wait until the round's jobs have their rows and their tickets, then take both out of the way."""
    queued, tickets = f"{PREFIX}jobs:queued:pi-jobs", f"{PREFIX}pi-jobs"
    until(lambda: place.client.llen(tickets) >= count, "the tickets of a round", _TAKE_S)
    if (rows := place.client.zcard(queued)) != count or place.client.llen(tickets) != count:
        raise RuntimeError(f"{count} webhooks made {rows} jobs and {place.client.llen(tickets)} tickets")
    place.client.delete(queued, tickets, "celery")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0

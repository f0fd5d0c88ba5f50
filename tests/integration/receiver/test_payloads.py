"""Payloads that nobody here wrote, signed and sent to a real receiver: each comes to what the file of verdicts says."""

import json
from collections import Counter
from collections.abc import Callable

from tests.fakes.github.payloads import headers
from tests.fakes.github.server import GitHubServer
from tests.payloads import TRIGGERS, payloads
from tests.payloads.verdicts import lines
from tests.support.rawhttp import RawHttp
from tests.support.receiver import ReceiverProgram

Run = Callable[..., ReceiverProgram]
#: Whether GitHub says that who closed it may.
_MAY, _MAY_NOT = "asked; yes: ", "; no: "


def test_every_payload_over_the_wire_is_answered_as_the_file_of_verdicts_says(
    program: Run, github: GitHubServer
) -> None:
    github.tokens["pat-secret"] = 1
    receiver = program(*json.loads(TRIGGERS.read_text())["triggers"])
    run = receiver.start()
    verdicts = [line.partition(" -> ")[2] for line in lines() if not line.startswith("#")]
    statuses: Counter[int] = Counter()
    with RawHttp(receiver.port) as wire:
        for number, ((event, body), verdict) in enumerate(zip(payloads(), verdicts, strict=True)):
            answer = wire.ask(_request(event, body, f"golden-{number}"))
            assert answer is not None, (event, number)
            # Nobody is a collaborator of these repositories, as this GitHub has it.
            told = verdict.partition(_MAY_NOT)[2] if verdict.startswith(_MAY) else verdict
            assert answer[0] == (202 if told.startswith("rule ") else 204), (event, number, verdict, answer)
            statuses[answer[0]] += 1
    dropped = {one["delivery"]: one["reason"] for one in run.events("dropped")}
    for number, verdict in enumerate(verdicts):
        told = verdict.partition(_MAY_NOT)[2] if verdict.startswith(_MAY) else verdict
        assert dropped.get(f"golden-{number}", told) == told
    assert run.events("verify_handler_error") == []
    assert min(statuses[202], statuses[204]) > 0
    print(f"{statuses[202]} accepted, {statuses[204]} dropped")


def _request(event: str, body: bytes, delivery: str) -> bytes:
    sent = {"Host": "receiver", "Content-Length": str(len(body)), **headers(event, body, delivery)}
    return (
        b"POST / HTTP/1.1\r\n"
        + "".join(f"{name}: {value}\r\n" for name, value in sent.items()).encode()
        + b"\r\n"
        + body
    )

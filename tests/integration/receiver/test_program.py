"""The program as a user starts it: what it hears, what it outlives, and how it ends."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import click
import pytest

from pidispatch.cli.receiver import main, receiver
from pidispatch.forges.protocol import Account, ForgeModule
from pidispatch.jobs.store import JobStore
from pidispatch.receiver.boot import run_receiver
from pidispatch.triggers.file import parse_triggers
from pidispatch.triggers.rules import Rules
from pidispatch.values.forge import JobKind
from pidispatch.values.limits import Limits
from tests.fakes.github import payloads
from tests.fakes.github.server import Fault, GitHubServer
from tests.support.program import PROGRAM as DISPATCH
from tests.support.receiver import (
    GUID,
    PROGRAM,
    QUEUE,
    Between,
    OtherForge,
    ReceiverProgram,
    guid,
    job_ids,
    label,
)
from tests.support.server import OwnServer, end_embedded, free_port, until

Run = Callable[..., ReceiverProgram]
QUEUED = (202, {"status": "queued"})
ONESHOT = {
    "on": {"type": "issue", "action": ["closed"], "number": 40, "once": True},
    "run": {"kind": "github", "flow": "deploy"},
}


@pytest.fixture
def store(server: OwnServer) -> Iterator[JobStore]:
    """What the program's store holds."""
    with server.client() as client:
        yield JobStore(client, "pi:", Limits())


def tickets(server: OwnServer) -> list[str]:
    """Ids in the tickets of the queue's list."""
    with server.client() as client:
        found: Any = client.lrange(f"pi:{QUEUE}", 0, -1)
    return sorted(json.loads(one)["headers"]["id"] for one in found)


def jobs(server: OwnServer) -> list[str]:
    """Ids of all jobs."""
    with server.client() as client:
        return job_ids(client)


def test_from_its_start_to_its_end(program: Run, server: OwnServer, store: JobStore, github: GitHubServer) -> None:
    deployment = program(label(), label(kind="forgejo"))
    health = free_port()
    run = deployment.start("serve", RECEIVER_HEALTH_BIND=f"127.0.0.1:{health}")
    [started] = run.events("receiver_started")
    assert (started["forges"], started["rules"], started["port"]) == (["github"], 2, deployment.port)
    assert [(one["forge"], one["id"]) for one in run.events("self_identity")] == [("github", 9001)]
    assert [(one["forge"], one["rules"]) for one in run.events("forge_not_served")] == [("forgejo", 1)]
    assert [one.forge for one in store.sources()] == [JobKind.GITHUB]
    assert deployment.post(payloads.LABELED).told == QUEUED
    assert jobs(server) == [f"gh-{GUID}"]
    until(lambda: tickets(server) == [f"gh-{GUID}"], "the ticket")
    assert deployment.ask("GET", "/", {}).status == 405
    assert deployment.ask("GET", "/readyz", {}, port=health).told == (200, {"store": True, "rules": True})
    metrics = deployment.ask("GET", "/metrics", {}, port=health).body.decode()
    assert 'event="issues",forge="github",reason="",verdict="queued"} 1.0' in metrics
    assert run.stop() == 0
    assert [one["signal"] for one in run.events("receiver_stopping")] == ["SIGTERM"]
    whole = run.log
    assert all(line.startswith("{") for line in whole.splitlines())
    for secret in ("test-secret", "pat-secret", "footer", "alice"):
        assert secret not in whole
    assert github.paths() == ["GET /user"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_what_has_begun_is_finished_and_nothing_new_is_heard(
    program: Run, server: OwnServer, how: signal.Signals
) -> None:
    deployment = program(label())
    run = deployment.start()
    body = payloads.LABELED
    connection = http.client.HTTPConnection("127.0.0.1", deployment.port, timeout=30)
    connection.putrequest("POST", "/")
    for name, value in (payloads.headers("issues", body, GUID) | {"Content-Length": str(len(body))}).items():
        connection.putheader(name, value)
    connection.endheaders(body[:100])
    # Once this is answered, the other request has been heard too.
    assert deployment.ask("GET", "/", {}).status == 405
    run.process.send_signal(how)
    until(lambda: refuses(deployment.port), "no connection to be taken any more")
    assert run.process.poll() is None
    connection.send(body[100:])
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("connection")) == (202, "close")
    connection.close()
    assert run.process.wait(30) == 0
    assert jobs(server) == tickets(server) == [f"gh-{GUID}"]


def refuses(port: int) -> bool:
    """Whether nobody listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.example("ch1 E14", "A broken edit keeps what was good in force; the next good one is taken over.")
def test_e14_a_live_edit(program: Run, store: JobStore) -> None:
    deployment = program(label())
    health = free_port()
    run = deployment.start(RECEIVER_HEALTH_BIND=f"127.0.0.1:{health}")
    until(lambda: run.events("triggers_watching"), "the watch")
    deployment.file.write_text("{")
    until(lambda: run.events("triggers_reload_invalid"), "the edit to be seen")
    assert deployment.post(payloads.LABELED).told == QUEUED
    assert deployment.ask("GET", "/readyz", {}, port=health).told == (200, {"store": True, "rules": False})
    # Also for one who looks where no worker has the file.
    until(lambda: [one.faulty for one in store.sources()] == [True], "the fault to be told")
    deployment.write([label("pi:docs", flow="document"), label(kind="azure", repository="widgets")])
    until(lambda: run.events("triggers_reloaded"), "the edit to be taken over")
    until(lambda: [one.faulty for one in store.sources()] == [False], "its end to be told")
    assert deployment.post(payloads.LABELED, delivery=guid("2")).status == 204
    assert deployment.post(payloads.issues(labels=["pi:docs"]), delivery=guid("3")).told == QUEUED
    assert deployment.ask("GET", "/readyz", {}, port=health).status == 200
    assert [one["forge"] for one in run.events("forge_not_served")] == ["azure"]


@pytest.mark.example("ch1 E14 route", "A live edit opens no route: what is served is decided at the start.")
def test_e14_a_first_rule_for_github_waits_for_a_restart(program: Run) -> None:
    deployment = program(label(kind="gitlab"))
    run = deployment.start(GITHUB_AUTH_SOURCE=None, WEBHOOK_SECRET=None)
    assert run.events("github_arm_skipped")
    until(lambda: run.events("triggers_watching"), "the watch")
    deployment.write([label()])
    until(lambda: run.events("triggers_reloaded"), "the edit to be taken over")
    assert deployment.post(payloads.LABELED).told == (404, {"error": "github webhooks not configured"})
    assert [one["forge"] for one in run.events("forge_not_served")] == ["gitlab", "github"]


@pytest.mark.example("ch8 F1 receivers", "Two receivers that hear of one issue at once start one run, and say which.")
def test_f1_two_receivers(program: Run, server: OwnServer, store: JobStore) -> None:
    both = [program(label()), program(label())]
    for one in both:
        one.start()
    barrier = threading.Barrier(2)

    def send(at: int) -> Any:
        barrier.wait(10)
        return both[at].post(payloads.issues(number=36), delivery=guid(str(at + 1))).told

    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(send, range(2)))
    [survivor] = jobs(server)
    first = answers.index(QUEUED)
    assert survivor == f"gh-{guid(str(first + 1))}"
    assert answers[1 - first] == (202, {"status": "coalesced", "job": survivor})
    told = store.deliveries(JobKind.GITHUB, 10)
    assert sorted((one.verdict, one.job_id) for one in told) == [("coalesced", survivor), ("queued", survivor)]
    assert all(one.delivery.target == "acme/web#36" for one in told)


def test_two_racing_deliveries_of_one_close_are_one_job(program: Run, server: OwnServer, github: GitHubServer) -> None:
    github.permissions[("acme/web", "bob")] = "write"
    deployment = program(ONESHOT)
    deployment.start()
    barrier = threading.Barrier(2)

    def send(digit: str) -> int:
        barrier.wait(10)
        return deployment.post(payloads.closed(), delivery=guid(digit)).status

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(send, "12")) == [202, 202]
    assert len(jobs(server)) == 1


def test_with_a_file_that_nobody_can_mark_the_stores_mark_holds(
    program: Run, server: OwnServer, github: GitHubServer
) -> None:
    github.permissions[("acme/web", "bob")] = "write"
    deployment = program(ONESHOT)
    deployment.write([ONESHOT])
    deployment.file.chmod(0o444)
    run = deployment.start()
    [rule] = Rules(parse_triggers(deployment.file.read_text(), deployment.file)).all
    with server.client() as client:
        client.set(f"pi:oneshot:{rule.oneshot}", '{"at":1,"jobId":"gh-0"}')
    assert deployment.post(payloads.closed()).status == 204
    assert [one["reason"] for one in run.events("dropped")] == ["no-matching-close-trigger"]
    assert jobs(server) == []


def test_killed_between_the_store_and_the_answer(program: Run, server: OwnServer) -> None:
    """What the store had taken is one job, and the delivery that comes again announces it."""
    between = Between(server)
    try:
        deployment = program(label(), url=between.url)
        run = deployment.start()
        between.hold(GUID.encode())
        with ThreadPoolExecutor(1) as threads:
            answer = threads.submit(deployment.post, payloads.LABELED)
            assert between.held.wait(20)
            run.kill()
            with pytest.raises((ConnectionError, http.client.HTTPException)):
                answer.result(20)
    finally:
        between.close()
    assert jobs(server) == [f"gh-{GUID}"]
    assert tickets(server) == []
    again = program(label())
    again.start()
    assert again.post(payloads.LABELED).told == QUEUED
    assert jobs(server) == [f"gh-{GUID}"]
    until(lambda: tickets(server) == [f"gh-{GUID}"], "its ticket")


def test_a_server_that_goes_and_comes_back(program: Run, server: OwnServer) -> None:
    deployment = program(label())
    health = free_port()
    run = deployment.start(RECEIVER_HEALTH_BIND=f"127.0.0.1:{health}")
    assert deployment.post(payloads.LABELED).told == QUEUED
    server.stop()
    try:
        ready = deployment.ask("GET", "/readyz", {}, port=health)
        assert ready.told == (503, {"store": False, "rules": True})
        assert deployment.post(payloads.issues(number=8), delivery=guid("2")).told == (503, {"error": "enqueue-failed"})
    finally:
        server.start()
    assert jobs(server) == [f"gh-{GUID}"]
    with server.client() as client:
        assert client.exists("pi:dedup:acme/web#8:fix") == 0
    assert deployment.post(payloads.issues(number=8), delivery=guid("2")).told == QUEUED
    assert jobs(server) == [f"gh-{GUID}", f"gh-{guid('2')}"]
    assert run.process.poll() is None
    until(lambda: len(tickets(server)) == 2, "both tickets")


def test_without_a_named_server_it_has_its_own(program: Run, server: OwnServer) -> None:
    with tempfile.TemporaryDirectory(prefix="pi-s-", dir="/tmp") as state:
        try:
            deployment = program(label())
            run = deployment.start(VALKEY_URL=None, PI_STATE_DIR=state)
            assert deployment.post(payloads.LABELED).told == QUEUED
            assert run.events("receiver_started")[0]["valkey"].startswith("unix://")
            assert run.stop() == 0
        finally:
            end_embedded(Path(state))
    assert jobs(server) == []


def test_a_large_body_is_refused_before_it_is_sent(program: Run) -> None:
    deployment = program(label())
    deployment.start()
    with socket.create_connection(("127.0.0.1", deployment.port), timeout=30) as connection:
        sent = {**payloads.headers("issues", b"", GUID), "Content-Length": str(10_000_000), "Host": "x"}
        head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        connection.sendall(f"POST / HTTP/1.1\r\n{head}\r\n".encode())
        answer = b""
        while part := connection.recv(1000):
            answer += part
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'{"error":"payload too large"}' in answer


def test_told_to_stop_while_it_waits_for_the_forge(program: Run, github: GitHubServer) -> None:
    github.faults["/user"] = Fault.SERVER_ERROR
    run = program(label()).launch()
    until(lambda: run.events("self_identity_retry"), "a first try")
    assert run.stop() == 0
    assert [one["signal"] for one in run.events("receiver_stopping")] == ["start"]
    assert run.events("receiver_started") == []


REFUSED: list[tuple[dict[str, str | None], int, str]] = [
    ({"WEBHOOK_SECRET": None}, 2, "WEBHOOK_SECRET is not set"),
    ({"RECEIVER_PORT": "03000", "RECEIVER_BIND": "-x"}, 2, "RECEIVER_BIND='-x' must not begin with a dash"),
    ({"GITHUB_AUTH_SOURCE": "token"}, 2, "GITHUB_AUTH_SOURCE"),
    ({"GITHUB_PAT": None}, 2, "GITHUB_PAT is not set or blank"),
    ({"PI_TRIGGERS_FILE": "/nowhere/triggers.json"}, 2, "/nowhere/triggers.json: cannot be read: No such file"),
    ({"PI_TRIGGERS_FILE": None}, 2, "triggers.json: cannot be read: No such file"),
    ({"VALKEY_URL": "redis://127.0.0.1:1/0"}, 1, "redis://127.0.0.1:1/0 does not answer"),
    ({"VALKEY_URL": "http://127.0.0.1:1/0"}, 2, "VALKEY_URL"),
    ({"RECEIVER_HEALTH_BIND": "3001"}, 2, "must be an address and a port"),
]


@pytest.mark.parametrize(("changes", "code", "reason"), REFUSED, ids=[row[2][:30] for row in REFUSED])
def test_what_keeps_it_from_starting(program: Run, changes: dict[str, str | None], code: int, reason: str) -> None:
    found, told = program(label()).refused(**changes)
    assert found == code
    assert reason in told


def test_a_credential_that_github_refuses(program: Run, github: GitHubServer) -> None:
    github.faults["/user"] = Fault.BAD_CREDENTIALS
    code, reason = program(label()).refused()
    assert code == 2
    assert "GITHUB_PAT" in reason
    assert "pat-secret" not in reason


def test_a_broken_triggers_file_is_told_before_anything_is_asked(program: Run, github: GitHubServer) -> None:
    deployment = program()
    deployment.file.write_text('{"triggers": [{"on": {"type": "label"}, "run": {"kind": "github", "flow": "fix"}}]}')
    code, reason = deployment.refused()
    assert code == 2
    assert "trigger at index 0" in reason
    assert github.asked == []


def test_a_port_that_is_taken(program: Run) -> None:
    deployment = program(label())
    with socket.create_server(("127.0.0.1", deployment.port)):
        code, reason = deployment.refused()
    assert code == 1
    assert f"cannot listen on 127.0.0.1 port {deployment.port}" in reason
    assert "RECEIVER_PORT" in reason


def test_the_verb_is_the_program(program: Run) -> None:
    deployment = program(label())
    deployment.command = (DISPATCH,)
    run = deployment.launch("receiver")
    until(lambda: run.events("receiver_started"), "the receiver")
    assert run.stop() == 0


@pytest.mark.parametrize("words", [["look"], ["poll", "--port"], ["serve", "--port"], ["--nothing"]])
def test_a_wrong_word_is_a_wrong_call(words: list[str]) -> None:
    ended = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "Usage: pi-dispatch-receiver" in ended.stderr


def test_help_loads_nothing_that_it_does_not_need() -> None:
    script = (
        "import sys; from pidispatch.cli.receiver import receiver; receiver.main(['--help'], standalone_mode=False);"
        "print([one for one in ('celery', 'uvicorn', 'github', 'redis') if one in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"


def test_being_told_to_stop_early_is_no_fault_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(receiver.commands, "told", click.Command("told", callback=told))
    monkeypatch.setattr(sys, "argv", ["pi-dispatch-receiver", "told"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1


class Mistaken(OtherForge):
    """One whose account cannot be made, because of a mistake of ours."""

    def account(self, settings: Any, environ: Any, programs: Any) -> Account:
        """It breaks."""
        raise KeyError("something private")


def test_a_mistake_of_ours_ends_a_start_in_one_line(
    program: Run, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    deployment = program(label(kind="gitlab"))
    deployment.write(deployment.triggers)
    for name in list(os.environ):
        if name.startswith("PI_"):
            monkeypatch.delenv(name)
    for name, value in deployment.environment().items():
        monkeypatch.setenv(name, value)
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert run_receiver(modules={JobKind.GITLAB: cast(ForgeModule, Mistaken())}) == 1
    finally:
        signal.signal(signal.SIGTERM, before)
    [line] = capfd.readouterr().err.splitlines()
    told = json.loads(line)
    assert told["event"] == "receiver_start_failed"
    assert "KeyError at test_program.py" in told["reason"]
    assert "private" not in line

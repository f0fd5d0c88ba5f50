"""`status` on a real server, with the worker's part played by hand, and what it says of one that is away."""

import json
import re
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from pidispatch.cli.at_queue import at_queue
from pidispatch.cli.main import _run
from pidispatch.cli.status import SHOWN, look
from pidispatch.jobs.delivered import Delivery
from pidispatch.jobs.rows import Deferred
from pidispatch.values.forge import JobKind
from tests.integration.cli.bench import Bench
from tests.support.documented import documented, keys
from tests.support.oneshots import write
from tests.support.program import RUN_S
from tests.support.round_trips import round_trips
from tests.support.server import free_port
from tests.unit.triggers.entries import rule

#: An unreachable server is an error within so many seconds.
SECONDS = 3.0


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run needs is broken."""
    monkeypatch.setenv("PI_MAX_TURNS", "many")
    monkeypatch.setenv("PI_LOGS_DIR", "relative")


def pause_trigger(bench: Bench, name: str) -> None:
    """A trigger is paused, as the scripts of the store note it."""
    why = {"at": 1_767_355_200_000, "runs": 5, "jobId": "local-idle", "reason": "", "label": "local site tidy"}
    with closing(bench.server.client()) as client:
        client.set(f"pi:trigger:paused:{name}", json.dumps(why))
        client.sadd("pi:triggers:paused", name)


@pytest.fixture
def busy(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A queue with a job in every place, and a worker."""
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    for name in ("waits", "runs", "sleeps"):
        bench.submit(f"local-{name}")
    bench.store.spend(bench.take("local-runs"))
    bench.store.progress("local-runs", 3, 12345)
    assert isinstance(bench.store.defer(bench.take("local-sleeps"), 60_000, "scope-busy"), Deferred)
    queues = "pi-jobs,pi-jobs@build-1"
    bench.store.hear([JobKind.GITHUB])
    bench.store.log_delivery(JobKind.GITHUB, Delivery(id="1", event="watch", reason="unhandled-event"), "dropped")
    pause_trigger(bench, "nightly")
    bench.store.beat("build-1", {"queues": queues, "slots": 3, "running": 1, "heardS": 7, "engine": "e"})
    return bench


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What `--json` prints."""
    assert _run(["status", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_all_that_it_says_as_json(busy: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys)
    assert told["pausedState"] == "running"
    counts = {name: told[name] for name in ("waiting", "active", "paused", "delayed", "failed", "unrecorded")}
    assert counts == {"waiting": 1, "active": 1, "paused": 0, "delayed": 1, "failed": 0, "unrecorded": 0}
    assert told["slots"] == {"taken": 1, "all": 3}
    assert told["oldestWaiting"]["jobId"] == "local-waits"
    [running] = told["running"]
    assert (running["jobId"], running["label"], running["spending"]) == ("local-runs", "local site -", True)
    assert (running["turns"], running["tokens"]) == (3, 12345)
    [held] = told["held"]
    assert (held["jobId"], held["why"]) == ("local-sleeps", "scope-busy")
    assert held["until"] > told["at"]
    [queue] = told["queues"]
    assert queue == {"name": "pi-jobs", "waiting": 1, "pausedSince": None, "workers": ["build-1"]}
    [worker] = told["workers"]
    assert (worker["name"], worker["tickAgeS"] >= 7, worker["slots"], worker["running"]) == ("build-1", True, 3, 1)
    assert told["server"]["durable"] is True
    assert "private" not in json.dumps(told)
    assert busy.folder not in json.dumps(told)


def test_every_key_of_the_json_is_documented_and_no_other(
    busy: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PI_TRIGGERS_FILE", str(write(tmp_path / "triggers.json", rule("gitlab"))))
    assert busy.store.sources()
    assert keys(document(capsys)) == documented("how-to/status.md", "### As JSON")


def test_a_person_sees_the_same(busy: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["status"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^server +" + re.escape(busy.server.url) + r": valkey \d", out, re.MULTILINE)
    assert re.search(r"^queues +open$", out, re.MULTILINE)
    assert re.search(r"^jobs +1 running, 1 waiting, 1 held$", out, re.MULTILINE)
    assert re.search(r"^slots +1 of 3 taken$", out, re.MULTILINE)
    assert re.search(r"^oldest +local-waits \(local site -\), handed in \d+ s ago$", out, re.MULTILINE)
    assert re.search(r"^pi-jobs +1 +open +build-1 *$", out, re.MULTILINE)
    assert re.search(r"^build-1 +1/3 +[78] s ago +[01] s ago +pi-jobs, pi-jobs@build-1 *$", out, re.MULTILINE)
    assert re.search(r"^local-runs +build-1 +1/2 +\d+ s +3 +12,345 +local site - *$", out, re.MULTILINE)
    assert re.search(
        r"^local-sleeps +scope-busy +1/2 +\S+ \S+Z \(in \d+ s\) +pi-jobs +local site - *$", out, re.MULTILINE
    )
    assert "private" not in out


def test_what_keeps_jobs_from_coming_in_is_told(
    busy: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = document(capsys)
    [source] = told["sources"]
    assert (source["forge"], source["silent"], source["last"] is not None) == ("github", False, True)
    assert [(one["trigger"], one["runs"]) for one in told["pausedTriggers"]] == [("nightly", 5)]
    assert told["unservedRules"] == []
    monkeypatch.setenv("PI_TRIGGERS_FILE", str(write(tmp_path / "triggers.json", rule(), rule("gitlab"))))
    assert document(capsys)["unservedRules"] == [{"forge": "gitlab", "indexes": [1]}]
    assert _run(["status"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^events +GitHub, last \d+ s ago$", out, re.MULTILINE)
    assert "pi-dispatch triggers resume nightly" in out
    assert "this version does not hear GitLab, so these triggers cannot fire: 1" in out
    assert busy.store.paused_triggers()


@pytest.mark.usefixtures("busy")
def test_a_look_takes_few_round_trips() -> None:
    with at_queue() as queue, round_trips() as asked:
        look(queue, SHOWN, queue.server.facts)
    # The queue in three, the workers in two, who is heard in one, what is paused in two.
    assert asked.times <= 8


def test_a_pause_is_said_loudly(busy: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    busy.store.pause(["pi-jobs@build-1"])
    told = document(capsys)
    assert (told["pausedState"], told["waiting"], told["paused"]) == ("part-paused", 1, 0)
    busy.store.pause(["pi-jobs"])
    told = document(capsys)
    assert (told["pausedState"], told["waiting"], told["paused"]) == ("paused", 0, 1)
    assert told["allPausedSince"] is None
    assert [queue["pausedSince"] is not None for queue in told["queues"]] == [True, True]
    busy.store.pause(["*"])
    assert document(capsys)["allPausedSince"] is not None
    assert _run(["status"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^queues +PAUSED$", out, re.MULTILINE)
    assert "no job starts in a paused queue: pi-dispatch resume takes it back" in out
    assert re.search(r"^pi-jobs +1 +PAUSED since \S+ \S+Z +build-1 *$", out, re.MULTILINE)


def test_watching_prints_a_line_a_second_and_ends_when_it_is_told(busy: Bench) -> None:
    watching = busy.program.start("status", "--watch", "--json")
    with watching:
        assert watching.stdout is not None
        lines = [json.loads(watching.stdout.readline()) for _ in range(2)]
        watching.send_signal(signal.SIGINT)
        assert watching.wait(RUN_S) == 0
    assert [line["waiting"] for line in lines] == [1, 1]
    assert lines[0]["at"] < lines[1]["at"]


@pytest.fixture
def silent() -> Iterator[list[int]]:
    """Ports at which connections are taken and nothing is ever answered."""
    with ExitStack() as stack:
        listening = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        yield [one.getsockname()[1] for one in listening]


@pytest.mark.parametrize("verb", [("status",), ("pause",), ("resume",), ("cancel", "local-1")], ids=lambda one: one[0])
@pytest.mark.parametrize("how", ["refused", "silent", "silent sentinels", "frozen socket"])
def test_an_unreachable_server_is_an_error_within_three_seconds(
    how: str,
    verb: tuple[str, ...],
    silent: list[int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    urls = {
        "refused": f"redis://127.0.0.1:{free_port()}/0",
        "silent": f"redis://127.0.0.1:{silent[0]}/0",
        "silent sentinels": f"sentinel://{','.join(f'127.0.0.1:{port}' for port in silent)}/0?master=pi",
        "frozen socket": f"unix://{tmp_path}/s.sock",
    }
    with socket.socket(socket.AF_UNIX) as frozen:
        frozen.bind(f"{tmp_path}/s.sock")
        frozen.listen()
        monkeypatch.setenv("VALKEY_URL", urls[how])
        began = time.monotonic()
        assert _run(list(verb)) == 1
        assert time.monotonic() - began < SECONDS
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("pi-dispatch: ")
    assert "answer" in err or "No Sentinel" in err or "no Sentinel" in err

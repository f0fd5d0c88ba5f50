"""`status --watch`: one look after the other, what it says while the server is away, and how it ends."""

import io
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pidispatch.cli import status
from pidispatch.cli.at_queue import AtQueue, at_queue
from tests.integration.cli.bench import Bench, Script, nothing
from tests.support.program import PROGRAM, RUN_S
from tests.support.server import OwnServer, until
from tests.support.terminal import at_terminal, read_all


@contextmanager
def queue_of(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[AtQueue]:
    """The queue as the verb has it."""
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    with at_queue() as queue:
        yield queue


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[OwnServer]:
    """A server that may be frozen."""
    with OwnServer("valkey", tmp_path) as server:
        yield server


def test_as_json_it_is_a_line_a_look(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.submit()
    with queue_of(bench, monkeypatch) as queue:
        status._lines(queue, Script([lambda: bench.submit("local-2"), nothing]))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["waiting"] for line in lines] == [1, 2, 2]


def test_off_a_terminal_each_look_is_printed_whole(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with queue_of(bench, monkeypatch) as queue:
        status._watch(queue, Script([bench.submit]))
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line.startswith("jobs")] == [
        "jobs        0 running, 0 waiting, 0 held",
        "jobs        0 running, 1 waiting, 0 held",
    ]


class Away:
    """A server that is frozen for two looks."""

    def __init__(self, server: OwnServer) -> None:
        self.script = Script([server.freeze, nothing, server.thaw])

    def __call__(self, seconds: float) -> bool:
        return self.script(seconds)


@pytest.fixture
def frozen(own_server: OwnServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[AtQueue, Away]]:
    """Looks of which the second and the third have no answer."""
    monkeypatch.setenv("VALKEY_URL", own_server.url)
    with at_queue() as queue:
        yield queue, Away(own_server)


def test_a_server_that_is_away_is_told_once_beside_the_lines(
    frozen: tuple[AtQueue, Away], capsys: pytest.CaptureFixture[str]
) -> None:
    status._lines(*frozen)
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert err.count("does not answer") == 1


def test_on_a_terminal_it_is_told_for_as_long_as_what_is_shown_is_old(
    frozen: tuple[AtQueue, Away], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(status, "QuietConsole", lambda: Console(file=screen, force_terminal=True, width=100, height=40))
    frames: list[str] = []
    queue, away = frozen

    def noted(seconds: float) -> bool:
        frames.append(screen.getvalue())
        screen.seek(0)
        screen.truncate()
        return away(seconds)

    status._watch(queue, noted)
    assert ["does not answer" in frame for frame in frames] == [False, True, True, False]
    assert all("no worker is running" in frame for frame in frames)


def test_it_ends_when_its_reader_has_gone(bench: Bench) -> None:
    watching = subprocess.Popen(
        [PROGRAM, "status", "--watch", "--json"], env=bench.program.environment(), stdout=subprocess.PIPE, text=True
    )
    assert watching.stdout is not None
    assert json.loads(watching.stdout.readline())["pausedState"] == "running"
    watching.stdout.close()
    assert watching.wait(RUN_S) == 0


def test_ctrl_c_ends_it_at_a_terminal(bench: Bench, tmp_path: Path) -> None:
    environment: dict[str, Any] = bench.program.environment() | {"TERM": "xterm"}
    watching, controller = at_terminal([PROGRAM, "status", "--watch"], environment, tmp_path)
    seen = b""

    def shown() -> bool:
        nonlocal seen
        seen += os.read(controller, 4096)
        return b"no worker is running" in seen

    until(shown, "the first look")
    watching.send_signal(signal.SIGINT)
    read_all(controller)
    assert watching.wait(RUN_S) == 0

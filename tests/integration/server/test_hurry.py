"""Our own server that hangs, and verbs that must not: they give it up within three seconds."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pidispatch.cli.main import _run
from pidispatch.server.flock import gate
from tests.support.server import state_folder
from tests.support.server_user import UserProcess

VERBS = [("status",), ("pause",), ("resume",), ("cancel", "local-1")]


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder with a short path, named by the environment."""
    monkeypatch.delenv("VALKEY_URL", raising=False)
    with state_folder() as folder:
        monkeypatch.setenv("PI_STATE_DIR", str(folder))
        yield folder


def _gives_up(verb: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    assert _run(list(verb)) == 1
    assert time.monotonic() - began < 3
    assert "does not answer within 1.8 s: it hangs" in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_a_server_that_is_frozen(state: Path, verb: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with UserProcess(state) as user:
        user.ask("join")
        pid = int(user.ask("pid"))
        os.kill(pid, signal.SIGSTOP)
        try:
            _gives_up(verb, capsys)
        finally:
            os.kill(pid, signal.SIGCONT)
        user.ask("leave")


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_a_program_that_is_about_to_start_or_end_it(
    state: Path, verb: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with UserProcess(state) as user:
        user.ask("join")
        with gate(state / "server" / "gate.lock", 1):
            _gives_up(verb, capsys)

"""Our own server that hangs, and verbs that must not: they give it up within three seconds."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pidispatch.cli.main import _run
from pidispatch.config.flock import gate
from tests.support.server import state_folder
from tests.support.server_user import UserProcess

VERBS = [("status",), ("pause",), ("resume",), ("cancel", "local-1")]
SAID = "does not answer within 1.8 s: it hangs"


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder with a short path, named by the environment."""
    monkeypatch.delenv("VALKEY_URL", raising=False)
    with state_folder() as folder:
        monkeypatch.setenv("PI_STATE_DIR", str(folder))
        yield folder


def _given_up(verb: tuple[str, ...]) -> tuple[int, bool]:
    """Exit code, and whether it came within three seconds."""
    began = time.monotonic()
    return _run(list(verb)), time.monotonic() - began < 3


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_a_server_that_is_frozen(state: Path, verb: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with UserProcess(state) as user:
        user.ask("join")
        pid = int(user.ask("pid"))
        os.kill(pid, signal.SIGSTOP)
        try:
            assert _given_up(verb) == (1, True)
        finally:
            os.kill(pid, signal.SIGCONT)
        user.ask("leave")
    assert SAID in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_a_program_that_is_about_to_start_or_end_it(
    state: Path, verb: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with UserProcess(state) as user:
        user.ask("join")
        with gate(state / "server" / "gate.lock", 1):
            assert _given_up(verb) == (1, True)
    assert SAID in capsys.readouterr().err

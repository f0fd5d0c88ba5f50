"""``python3 -m model`` as a container runs it: top-level package, bare interpreter, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fakes import model
from tests.fakes.model import RequestLog
from tests.fakes.model.__main__ import main
from tests.unit.fakes.wire_client import ask, assemble

PACKAGE_PARENT = Path(model.__file__).parent.parent
# -S: no site-packages, so an import from outside the standard library fails.
COMMAND = [sys.executable, "-S", "-m", "model", "--listen", "127.0.0.1:0"]
ENVIRONMENT = {"PYTHONPATH": str(PACKAGE_PARENT), "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"]}


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The process and the port it printed."""
    with subprocess.Popen([*COMMAND, *arguments], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("listening on 127.0.0.1:")
            yield process, int(line.rpartition(":")[2])
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_a_signal_and_then_ends_at_once(number: signal.Signals, tmp_path: Path) -> None:
    log = RequestLog(tmp_path / "log" / "requests.jsonl")
    with running("--log", str(log.path)) as (process, port):
        assert ask(port, "openai", "say").status == 200
        with pytest.raises(TimeoutError):
            ask(port, "openai", "hang", timeout_s=0.2)
        start = time.monotonic()
        process.send_signal(number)
        assert process.wait(20) == 0
        # The answer that hangs must not hold it up.
        assert time.monotonic() - start < 10
    assert [entry.model for entry in log.requests()] == ["say", "hang"]


def test_it_takes_more_scenarios_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "scenarios.json"
    file.write_text(json.dumps({"mine": {"steps": [{"step": "say", "text": "mine"}]}}))
    with running("--log", str(tmp_path / "log"), "--scenarios", str(file)) as (_, port):
        assert assemble("openai", [ask(port, "openai", "mine").data]).text == "mine"
        assert ask(port, "openai", "say").status == 200


def test_a_file_that_is_no_script_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scenarios.json"
    file.write_text('{"mine": {"steps": [{"step": "sing"}]}}')
    assert main(["--listen", "127.0.0.1:0", "--log", str(tmp_path / "log"), "--scenarios", str(file)]) == 1
    assert capsys.readouterr().err.startswith(f"model: {file}: mine.steps[0].step: unknown step 'sing'")


def test_files_that_are_not_there_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "missing.json")
    assert main(["--listen", "127.0.0.1:0", "--log", str(tmp_path / "log"), "--scenarios", missing]) == 1
    assert missing in capsys.readouterr().err


@pytest.mark.parametrize("address", ["3128", "0.0.0.0:", "0.0.0.0:99999", "0.0.0.0:http"])
def test_an_address_that_is_none(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--listen", address, "--log", "unused"])
    assert "is not HOST:PORT; write for example 127.0.0.1:3128" in capsys.readouterr().err

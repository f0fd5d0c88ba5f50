"""The verb `server` without a server: how it is called, and what it says where none runs."""

import json
from pathlib import Path

import pytest

from pidispatch.cli.main import _run
from pidispatch.cli.server import _state
from pidispatch.server.client import ServerFacts
from pidispatch.server.embedded import Look
from tests.support.facts import server_facts

FACTS = server_facts(pid=1, uptime_s=1)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("VALKEY_URL", "VALKEY_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    # A kill switch works while another variable is broken.
    monkeypatch.setenv("PI_MAX_TURNS", "many")
    folder = tmp_path / "state"
    monkeypatch.setenv("PI_STATE_DIR", str(folder))
    return folder


def test_without_a_verb_the_usage_is_shown_and_the_call_was_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["server"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Usage: pi-dispatch server")
    assert _run(["server", "status", "extra"]) == 1


@pytest.mark.parametrize("verb", [[], ["status"], ["stop"]])
def test_help_is_no_wrong_call(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["server", *verb, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: pi-dispatch {' '.join(['server', *verb])}")


def test_status_of_our_own_that_does_not_run(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["server", "status"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"server      pi-dispatch's own: unix://{state}/server/valkey.sock",
        "state       does not run; the next program that needs it starts it",
    ]
    assert _run(["server", "status", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document == {
        "server": "embedded",
        "address": f"unix://{state}/server/valkey.sock",
        "running": False,
        "used": False,
        "fault": None,
        "durable": None,
        "facts": None,
    }
    assert not state.exists()


def test_stop_of_our_own_that_does_not_run_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["server", "stop"]) == 0
    assert capsys.readouterr().out == "pi-dispatch's own server does not run\n"


def test_status_of_a_named_one_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VALKEY_URL", "redis://me:s3cret@127.0.0.1:1/0")
    assert _run(["server", "status"]) == 1
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        "server      named by VALKEY_URL: redis://127.0.0.1:1/0",
        "state       does not answer",
    ]
    assert "redis://127.0.0.1:1/0 does not answer: " in captured.err
    assert _run(["server", "status", "--json"]) == 1
    out = capsys.readouterr().out
    assert (json.loads(out)["running"], json.loads(out)["server"]) == (False, "named")
    assert "s3cret" not in out + captured.out + captured.err


def test_a_named_one_is_not_ours_to_stop(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("VALKEY_URL", "redis://me:s3cret@127.0.0.1:1/0")
    assert _run(["server", "stop"]) == 1
    err = capsys.readouterr().err
    assert "VALKEY_URL names redis://127.0.0.1:1/0, which is not pi-dispatch's to stop" in err
    assert "s3cret" not in err


@pytest.mark.parametrize("verb", ["status", "stop"])
def test_a_url_that_cannot_be_read_is_refused(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VALKEY_URL", "redis://me:s3cret@h:port")
    assert _run(["server", verb]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("pi-dispatch: VALKEY_URL has a port that is no number")
    assert "s3cret" not in captured.err


@pytest.mark.parametrize(
    ("look", "facts", "words"),
    [
        (None, FACTS, "answers"),
        (None, None, "does not answer"),
        (Look(lives=False, used=False), None, "does not run; the next program that needs it starts it"),
        (Look(lives=True, used=True), FACTS, "answers; in use"),
        (Look(lives=True, used=True), None, "runs, but does not answer; in use"),
        (Look(lives=True, used=False), FACTS, "answers; nobody uses it; pi-dispatch server stop ends it"),
    ],
)
def test_the_words_for_what_was_found(look: Look | None, facts: ServerFacts | None, words: str) -> None:
    assert _state(look, facts) == words

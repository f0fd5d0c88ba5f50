"""The verb `server` with real servers: what it says of our own and of a named one, and what it stops."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pidispatch.cli.main import _run
from pidispatch.server.embedded import Embedded, Look
from tests.support.program import Program
from tests.support.server import OwnServer, state_folder
from tests.support.server_user import UserProcess

PASSWORD = "correct_horse-battery"


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder with a short path, named by the environment; another variable is broken."""
    for name in ("VALKEY_URL", "VALKEY_PASSWORD", "PI_KEY_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PI_MAX_TURNS", "many")
    with state_folder() as folder:
        monkeypatch.setenv("PI_STATE_DIR", str(folder))
        yield folder


def test_our_own_in_use_and_left_behind(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with UserProcess(state) as user:
        user.ask("join")
        assert _run(["server", "status"]) == 0
        captured = capsys.readouterr()
        lines = dict(line.split(maxsplit=1) for line in captured.out.splitlines())
        assert captured.err == ""
        assert lines["server"] == f"pi-dispatch's own: unix://{state}/server/valkey.sock"
        assert lines["state"] == "answers; in use"
        assert lines["version"].startswith("valkey ")
        assert lines["pid"] == str(user.ask("pid"))
        assert lines["appendonly"] == "yes"
        assert _run(["server", "stop"]) == 1
        assert "other programs use pi-dispatch's own server" in capsys.readouterr().err
        assert user.ask("set a 1") is True
        user.kill()
    assert _run(["server", "status", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["server"], document["running"], document["used"]) == ("embedded", True, False)
    assert document["durable"] is True
    assert document["facts"]["maxmemoryPolicy"] == "noeviction"
    # To look is not to use: it is still there.
    assert Embedded(state).look() == Look(lives=True, used=False)
    assert _run(["server", "stop"]) == 0
    assert capsys.readouterr().out == "pi-dispatch's own server is stopped\n"
    assert _run(["server", "stop"]) == 0
    assert Embedded(state).look() == Look(lives=False, used=False)


def test_a_named_one_that_may_lose_what_it_is_told(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lax = ("--appendonly", "no", "--maxmemory-policy", "allkeys-lru")
    with OwnServer("redis", tmp_path / "s", *lax, tcp=True, password=PASSWORD) as server:
        monkeypatch.setenv("VALKEY_URL", server.url)
        monkeypatch.setenv("VALKEY_PASSWORD", PASSWORD)
        assert _run(["server", "status"]) == 0
        captured = capsys.readouterr()
        assert f"server      named by VALKEY_URL: {server.url}\n" in captured.out
        assert "state       answers\n" in captured.out
        assert "version     redis 7." in captured.out
        assert "appendonly  no\nwhen full   allkeys-lru\n" in captured.out
        assert "On your server set: appendonly yes, maxmemory-policy noeviction" in captured.err
        assert PASSWORD not in captured.out + captured.err
        assert _run(["server", "stop"]) == 1
        assert server.client().ping()
    assert list(state.iterdir()) == []


def test_a_named_cluster_is_refused(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with OwnServer("valkey", tmp_path / "s", "--cluster-enabled", "yes") as server:
        monkeypatch.setenv("VALKEY_URL", server.url)
        assert _run(["server", "status"]) == 2
    assert "(CROSSSLOT)" in capsys.readouterr().err


def test_the_program_itself_works_while_another_variable_is_broken(state: Path, tmp_path: Path) -> None:
    program = Program(tmp_path, {"PI_STATE_DIR": str(state), "PI_CONCURRENCY": "none"})
    own = Embedded(state)
    own.join()
    try:
        process = program.start("server", "status", "--json")
        out, _ = process.communicate(timeout=60)
    finally:
        own.leave()
    assert process.returncode == 0
    assert json.loads(out)["used"] is True

"""`tests/engine/up` and `down`: an engine of one's own beside any other, where this machine allows one.

Where it does not (no root, no Debian) the same calls must end with a message that says what to do.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import DockerClient

_SCRIPTS = Path(__file__).resolve().parents[2] / "engine"
_CAN_START = os.geteuid() == 0 and Path("/etc/debian_version").exists()


def _call(script: str, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [_SCRIPTS / script, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
        timeout=120,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "e"
    _call("down", "--purge", tmp_path / "e")


def _names(url: str) -> list[str]:
    client = DockerClient(base_url=url)
    try:
        client.ping()
        return [str(network.name) for network in client.networks.list()]
    finally:
        client.close()


def _start(folder: Path) -> str:
    done = _call("up", folder)
    assert done.returncode == 0, done.stderr
    line = done.stdout.splitlines()[-1]
    assert line == f"DOCKER_HOST=unix://{folder}/engine.sock"
    return line.partition("=")[2]


def _refused(folder: Path) -> None:
    done = _call("up", folder)
    assert done.returncode == 1
    assert "DOCKER_HOST=" in done.stderr


def test_engine_of_its_own_survives_its_holder(engine: DockerClient, folder: Path) -> None:
    if not _CAN_START:
        _refused(folder)
        return
    url = _start(folder)
    client = DockerClient(base_url=url)
    client.networks.create("only-here")
    client.close()
    assert "only-here" not in [network.name for network in engine.networks.list()]
    holder = int((folder / "holder.pid").read_text())
    os.kill(holder, signal.SIGKILL)
    assert _start(folder) == url
    assert int((folder / "holder.pid").read_text()) != holder
    assert "only-here" in _names(url)


def test_down_ends_its_own_engine_and_no_other(engine: DockerClient, folder: Path) -> None:
    if not _CAN_START:
        _refused(folder)
        return
    _start(folder)
    again = _call("up", folder)
    assert (again.returncode, again.stderr) == (0, "")
    down = _call("down", folder)
    assert down.returncode == 0
    assert not (folder / "engine.sock").exists()
    assert (folder / "data").is_dir()
    assert engine.ping()
    assert "no engine runs" in _call("down", folder).stderr
    assert _call("down", "--purge", folder).returncode == 0
    assert not folder.exists()


def test_down_ends_no_process_that_only_has_the_holders_number(folder: Path) -> None:
    folder.mkdir()
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        (folder / "holder.pid").write_text(f"{stranger.pid}\n")
        assert "no engine runs" in _call("down", folder).stderr
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_answering_engine_is_used_and_none_started(folder: Path) -> None:
    running = _call("up").stdout.splitlines()[-1].partition("=")[2]
    done = _call("up", DOCKER_HOST=running, PI_TEST_ENGINE_DIR=str(folder))
    assert done.stdout == f"DOCKER_HOST={running}\n"
    assert not folder.exists()


@pytest.mark.parametrize("arguments", [("a", "b")])
def test_wrong_call_says_how(arguments: tuple[str, ...]) -> None:
    for script in ("up", "down"):
        done = _call(script, *arguments)
        assert done.returncode == 1
        assert "usage: tests/engine/" in done.stderr

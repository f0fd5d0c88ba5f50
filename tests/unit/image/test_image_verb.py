"""`pi-dispatch image` where no engine answers: what works without one, and what is said otherwise."""

import sys

import pytest

from pidispatch.cli.main import main


@pytest.fixture(autouse=True)
def _no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    # A closed port: docker-py leaves a socket open when a file that should be one is missing.
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    for name in ("DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "PI_JOB_IMAGE"):
        monkeypatch.delenv(name, raising=False)


def _call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["pi-dispatch", "image", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_print_needs_no_engine(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert _call(monkeypatch, "build", "--print", "--base", "mine:1") == 0
    out, err = capsys.readouterr()
    assert "ARG BASE" in out
    assert "BASE=mine:1" in out
    assert "HARD_RULES.md" in out
    assert err == ""


@pytest.mark.parametrize("arguments", [("build",), ("verify",), ("verify", "pi-job:x", "--json")])
def test_silent_engine_ends_with_1_and_a_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert _call(monkeypatch, *arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "the container engine at tcp://127.0.0.1:1 does not answer" in err
    assert "docker info" in err
    assert "DOCKER_HOST=" in err


def test_wrong_call_ends_with_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert _call(monkeypatch, "build", "--bsae", "x") == 1
    assert "--bsae" in capsys.readouterr().err

"""The verb `worker`: what it hands on, and what it says before it begins."""

import pytest

from pidispatch.cli.main import _run


def test_help_says_how_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["worker", "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Usage: pi-dispatch worker")
    assert "Exit code: 0 after a clean stop, 1 the surroundings failed, 2 refused." in out


def test_it_takes_no_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["worker", "build-1"]) == 1
    assert "unexpected extra argument" in capsys.readouterr().err


@pytest.mark.parametrize("code", [0, 1, 2])
def test_the_workers_exit_code_is_its_own(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pidispatch.worker.program.run_worker", lambda: code)
    assert _run(["worker"]) == code


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("PI_MAX_TURNS", "many", "PI_MAX_TURNS='many' must be a whole number"),
        ("VALKEY_URL", "http://me:s3cret@h", "VALKEY_URL has the unknown scheme 'http'"),
        ("PI_CELERY_CONFIG", "celeryconfig.py", "PI_CELERY_CONFIG='celeryconfig.py' must be an absolute path"),
        ("PI_CELERY_CONFIG", "/nonexistent/c.py", "PI_CELERY_CONFIG='/nonexistent/c.py' must be an existing file"),
        ("CELERY_BROKER_URL", "redis://elsewhere", "CELERY_BROKER_URL cannot be set"),
    ],
)
def test_a_bad_setting_is_refused_with_the_message_alone(
    name: str, value: str, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, value)
    assert _run(["worker"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"pi-dispatch: {told}")
    assert "Traceback" not in captured.err
    assert "s3cret" not in captured.err

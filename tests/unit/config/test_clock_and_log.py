"""The real clock, and log lines that a machine can read."""

import io
import json
from datetime import UTC

import pytest

from pidispatch.config.clock import SystemClock
from pidispatch.config.log import configure_log, log


def test_the_clock_is_aware_and_never_goes_back() -> None:
    clock = SystemClock()
    assert clock.now().tzinfo is UTC
    assert clock.monotonic() <= clock.monotonic()


class Gone(io.StringIO):
    """A stream whose reader went away."""

    asked = ""

    def write(self, text: str) -> int:
        """Fail as a pipe without a reader does."""
        self.asked += text
        raise BrokenPipeError


def test_a_reader_that_went_away_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Gone()
    monkeypatch.setattr("sys.stderr", gone)
    configure_log()
    log().error("attempt_broke", jobId="local-1")
    assert "attempt_broke" in gone.asked


def test_the_log_says_every_event_away_from_a_terminal_and_warnings_at_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_log()
    log().info("job_completed", jobId="local-1")
    assert "job_completed" in capsys.readouterr().err
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    configure_log()
    log().info("job_completed", jobId="local-1")
    assert capsys.readouterr().err == ""


def test_one_json_object_per_line_away_from_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    configure_log()
    log().warning("change_unreadable", cause="git-failed", turns=3)
    captured = capsys.readouterr()
    assert captured.out == ""
    line = json.loads(captured.err)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "change_unreadable", "level": "warning", "cause": "git-failed", "turns": 3}

"""The real clock, and log lines that a machine can read."""

import json
from datetime import UTC

import pytest

from pidispatch.config.clock import SystemClock
from pidispatch.config.log import configure_log, log


def test_the_clock_is_aware_and_never_goes_back() -> None:
    clock = SystemClock()
    assert clock.now().tzinfo is UTC
    assert clock.monotonic() <= clock.monotonic()


def test_one_json_object_per_line_away_from_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    configure_log()
    log().warning("change_unreadable", cause="git-failed", turns=3)
    captured = capsys.readouterr()
    assert captured.out == ""
    line = json.loads(captured.err)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "change_unreadable", "level": "warning", "cause": "git-failed", "turns": 3}

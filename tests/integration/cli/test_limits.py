"""`limits` on a real server: every window, slot, pause and hold."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from pidispatch.cli.main import _run
from pidispatch.jobs.rows import Deferred
from pidispatch.money.windows import Window, token_key
from tests.integration.cli.bench import Bench
from tests.support.documented import documented, keys


@pytest.fixture
def busy(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Something in every place."""
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    # What a run needs is broken, and the caps are not.
    monkeypatch.setenv("PI_MAX_TURNS", "many")
    monkeypatch.setenv("PI_DAILY_CAP", "4")
    monkeypatch.setenv("PI_WEEKLY_CAP", "5")
    monkeypatch.setenv("PI_SOFT_HOLD_PCT", "75")
    now = datetime.now(UTC)
    with bench.server.client() as client:
        client.mset({f"pi:{Window.DAY.key(now)}": 2, f"pi:{Window.WEEK.key(now)}": 3, f"pi:{token_key(now)}": 12345})
    bench.submit("local-sleeps")
    assert isinstance(bench.store.defer(bench.take("local-sleeps"), 60_000, "scope-busy"), Deferred)
    bench.store.beat("build-1", {"queues": "pi-jobs", "slots": 3, "running": 1, "heardS": 7, "engine": "e"})
    bench.store.pause(["pi-jobs"])
    return bench


@pytest.mark.usefixtures("busy")
def test_all_that_it_says_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["limits", "--json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    day, week, month, tokens = told["windows"]
    assert (day["window"], day["counted"], day["cap"], day["holdsFrom"], day["full"]) == ("day", 2, 4, 3, False)
    assert (week["counted"], week["cap"], week["holdsFrom"], week["full"]) == (3, 5, 3, True)
    assert (month["cap"], month["full"], tokens["counted"], tokens["cap"]) == (None, False, 12345, None)
    assert day["frees"].endswith("T00:00:00Z")
    assert told["slots"] == [{"worker": "build-1", "taken": 1, "slots": 3}]
    assert told["paused"] == ["pi-jobs"]
    [held] = told["held"]
    assert (held["jobId"], held["why"]) == ("local-sleeps", "scope-busy")
    assert keys(told) == documented("how-to/limits.md", "## As JSON")


@pytest.mark.usefixtures("busy")
def test_what_a_person_sees(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["limits"]) == 0
    said = capsys.readouterr().out
    assert "##########.........." in said
    assert "FULL" in next(line for line in said.splitlines() if line.startswith("week"))
    for words in ("PI_DAILY_CAP", "4 (held from 3)", "12,345", "none", "build-1", "paused: pi-jobs", "scope-busy"):
        assert words in said


def test_a_server_that_is_away_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("VALKEY_URL", "redis://127.0.0.1:1/0")
    assert _run(["limits"]) == 1
    assert "does not answer" in capsys.readouterr().err


def test_a_cap_that_cannot_be_read_is_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    monkeypatch.setenv("PI_DAILY_CAP", "lots")
    assert _run(["limits"]) == 2
    assert "PI_DAILY_CAP='lots' must be a whole number" in capsys.readouterr().err

"""`limits` on a real server: every window, slot, pause and hold."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from pidispatch.cli.main import _run
from pidispatch.jobs.rows import Deferred
from pidispatch.money.windows import Window, token_key
from tests.integration.cli.bench import Bench
from tests.support.documented import documented, keys

WINDOWS = [
    {"scope": "*", "from": "00:00", "to": "23:59", "tz": "Asia/Tokyo", "dateTo": "2020-01-01"},
    {"scope": "/srv/site", "from": "12:00", "to": "11:59", "tz": "Europe/Berlin"},
]


@pytest.fixture
def busy(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Something in every place."""
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    (tmp_path / "windows.json").write_text(json.dumps({"windows": WINDOWS}))
    monkeypatch.setenv("PI_PAUSE_WINDOWS_FILE", str(tmp_path / "windows.json"))
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
    gone, held_now = told["quietHours"]
    assert (gone["index"], gone["scope"], gone["from"], gone["to"]) == (0, "*", "00:00", "23:59")
    assert (gone["tz"], gone["activeUntil"]) == ("Asia/Tokyo", None)
    # All day but a minute before noon: the end is that minute.
    if held_now["activeUntil"] is not None:
        ends = datetime.fromisoformat(held_now["activeUntil"]).astimezone(ZoneInfo("Europe/Berlin"))
        assert (ends.hour, ends.minute) == (11, 59)
    [held] = told["held"]
    assert (held["jobId"], held["why"]) == ("local-sleeps", "scope-busy")
    assert keys(told) == documented("how-to/limits.md", "## As JSON")


@pytest.mark.usefixtures("busy")
def test_what_a_person_sees(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["limits"]) == 0
    said = capsys.readouterr().out
    assert "##########.........." in said
    assert "FULL" in next(line for line in said.splitlines() if line.startswith("week"))
    assert "12:00-11:59 Europe/Berlin" in next(line for line in said.splitlines() if line.startswith("/srv/site"))
    for words in ("PI_DAILY_CAP", "4 (held from 3)", "12,345", "none", "build-1", "paused: pi-jobs", "scope-busy"):
        assert words in said


def test_a_file_of_quiet_hours_that_is_broken_is_said_and_hides_nothing(
    busy: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "windows.json").write_text('{"windows": [{}]}')
    assert _run(["limits"]) == 0
    captured = capsys.readouterr()
    assert "local-sleeps" in captured.out
    assert "the quiet hours are not known" in captured.err
    assert "window at index 0" in captured.err
    assert busy.store.row("local-sleeps") is not None


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

"""`triggers list`: a file, a server, and the jobs of the last occurrences."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from pidispatch.cli.main import _run
from pidispatch.triggers.occurrences import cron_id
from pidispatch.values.outcome import Completed, Refused
from pidispatch.values.reason import Reason
from tests.integration.cli.bench import Bench
from tests.support.documented import documented, keys


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with two schedules, in the zone of Berlin; what a run needs is broken."""
    run = {"kind": "local", "folder": "/srv/site", "flow": "tidy", "task": "a private task"}
    entries = [
        {"on": {"type": "cron", "id": "nightly", "pattern": "0 3 * * *"}, "run": run},
        {"on": {"type": "cron", "id": "often", "pattern": "*/20 * * * * *", "missed": "once"}, "run": run},
    ]
    path = tmp_path / "triggers.json"
    path.write_text(json.dumps({"triggers": entries}))
    monkeypatch.setenv("PI_TRIGGERS_FILE", str(path))
    monkeypatch.setenv("PI_TZ", "Europe/Berlin")
    monkeypatch.setenv("PI_MAX_TURNS", "many")
    return path


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert _run(["triggers", "list", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def ended(bench: Bench, at: datetime, outcome: Any) -> str:
    """The job of the occurrence at this instant, ended so."""
    job_id = cron_id("nightly", round(at.timestamp() * 1000))
    bench.submit(job_id)
    bench.end(bench.take(job_id), outcome)
    bench.store.deal_with({"nightly": at})
    return job_id


@pytest.mark.usefixtures("file")
def test_all_that_it_says_as_json(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    nightly, often = document(capsys)["triggers"]
    assert (nightly["id"], nightly["index"], nightly["missed"], nightly["last"]) == ("nightly", 0, "skip", None)
    assert (often["missed"], len(often["next"])) == ("once", 3)
    at = datetime(2026, 5, 4, 1, tzinfo=UTC)
    job_id = ended(bench, at, Refused(reason=Reason.OVER_BUDGET, cause="day"))
    told = document(capsys)
    nightly, _ = told["triggers"]
    assert (nightly["last"], nightly["jobId"]) == ("2026-05-04T01:00:00Z", job_id)
    assert nightly["outcome"] == "over-budget"
    assert {one[11:] for one in nightly["next"]} <= {"01:00:00Z", "02:00:00Z"}
    assert keys(told) == documented("how-to/schedules.md", "## As JSON")
    assert "a private task" not in json.dumps(told)
    ended(bench, at + timedelta(days=1), Completed())
    assert document(capsys)["triggers"][0]["outcome"] == "completed"


@pytest.mark.usefixtures("file")
def test_what_a_person_sees(bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    at = datetime(2026, 5, 4, 1, tzinfo=UTC)
    job_id = cron_id("nightly", round(at.timestamp() * 1000))
    bench.submit(job_id)
    bench.store.deal_with({"nightly": at})
    assert _run(["triggers", "list"]) == 0
    said = capsys.readouterr().out
    for words in ("nightly", "0 3 * * *", "05-04 03:00", "waits", "/srv/site", "in the zone Europe/Berlin"):
        assert words in said


def test_instants_of_other_years_have_their_year(
    file: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    monkeypatch.setenv("COLUMNS", "200")
    file.write_text(file.read_text().replace("0 3 * * *", "0 3 1 1 *"))
    assert _run(["triggers", "list"]) == 0
    later = datetime.now(ZoneInfo("Europe/Berlin")).year + 2
    assert f"{later}-01-01 03:00, " in capsys.readouterr().out


@pytest.mark.usefixtures("file")
def test_without_a_server_the_file_alone_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VALKEY_URL", "redis://127.0.0.1:1/0")
    assert _run(["triggers", "list"]) == 0
    captured = capsys.readouterr()
    assert "nightly" in captured.out
    assert "how the last ones went is not known" in captured.err


def test_a_file_that_is_broken_or_not_named(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text('{"triggers": [{}]}')
    assert _run(["triggers", "list"]) == 2
    assert "trigger at index 0" in capsys.readouterr().err
    monkeypatch.delenv("PI_TRIGGERS_FILE")
    assert _run(["triggers", "list"]) == 2
    assert "name one with PI_TRIGGERS_FILE" in capsys.readouterr().err


def test_a_file_without_triggers(
    file: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    file.write_text('{"triggers": []}')
    assert _run(["triggers", "list"]) == 0
    assert "holds no trigger" in capsys.readouterr().out

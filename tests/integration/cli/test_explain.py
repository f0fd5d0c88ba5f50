"""`explain` on a real server: a job in every place, with what it waits for or how it ended."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pidispatch.cli.main import _run
from pidispatch.jobs.charges import Ask, Reserved, TurnedAway
from pidispatch.jobs.rows import Answer, Deferred
from pidispatch.money.budget import Budget
from pidispatch.values.outcome import InfraFailed, Refused
from pidispatch.values.reason import Reason
from pidispatch.values.record import Result, RunRecord
from pidispatch.values.verdict import Why
from tests.integration.cli.bench import WORKER, Bench
from tests.support.documented import documented, keys
from tests.support.settings import settings_of

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def at(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server alone is named; what a run needs is broken."""
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    monkeypatch.setenv("PI_MAX_TURNS", "many")


def said(capsys: pytest.CaptureFixture[str], job_id: str = "local-1") -> str:
    assert _run(["explain", job_id]) == 0
    return capsys.readouterr().out


def document(capsys: pytest.CaptureFixture[str], job_id: str = "local-1") -> dict[str, Any]:
    assert _run(["explain", job_id, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def ask(**variables: str) -> Ask:
    return Budget(settings_of({"PI_MAX_TURNS": "1", **variables})).ask(NOW)


def end(bench: Bench, outcome: Any, charged: dict[str, int]) -> RunRecord:
    lease = bench.take()
    job = bench.row().job
    result = Result.begin(NOW, "p", "m").ending(outcome).model_copy(update={"charged": charged})
    record = RunRecord.of(job, result, WORKER, lease.attempt)
    assert bench.store.finish(lease, record) is Answer.WON
    return record


def test_one_that_waits_for_a_worker(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.submit()
    assert "no worker takes from pi-jobs; start one with: pi-dispatch worker" in said(capsys)
    bench.store.beat("build-1", {"queues": "pi-jobs", "slots": 3, "running": 3})
    assert "3 of 3 job slots are taken" in said(capsys)
    bench.store.pause(["pi-jobs"])
    assert "its queue is paused; take that back with: pi-dispatch resume" in said(capsys)
    told = document(capsys)
    assert (told["state"], told["paused"], told["workers"], told["record"]) == ("queued", True, ["build-1"], None)


@pytest.mark.parametrize("why", Why)
def test_one_that_is_held(bench: Bench, capsys: pytest.CaptureFixture[str], why: Why) -> None:
    bench.submit()
    assert isinstance(bench.store.defer(bench.take(), 90_000, why), Deferred)
    text = said(capsys)
    assert f"{why}: " in text
    assert "does not know why" not in text
    assert "in 0:01:" in text


def test_one_that_is_held_by_quiet_hours_names_the_windows(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.submit()
    assert isinstance(bench.store.defer(bench.take(), 90_000, Why.QUIET_HOURS), Deferred)
    assert "held by" not in said(capsys)
    now = datetime.now(UTC)
    around = {"from": f"{now - timedelta(hours=2):%H:%M}", "to": f"{now + timedelta(hours=2):%H:%M}"}
    scopes = ("/srv/other", bench.row().job.scope, "*")
    file = tmp_path / "windows.json"
    file.write_text(json.dumps({"windows": [{"scope": scope, **around} for scope in scopes]}))
    monkeypatch.setenv("PI_PAUSE_WINDOWS_FILE", str(file))
    text = said(capsys)
    assert [f"index {number} of {file}" in text for number in range(3)] == [False, True, True]
    assert f"{around['from']}-{around['to']} UTC" in text


def test_one_that_is_held_for_what_another_version_knows(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.submit()
    bench.store.defer(bench.take(), 90_000, "moonlight")
    assert "moonlight: this version does not know why" in said(capsys)


def test_one_that_runs(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.submit()
    lease = bench.take()
    assert "it is being checked" in said(capsys)
    assert isinstance(bench.store.spend(lease, ask()), Reserved)
    text = said(capsys)
    assert "may cost something by now" in text
    assert "1 in budget:2026-05-04" in text
    told = document(capsys)
    assert (told["spending"], told["charged"]) == (True, {"budget:2026-05-04": 1})


@pytest.mark.example("ch8 F13", "explain has the numbers of the cap that refused a job, and what lifts it")
def test_one_that_a_cap_refused(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.submit("local-0")
    bench.store.spend(bench.take("local-0"), ask(PI_DAILY_CAP="1"))
    bench.submit()
    lease = bench.take()
    found = bench.store.spend(lease, ask(PI_DAILY_CAP="1"))
    assert isinstance(found, TurnedAway)
    refused = Refused(reason=Reason.OVER_BUDGET, cause="day")
    result = Result.begin(NOW, "p", "m").ending(refused).model_copy(update={"charged": found.charged})
    assert bench.store.finish(lease, RunRecord.of(bench.row().job, result, WORKER)) is Answer.WON
    text = said(capsys)
    for words in (
        "policy, over-budget (day)",
        "2 runs of this day with it; the cap is 1",
        "PI_DAILY_CAP",
        "1 in budget:",
    ):
        assert words in text
    told = document(capsys)
    assert told["turnedAway"] == {"kind": "over", "window": "day", "amount": 2, "cap": 1}
    assert told.pop("record")["reason"] == "over-budget"
    told["charged"] = {}
    assert keys(told) | {"record"} == documented("how-to/status.md", "## Why a job stands where it does")


def test_one_that_was_tried_twice(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.submit()
    first = bench.end(bench.take(), InfraFailed(reason=Reason.INFRA, cause="exit-1"))
    assert "retry: its last attempt failed" in said(capsys)
    lease = bench.take()
    result = Result.begin(NOW, "p", "m").ending(InfraFailed(reason=Reason.INFRA, cause="oom-killed"))
    record = RunRecord.of(bench.row().job, result, WORKER, 2, first.as_earlier)
    assert bench.store.fail(lease, record, never_started=False) is Answer.WON
    text = said(capsys)
    assert "attempt 1" in text
    assert "infra (exit-1)" in text
    assert "failed, infra (oom-killed)" in text


def test_one_that_nobody_knows(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["explain", "local-none"]) == 1
    assert "the server knows no job 'local-none'" in capsys.readouterr().err
    assert _run(["explain"]) == 1


def test_nothing_private_is_said(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.submit()
    text = said(capsys) + json.dumps(document(capsys))
    assert "a private task" not in text
    assert bench.folder not in text

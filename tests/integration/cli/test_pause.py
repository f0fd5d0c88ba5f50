"""The kill switch as an operator uses it, with nothing but the server in order."""

import json
import re

import pytest

from pidispatch.cli.main import _run
from pidispatch.jobs.pausing import EVERY
from pidispatch.jobs.rows import JobState, Paused
from tests.integration.cli.bench import OWNER, Bench

OTHER = "pi-jobs@build-1"


@pytest.fixture(autouse=True)
def environment(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server alone is right; what a run needs is broken."""
    for name, value in {
        "VALKEY_URL": bench.server.url,
        "PI_MAX_TURNS": "many",
        "PI_CONCURRENCY": "none",
        "PI_LOGS_DIR": "relative",
    }.items():
        monkeypatch.setenv(name, value)


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What one call prints."""
    assert _run(list(arguments)) == code
    out, err = capsys.readouterr()
    return out if code == 0 else err


def test_everything_is_paused_and_resumed(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.submit()
    text = said(capsys, "pause")
    assert text.startswith("paused: no new job starts in any queue of ")
    assert text.endswith("No job runs\n")
    assert isinstance(bench.store.acquire("local-1", 0, OWNER), Paused)
    assert said(capsys, "resume").startswith("resumed: jobs start again in every queue of ")
    assert bench.take().attempt == 1
    assert said(capsys, "resume") == f"nothing was paused at {bench.server.url}; jobs start as before\n"


def test_jobs_that_run_are_told(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2):
        bench.submit(f"local-{number}")
        bench.take(f"local-{number}")
        ending = "1 job runs on" if number == 1 else "2 jobs run on"
        assert said(capsys, "pause").endswith(f"{ending}; pi-dispatch cancel JOBID ends one\n")
        said(capsys, "resume")
    assert bench.state() is JobState.ACTIVE


def test_one_queue_is_paused_beside_others(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.submit()
    document = json.loads(said(capsys, "pause", OTHER, "--json"))
    assert document == {
        "pausedState": "part-paused",
        "pausedQueues": [OTHER],
        "queues": ["pi-jobs", OTHER],
        "message": document["message"],
    }
    assert document["message"].startswith(f"paused [2 queues]: no new job starts in {OTHER} of ")
    assert bench.take().attempt == 1
    assert said(capsys, "resume", "pi-jobs").startswith("none of pi-jobs was paused at ")
    document = json.loads(said(capsys, "resume", OTHER, "--json"))
    assert (document["pausedState"], document["pausedQueues"]) == ("running", [])


def test_all_queues_one_by_one_are_all_of_them(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.submit()
    assert json.loads(said(capsys, "pause", "pi-jobs", "--json"))["pausedState"] == "paused"
    # Unlike this, it would not hold a queue that comes later.
    assert json.loads(said(capsys, "pause", "--json"))["pausedQueues"] == ["pi-jobs"]
    said(capsys, "resume")
    assert bench.store.paused() == {}


def test_of_a_pause_of_everything_no_part_is_taken_back(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "pause")
    assert "every queue is paused, and nothing was changed" in said(capsys, "resume", "pi-jobs", code=1)
    assert EVERY in bench.store.paused()


@pytest.mark.parametrize("name", ["celery", "pi-jobs@", "pi-jobs@a b", "*", "pi-jobs@../x"])
def test_what_is_no_queue_is_not_paused(bench: Bench, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert "is no queue: write pi-jobs, or pi-jobs@NAME" in said(capsys, "pause", name, code=1)
    assert bench.store.paused() == {}


def test_a_store_of_a_later_version_is_left_alone(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    with bench.server.client() as client:
        client.set("pi:schema", "99")
    for verb in ("pause", "resume", "status"):
        assert "is written in format 99" in said(capsys, verb, code=2)


def test_a_queue_that_nobody_has_used_is_paused_with_a_doubt(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.store.beat("build-1", {"queues": f"pi-jobs,{OTHER}"})
    assert _run(["pause", OTHER, "pi-jobs@biuld-1"]) == 0
    err = capsys.readouterr().err
    assert err == "note: no job and no worker has used pi-jobs@biuld-1 so far; is it spelt so?\n"
    assert set(bench.store.paused()) == {OTHER, "pi-jobs@biuld-1"}


@pytest.mark.parametrize(
    ("key", "field", "value"),
    [
        ("pi:job:local-1", "createdAt", None),
        ("pi:job:local-1", "createdAt", "9" * 18),
        ("pi:job:local-1", "attempt", "1.5"),
        ("pi:worker:w", "slots", "9" * 5_000),
    ],
)
def test_what_another_program_wrote_keeps_no_switch_from_working(
    bench: Bench, capsys: pytest.CaptureFixture[str], key: str, field: str, value: str | None
) -> None:
    bench.submit()
    bench.store.beat("w", {"queues": "pi-jobs", "slots": 3})
    with bench.server.client() as client:
        client.hdel(key, field) if value is None else client.hset(key, field, value)
    assert said(capsys, "pause").startswith("paused: ")
    assert re.search(r"^queues +PAUSED$", said(capsys, "status"), re.MULTILINE)
    assert said(capsys, "resume").startswith("resumed: ")
    assert bench.store.paused() == {}


def test_a_pause_whose_instant_cannot_be_read_is_a_pause(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    with bench.server.client() as client:
        client.set("pi:queue:paused:*", "since last week")
    assert json.loads(said(capsys, "status", "--json"))["pausedState"] == "paused"
    assert said(capsys, "resume").startswith("resumed: ")
    assert bench.store.paused() == {}

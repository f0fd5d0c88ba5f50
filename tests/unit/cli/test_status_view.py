"""What `status` says of a queue, from the values alone."""

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from pidispatch.cli.snapshot import Snapshot, as_document, tick_age_s
from pidispatch.cli.status_view import rendered
from pidispatch.jobs.overview import JobSeen, Overview, QueueSeen
from pidispatch.jobs.pausing import paused_state
from pidispatch.jobs.rows import WorkerSeen
from pidispatch.server.client import ServerFacts
from tests.support.facts import server_facts

AT = datetime(2026, 1, 2, 12, tzinfo=UTC)
FACTS = server_facts()
JOB = JobSeen(job_id="local-1", label="local site fix", queue="pi-jobs", attempt=1, max_attempts=2, created=AT)
QUIET = Overview(
    at=AT,
    all_paused_since=None,
    queues=(),
    active=0,
    running=(),
    deferred=0,
    held=(),
    oldest=None,
    failed=0,
    unrecorded=0,
)


def snapshot(facts: ServerFacts = FACTS, workers: tuple[WorkerSeen, ...] = (), **changes: Any) -> Snapshot:
    return Snapshot("redis://h:6379/0", facts, QUIET.model_copy(update=changes), workers)


def worker(name: str = "build-1", age_ms: int = 0, **fields: str) -> WorkerSeen:
    told = {"queues": "pi-jobs", "slots": "3", "running": "1", "heardS": "5", "engine": "e", **fields}
    return WorkerSeen(name=name, fields=told, age_ms=age_ms)


def queue(name: str = "pi-jobs", waiting: int = 0, paused: datetime | None = None) -> QueueSeen:
    return QueueSeen(name=name, waiting=waiting, first="local-1" if waiting else None, paused_since=paused)


def said(seen: Snapshot) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=False)
    console.print(rendered(seen, console))
    return out.getvalue()


def test_an_empty_queue_without_a_worker() -> None:
    assert said(snapshot()) == (
        "server      redis://h:6379/0: valkey 9.1.2, up 2 h\n"
        "queues      open\n"
        "jobs        0 running, 0 waiting, 0 held\n"
        "slots       0 of 0 taken\n"
        "no worker is running: start one with: pi-dispatch worker\n"
    )


@pytest.mark.parametrize(
    ("queues", "paused", "word"),
    [
        ([], [], "running"),
        (["a", "b"], [], "running"),
        (["a", "b"], ["a"], "part-paused"),
        (["a", "b"], ["a", "b"], "paused"),
        ([], ["*"], "paused"),
        (["a"], ["*", "a"], "paused"),
    ],
)
def test_the_queues_in_one_word(queues: list[str], paused: list[str], word: str) -> None:
    assert paused_state(queues, paused) == word


def test_what_waits_in_a_paused_queue_counts_as_paused() -> None:
    seen = snapshot(queues=(queue("pi-jobs", 3), queue("pi-jobs@b", 2, AT)))
    assert as_document(seen)["pausedState"] == "part-paused"
    assert (seen.counts()["waiting"], seen.counts()["paused"]) == (3, 2)
    everything = snapshot(queues=(queue("pi-jobs", 3),), all_paused_since=AT)
    assert (everything.counts()["waiting"], everything.counts()["paused"]) == (0, 3)
    assert "3 in paused queues" in said(everything)
    assert "PAUSED since 2026-01-02 12:00:00Z" in said(everything)


def test_a_deaf_worker_and_a_forgetful_server_are_told() -> None:
    text = said(snapshot(FACTS.model_copy(update={"appendonly": False}), (worker(heardS="400"),)))
    assert "worker build-1 has heard nothing for 6 min; see its log" in text
    assert "the server does not keep all it is told: set appendonly yes and maxmemory-policy noeviction" in text


def test_a_worker_that_goes_on_with_an_old_file_is_told_loudly() -> None:
    seen = snapshot(workers=(worker(files="pause_windows"), worker("build-2", files="")))
    told = [line for line in said(seen).splitlines() if "refuses the last edit" in line]
    assert told == [
        "worker build-1 refuses the last edit of its pause-windows file and goes on with what it had before; "
        "its log says why: mend the file, see pi-dispatch check FILE"
    ]
    assert [one["files"] for one in as_document(seen)["workers"]] == [["pause_windows"], []]
    # One of an earlier version says nothing of files.
    assert as_document(snapshot(workers=(worker(),)))["workers"][0]["files"] == []


def test_silence_during_a_pause_is_no_deafness() -> None:
    assert "has heard nothing" not in said(snapshot(workers=(worker(heardS="400"),), all_paused_since=AT))


def test_ages_add_up() -> None:
    assert tick_age_s(worker(age_ms=12_400, heardS="5")) == 17


def test_a_worker_of_another_version_is_shown_as_far_as_it_is_understood() -> None:
    told = as_document(snapshot(workers=(worker(slots="many", heardS="-1", running=""),)))
    assert (told["workers"][0]["slots"], told["workers"][0]["tickAgeS"], told["slots"]["all"]) == (0, 0, 0)


def test_of_many_jobs_it_says_how_many_more() -> None:
    held = JOB.model_copy(update={"why": "host-busy", "until": AT + timedelta(hours=3)})
    running = JOB.model_copy(update={"worker": "build-1", "since": AT - timedelta(minutes=5)})
    text = said(snapshot(active=7, running=(running,), deferred=5_001, held=(held,), unrecorded=1_200, failed=4))
    assert "7 running, 0 waiting, 5,001 held, 4 failed lately" in text
    assert "and 6 more" in text
    assert "and 5,000 more" in text
    assert "2026-01-02 15:00:00Z (in 3 h)" in text
    assert "records     1,200 still to be written by a worker" in text


def test_an_instant_that_has_passed_is_now() -> None:
    held = JOB.model_copy(update={"until": AT - timedelta(seconds=9)})
    assert "(in 0 s)" in said(snapshot(deferred=1, held=(held,)))


def test_text_from_elsewhere_is_made_harmless() -> None:
    evil = JOB.model_copy(update={"label": "local a\x1b[31m\u202eb -", "why": "[red]x"})
    text = said(snapshot(deferred=1, held=(evil,), workers=(worker("w\x07"),)))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\x07" not in text
    assert "[red]x" in text


def test_as_json_every_key_is_there_also_of_an_empty_queue() -> None:
    document = as_document(snapshot())
    assert (document["oldestWaiting"], document["running"], document["queues"], document["workers"]) == (
        None,
        [],
        [],
        [],
    )
    assert document["at"] == "2026-01-02T12:00:00Z"
    assert document["slots"] == {"taken": 0, "all": 0}

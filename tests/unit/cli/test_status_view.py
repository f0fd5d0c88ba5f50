"""What `status` says of a queue, from the values alone."""

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from pidispatch.cli.snapshot import Snapshot, as_document, tick_age_s
from pidispatch.cli.status_view import rendered
from pidispatch.jobs.deliveries import Source
from pidispatch.jobs.overview import JobSeen, Overview, QueueSeen
from pidispatch.jobs.pausing import paused_state
from pidispatch.jobs.rows import WorkerSeen
from pidispatch.jobs.triggered import TriggerPaused
from pidispatch.server.client import ServerFacts
from pidispatch.values.epoch import to_ms
from pidispatch.values.forge import JobKind
from pidispatch.values.limits import Limits
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


def heard(since: float, last: float | None, forge: JobKind = JobKind.GITHUB) -> Source:
    """A forge that is heard since so many seconds, and sent something so many ago."""
    return Source(
        forge=forge,
        since=AT - timedelta(seconds=since),
        last=None if last is None else AT - timedelta(seconds=last),
    )


@pytest.mark.example("ch8 F10", "status warns when a forge that is heard has been silent for long")
def test_f10_a_forge_that_has_gone_silent_is_told_with_the_remedy() -> None:
    long = Limits().source_silent_s
    seen = replace(snapshot(), sources=(heard(9 * long, long + 1), heard(9 * long, 60, JobKind.GITLAB)))
    [warned] = [line for line in said(seen).splitlines() if "has sent nothing since" in line]
    assert warned.startswith("GitHub has sent nothing since 2025-12-26 11:59:59Z (7 d): look at its list of recent")
    assert "pi-dispatch deliveries" in warned
    assert "with 401 there the secret is another one than the receiver's" in warned
    assert [one["silent"] for one in as_document(seen)["sources"]] == [True, False]
    assert as_document(seen)["sources"][0]["last"] == "2025-12-26T11:59:59Z"


def test_a_receiver_with_a_broken_file_is_told_though_no_worker_has_that_file() -> None:
    source = heard(60, 5)
    seen = replace(snapshot(), sources=(source.model_copy(update={"faulty": True}),))
    assert "the receiver that hears GitHub refuses the last edit of its triggers file" in said(seen)
    assert as_document(seen)["sources"][0]["faulty"] is True
    assert "refuses the last edit" not in said(replace(snapshot(), sources=(source,)))


@pytest.mark.parametrize(
    ("since", "last", "silent", "fact"),
    [
        (Limits().source_silent_s - 1, None, False, "nothing as yet"),
        (Limits().source_silent_s + 1, None, True, "nothing as yet"),
        (9 * Limits().source_silent_s, Limits().source_silent_s, False, "last 7 d ago"),
        (60, 5, False, "last 5 s ago"),
    ],
)
def test_what_counts_as_silent(since: float, last: float | None, silent: bool, fact: str) -> None:
    seen = replace(snapshot(), sources=(heard(since, last),))
    assert as_document(seen)["sources"][0]["silent"] is silent
    assert ("has sent nothing since" in said(seen)) is silent
    assert f"events      GitHub, {fact}\n" in said(seen)


def test_without_a_receiver_nothing_is_said_of_events() -> None:
    assert "events" not in said(snapshot())
    assert [as_document(snapshot())[key] for key in ("sources", "pausedTriggers", "unservedRules")] == [[], [], []]


def test_a_paused_trigger_is_told_with_what_lets_it_go_on() -> None:
    failed = TriggerPaused(at=to_ms(AT), runs=5, job_id="gh-1", reason="image-missing", label="github a/b#7 fix")
    idle = TriggerPaused(at=to_ms(AT), runs=1_000, job_id="repeat:nightly:1")
    seen = replace(snapshot(), paused={"0123456789abcdef": failed, "nightly": idle})
    told = [line for line in said(seen).splitlines() if "is PAUSED" in line]
    assert told == [
        "trigger 0123456789abcdef (github a/b#7 fix) is PAUSED since 2026-01-02 12:00:00Z: 5 runs in a row came to "
        "nothing, the last of them gh-1 (image-missing); to go on: pi-dispatch triggers resume 0123456789abcdef",
        "trigger nightly is PAUSED since 2026-01-02 12:00:00Z: 1,000 runs in a row came to nothing, the last of them "
        "repeat:nightly:1 (it changed nothing); to go on: pi-dispatch triggers resume nightly",
    ]
    assert as_document(seen)["pausedTriggers"][1] == {
        "trigger": "nightly",
        "since": "2026-01-02T12:00:00Z",
        "runs": 1000,
        "reason": None,
        "jobId": "repeat:nightly:1",
        "label": None,
    }


def test_rules_that_nothing_hears_are_told() -> None:
    seen = replace(snapshot(), unheard={"gitlab": [0, 3]})
    assert "this version does not hear GitLab, so these triggers cannot fire: 0, 3\n" in said(seen)
    assert as_document(seen)["unservedRules"] == [{"forge": "gitlab", "indexes": [0, 3]}]

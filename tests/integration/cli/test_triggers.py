"""`triggers`: a file, a server, the jobs of the last occurrences, and what keeps entries from firing."""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from pidispatch.cli.main import _run
from pidispatch.jobs.rows import Acquired
from pidispatch.jobs.store import JobStore
from pidispatch.server.address import Address
from pidispatch.server.client import connect
from pidispatch.triggers.file import parse_triggers
from pidispatch.triggers.identity import breaker_of
from pidispatch.triggers.occurrences import cron_id
from pidispatch.values.change import Change
from pidispatch.values.job import LocalJob
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Completed, InfraFailed, Outcome, Refused
from pidispatch.values.reason import Reason
from pidispatch.values.record import Result, RunRecord
from tests.integration.cli.bench import NOW, OWNER, WORKER, Bench
from tests.support.documented import documented, keys
from tests.support.oneshots import entries_of, fired_by, identity, marked, rule, write
from tests.unit.triggers.entries import rule as plain_rule


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
    assert "how the last ones went, and which triggers are paused or spent, is not known" in captured.err


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


@pytest.fixture
def store(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobStore]:
    """The store as a worker has it that pauses a trigger at its second run that comes to nothing."""
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    with closing(connect(Address.parse(bench.server.url))) as client:
        yield JobStore(client, "pi:", Limits(), breaker_runs=2)


def ends(bench: Bench, store: JobStore, job_id: str, breaker: str, outcome: Outcome, changed: bool | None) -> RunRecord:
    """A job of this trigger is handed in, runs and ends."""
    job = LocalJob(id=job_id, folder=bench.repository.path, task="a private task", breaker=breaker)
    assert store.submit(job, queue="pi-jobs", max_attempts=1).status == "submitted"
    acquired = store.acquire(job_id, 0, OWNER)
    assert isinstance(acquired, Acquired)
    change = None
    if changed is not None:
        change = Change(changed=changed, commits=0, head=None, files=(), dirty_before=False)
    result = Result.begin(NOW, "p", "m").ending(outcome).model_copy(update={"change": change})
    record = RunRecord.of(job, result, WORKER)
    store.finish(acquired.lease, record)
    return record


def spent(store: JobStore, entry: dict[str, Any], job_id: str = "gh-1") -> str:
    """The job of a rule that fires once, and ended."""
    job = fired_by(entry, job_id=job_id)
    assert store.submit(job, queue="pi-jobs").status == "submitted"
    acquired = store.acquire(job_id, 0, OWNER)
    assert isinstance(acquired, Acquired)
    result = Result.begin(NOW, "p", "m").ending(Refused(reason=Reason.UNPROTECTED_BRANCH))
    store.finish(acquired.lease, RunRecord.of(job, result, WORKER))
    return identity(entry)


ONCE, CLOSED = rule(40), rule(41)


@pytest.fixture
def rules(file: Path) -> Path:
    """The two schedules, and rules: one for each way in which an entry can stand."""
    more = [plain_rule(), ONCE, marked(CLOSED), plain_rule("gitlab"), plain_rule(trigger="comment")]
    return write(file, *entries_of(file), *more)


def breaker(path: Path, index: int) -> str:
    return breaker_of(parse_triggers(path.read_text(), path).triggers[index])


@pytest.mark.example("ch8 F14", "a schedule's last run that changed nothing is told beside its outcome")
@pytest.mark.usefixtures("file")
def test_f14_a_run_that_changed_nothing_is_told(
    bench: Bench, store: JobStore, capsys: pytest.CaptureFixture[str]
) -> None:
    at = datetime(2026, 5, 4, 1, tzinfo=UTC)
    ends(bench, store, cron_id("nightly", round(at.timestamp() * 1000)), "nightly", Completed(), changed=False)
    store.deal_with({"nightly": at})
    assert [one["changed"] for one in document(capsys)["triggers"]] == [False, None]
    assert _run(["triggers", "list"]) == 0
    assert "completed, changed nothing" in capsys.readouterr().out


def test_every_entry_is_listed_with_how_it_stands(
    rules: Path, bench: Bench, store: JobStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [one["state"] for one in document(capsys)["triggers"]] == [
        *("armed", "armed", "armed", "armed", "spent", "not served", "armed")
    ]
    spent(store, ONCE)
    for number in (1, 2):
        ends(bench, store, f"local-a{number}", "nightly", Completed(), changed=False)
        failed = InfraFailed(reason=Reason.INFRA, cause="exit-1")
        ends(bench, store, f"local-b{number}", breaker(rules, 6), failed, changed=None)
    told = document(capsys)
    assert keys(told) == documented("how-to/schedules.md", "## As JSON")
    found = told["triggers"]
    assert [one["state"] for one in found] == ["paused", "armed", "armed", "spent", "spent", "not served", "paused"]
    assert [one["spent"] and one["spent"]["by"] for one in found] == [None, None, None, "store", "file", None, None]
    assert (found[3]["spent"]["jobId"], found[4]["spent"]["jobId"]) == ("gh-1", "gh-0")
    assert (found[0]["paused"]["runs"], found[0]["paused"]["reason"], found[0]["paused"]["jobId"]) == (
        *(2, None, "local-a2"),
    )
    assert found[6]["paused"]["reason"] == "infra"
    assert (found[2]["when"], found[2]["runs"], found[2]["kind"], found[2]["id"]) == (
        *("an issue with any of the labels pi:fix", "flow fix", "github", None),
    )
    assert _run(["triggers", "list"]) == 0
    said = capsys.readouterr().out
    for words in (
        "trigger 0 (nightly) is PAUSED since ",
        "2 runs in a row came to nothing, the last of them local-a2 (it changed nothing); to go on: pi-dispatch "
        "triggers resume nightly",
        "trigger 3 has fired, with the job gh-1 (",
        "which the server knows and the file does not say; to arm it again: pi-dispatch triggers rearm 3",
        "trigger 4 has fired, with the job gh-0 (2026-05-04T03:00:00Z); to arm it again: pi-dispatch triggers rearm 4",
        "trigger 5 cannot fire: this version does not hear GitLab",
        "local-b2 (infra); to go on: pi-dispatch triggers resume 6",
    ):
        assert words in said
    assert "a private t" not in said + json.dumps(told)


@pytest.mark.usefixtures("rules")
def test_without_a_server_nothing_is_said_to_be_armed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VALKEY_URL", "redis://127.0.0.1:1/0")
    found = document(capsys)["triggers"]
    assert [one["state"] for one in found] == [
        *("unknown", "unknown", "unknown", "unknown", "spent", "not served", "unknown")
    ]
    assert [one["paused"] for one in found] == [None] * 7
    assert _run(["triggers", "list"]) == 0
    said = capsys.readouterr().out
    assert "armed" not in said
    assert said.count("unknown") == 3


def test_a_row_that_cannot_be_read_hides_no_other_entry(
    rules: Path, bench: Bench, store: JobStore, capsys: pytest.CaptureFixture[str]
) -> None:
    at = datetime(2026, 5, 4, 1, tzinfo=UTC)
    job_id = ended(bench, at, Completed())
    often = cron_id("often", round(at.timestamp() * 1000))
    bench.submit(often)
    store.deal_with({"often": at})
    for number in (1, 2):
        ends(bench, store, f"local-{number}", breaker(rules, 6), Completed(), changed=False)
    with bench.server.client() as client:
        client.hset(f"pi:job:{job_id}", "state", "of a later version")
    assert _run(["triggers", "list", "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)["triggers"]
    assert [(one["last"], one["jobId"], one["outcome"]) for one in found[:2]] == [
        ("2026-05-04T01:00:00Z", None, None),
        ("2026-05-04T01:00:00Z", often, "queued"),
    ]
    assert [one["state"] for one in found] == ["armed", "armed", "armed", "armed", "spent", "not served", "paused"]
    assert f"how the last one went is not known: the store holds job {job_id} in a form" in captured.err
    assert _run(["triggers", "list"]) == 0
    assert "trigger 6 is PAUSED" in capsys.readouterr().out


def test_a_file_of_rules_alone_has_no_zone(
    file: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    write(file, plain_rule(), marked(ONCE, {"at": "by hand"}))
    assert _run(["triggers", "list"]) == 0
    said = capsys.readouterr().out
    assert "zone" not in said
    assert "trigger 1 was disarmed by hand (by hand)" in said


def test_the_file_of_the_current_folder(
    file: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    monkeypatch.delenv("PI_TRIGGERS_FILE")
    monkeypatch.chdir(file.parent)
    assert document(capsys)["file"] == str(file)
    assert _run(["triggers", "list"]) == 0
    assert "a worker without it runs none of the schedules" in capsys.readouterr().err


@pytest.mark.parametrize(("index", "name"), [(0, "nightly"), (0, "0"), (6, "6")])
def test_a_paused_trigger_starts_jobs_again(
    index: int, name: str, rules: Path, bench: Bench, store: JobStore, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (1, 2):
        ends(bench, store, f"local-{number}", breaker(rules, index), Completed(), changed=False)
    assert list(store.paused_triggers()) == [breaker(rules, index)]
    assert _run(["triggers", "resume", name]) == 0
    called = "trigger 0 (nightly)" if index == 0 else "trigger 6"
    assert capsys.readouterr().out == (
        f"{called} starts jobs again; it was paused: 2 runs in a row came to nothing, the last of them local-2 (it "
        "changed nothing)\n"
    )
    assert store.paused_triggers() == {}
    # The runs before are forgotten: one more does not pause it.
    ends(bench, store, "local-3", breaker(rules, index), Completed(), changed=False)
    assert store.paused_triggers() == {}
    assert _run(["triggers", "resume", name]) == 0
    assert capsys.readouterr().out == f"{called} is not paused\n"


def test_what_is_told_to_resume_a_rule_does_not_reach_a_schedule_of_that_name(
    file: Path, bench: Bench, store: JobStore, capsys: pytest.CaptureFixture[str]
) -> None:
    [nightly, _] = entries_of(file)
    write(file, plain_rule(), {**nightly, "on": {**nightly["on"], "id": "0"}}, plain_rule(trigger="comment"))
    name = breaker(file, 0)
    for trigger in (name, "0", breaker(file, 2)):
        for number in (1, 2):
            ends(bench, store, f"local-{trigger}-{number}", trigger, Completed(), changed=False)
    assert _run(["triggers", "list"]) == 0
    said = capsys.readouterr().out.splitlines()
    commands = [line.rpartition("pi-dispatch ")[2] for line in said if "PAUSED" in line]
    assert commands == [f"triggers resume {name}", "triggers resume 0", "triggers resume 2"]
    for command, called in zip(commands, ("trigger 0", "trigger 1 (0)", "trigger 2"), strict=True):
        assert _run(command.split(" ")) == 0
        assert capsys.readouterr().out.startswith(f"{called} starts jobs again; it was paused: 2 runs")
    assert store.paused_triggers() == {}
    # It is called by its own name where it is not paused, too.
    assert _run(commands[0].split(" ")) == 0
    assert capsys.readouterr().out == "trigger 0 is not paused\n"


def test_a_schedule_that_is_gone_may_have_been_called_like_a_place(
    file: Path, bench: Bench, store: JobStore, capsys: pytest.CaptureFixture[str]
) -> None:
    write(file, plain_rule())
    for trigger in ("0", breaker(file, 0)):
        for number in (1, 2):
            ends(bench, store, f"local-{trigger}-{number}", trigger, Completed(), changed=False)
    # What is in the file goes first.
    assert _run(["triggers", "resume", "0"]) == 0
    assert list(store.paused_triggers()) == ["0"]
    assert _run(["triggers", "resume", "0"]) == 0
    assert store.paused_triggers() == {}
    assert _run(["triggers", "resume", "0"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(" starts")[0] for line in said] == ["trigger 0", "trigger 0", "trigger 0 is not paused"]


def test_a_paused_trigger_whose_rule_is_gone_is_named_as_status_does(
    rules: Path, bench: Bench, store: JobStore, capsys: pytest.CaptureFixture[str]
) -> None:
    name = breaker(rules, 6)
    for number in (1, 2):
        ends(bench, store, f"local-{number}", name, Completed(), changed=False)
    assert _run(["status"]) == 0
    assert f"pi-dispatch triggers resume {name}" in capsys.readouterr().out
    write(rules)
    assert _run(["triggers", "resume", "x"]) == 1
    assert f"There are: {name}." in capsys.readouterr().err
    rules.write_text("{")
    assert _run(["triggers", "resume", name]) == 0
    assert f"trigger {name} starts jobs again" in capsys.readouterr().out


def test_what_there_is_to_resume_is_named(
    rules: Path, store: JobStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert store.paused_triggers() == {}
    for name in ("7", "often\x1b", "-1", "²", "9" * 5_000):
        assert _run(["triggers", "resume", "--", name]) == 1
        said = capsys.readouterr().err
        assert "There are: 0 (nightly), 1 (often), 2 (an issue with any of the labels pi:fix), " in said
        assert "\x1b" not in said
    write(rules, *[plain_rule()] * 12)
    assert _run(["triggers", "resume", "12"]) == 1
    assert "9 (an issue with any of the labels pi:fix) and 2 more." in capsys.readouterr().err
    rules.write_text("{")
    assert _run(["triggers", "resume", "0"]) == 1
    said = capsys.readouterr().err
    assert "None is known" in said
    assert "is no JSON" in said
    monkeypatch.setenv("VALKEY_URL", "redis://127.0.0.1:1/0")
    assert _run(["triggers", "resume", "0"]) == 1
    assert "does not answer" in capsys.readouterr().err


def test_a_rule_that_has_fired_is_armed_again_in_both_places(
    rules: Path, store: JobStore, capsys: pytest.CaptureFixture[str]
) -> None:
    spent(store, CLOSED)
    assert _run(["triggers", "rearm", "4"]) == 0
    assert capsys.readouterr().out == (
        f"its mark on the server is gone\nits mark in {rules} is gone\ntrigger 4 is armed: issue 41 closed, once\n"
    )
    assert entries_of(rules)[4] == CLOSED
    assert store.spent([identity(CLOSED)]) == {}
    assert _run(["triggers", "rearm", "4"]) == 0
    assert capsys.readouterr().out == (
        "the server had no mark of it\nthe file has no mark of it\ntrigger 4 is armed: issue 41 closed, once\n"
    )


def test_a_file_that_cannot_be_written_is_told(
    rules: Path, store: JobStore, capsys: pytest.CaptureFixture[str]
) -> None:
    spent(store, CLOSED)
    before = rules.read_text()
    # What a writer finds where another one is at work, which root is held by as well.
    lock = Path(f"{rules}.lock")
    lock.touch()
    os.utime(lock)
    assert _run(["triggers", "rearm", "4"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "its mark on the server is gone\n"
    assert "trigger 4 is still spent by the file" in captured.err
    assert 'The server\'s mark is gone: take "disarmed" out of the entry by hand' in captured.err
    assert (rules.read_text(), store.spent([identity(CLOSED)])) == (before, {})


@pytest.mark.parametrize(
    ("index", "code", "says"),
    [
        ("2", 1, "trigger 2 does not fire once"),
        ("0", 1, "trigger 0 does not fire once"),
        ("7", 1, "there is no trigger 7. There are: 0 (nightly), "),
        ("nightly", 1, "'nightly' is not a valid integer"),
    ],
)
def test_what_cannot_be_armed(
    index: str, code: int, says: str, rules: Path, store: JobStore, capsys: pytest.CaptureFixture[str]
) -> None:
    before = rules.read_text()
    assert _run(["triggers", "rearm", index]) == code
    assert says in capsys.readouterr().err
    assert rules.read_text() == before
    assert store.paused_triggers() == {}


def test_without_a_server_no_mark_is_taken_out(
    rules: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VALKEY_URL", "redis://127.0.0.1:1/0")
    before = rules.read_text()
    assert _run(["triggers", "rearm", "4"]) == 1
    assert "does not answer" in capsys.readouterr().err
    assert rules.read_text() == before

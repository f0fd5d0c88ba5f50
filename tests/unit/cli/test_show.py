"""The verb `show`: all that is on record of one run, found by its id or the beginning of it."""

import json
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pidispatch.cli.main import _run
from pidispatch.cli.show import explained
from pidispatch.runs.records import RecordStore
from pidispatch.values.reason import Reason, RunnerReason
from pidispatch.values.record import SessionUse
from pidispatch.values.usage import Context
from tests.unit.runs.history import NOW, record
from tests.unit.runs.indexed import Indexed
from tests.unit.values.test_record import TELEMETRY


@pytest.fixture(params=[False, True], ids=["without", "indexed"])
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[RecordStore]:
    """Records without and with an index, by which the beginnings of ids are looked for."""
    place = Indexed(tmp_path)
    monkeypatch.setenv("PI_LOGS_DIR", str(place.store.folder))
    monkeypatch.setenv("PI_STATE_DIR", str(place.state))
    yield place.store if request.param else place.unheard
    place.index.close()


def shown(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, str], str]:
    """Exit code, the facts by their names, and standard error."""
    code = _run(["show", *arguments])
    captured = capsys.readouterr()
    return code, {line[:12].strip(): line[12:] for line in captured.out.splitlines()}, captured.err


#: A run of which everything is known.
WHOLE: dict[str, Any] = {
    "flow": "fix",
    "command": "deploy",
    "outcome": "policy",
    "reason": "runner-policy",
    "cause": "turn_budget",
    "ended_at": NOW + timedelta(seconds=3723),
    "exit_code": 2,
    "turns": 30,
    "tokens": {"total": Decimal(1500), "cost": Decimal("0.25"), "unpriced": Decimal(2)},
    "usage": TELEMETRY.usage,
    "context": Context(tokens=10, window=200000),
    "budget_reserved": True,
    "image_digest": "sha256:00",
    "changed": True,
    "git_restored": 1,
    "parent_job_id": "local-0",
    "chain_depth": 1,
    "chain_enqueued": 0,
    "chain_refused": 3,
    "replica": 1,
    "replicas": 2,
    "trigger_type": "label",
    "trigger_index": 0,
    "session": SessionUse(resumed=False, reason="absent", bytes=None),
    "trace_id": "abc",
}
FACTS = {
    "job": "local:1",
    "target": "local:site",
    "flow": "fix",
    "command": "deploy",
    "outcome": "policy",
    "reason": "runner-policy",
    "cause": "turn_budget",
    "why": RunnerReason.TURN_BUDGET.meaning,
    "remedy": RunnerReason.TURN_BUDGET.remedy,
    "started": "2030-01-02 03:04:05Z",
    "ended": "2030-01-02 04:06:08Z",
    "took": "1:02:03",
    "turns": "30",
    "tokens": "1,500",
    "cost": "$0.2500",
    "": "and 2 calls without a known price",
    "by model": "anthropic/m: calls 2, input 10, output 5, cache read 0, cache write 0, total 15, $0.0001",
    "context": "10 of 200,000 tokens at the end",
    "counted": "yes (whether it stays counted in the windows of runs)",
    "model": "anthropic/m",
    "host": "host-1",
    "image": "sha256:00",
    "exit code": "2",
    "attempt": "1",
    "changed": "yes",
    "git": "1 entries of the git directory put back",
    "session": "not resumed (absent), - bytes",
    "parent": "local-0",
    "chain depth": "1",
    "chained": "0",
    "not chained": "3",
    "replica": "r1/2",
    "trigger": "label",
    "trigger no.": "0",
    "trace": "abc",
    "output": "not kept; PI_CAPTURE_JOB_LOGS=1 keeps it",
}


def test_every_fact_of_a_run(store: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    path = store.write(record("local:1", **WHOLE))
    code, facts, err = shown("local:1", capsys=capsys)
    assert (code, err) == (0, "")
    assert facts == FACTS | {"record": str(path)}


def test_what_a_run_has_nothing_of_is_left_out(store: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.write(record("local-1", changed=False, started_at=None))
    store.log_path("local-1").write_text("out")
    _, facts, _ = shown("local-1", capsys=capsys)
    assert not {"flow", "reason", "why", "remedy", "took", "session", "git", "parent", "by model"} & set(facts)
    assert facts["changed"] == "no: the run left no change that git would show"
    assert facts["turns"] == facts["cost"] == facts["exit code"] == "-"
    assert facts["output"] == f"{store.folder}/local-1.log (pi-dispatch logs local-1)"


def test_a_reason_that_says_it_all_has_no_cause(store: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.write(record("local-1", outcome="failed", reason="container-detached"))
    _, facts, _ = shown("local-1", capsys=capsys)
    assert "cause" not in facts
    assert facts["why"] == Reason.CONTAINER_DETACHED.meaning


def test_json_is_the_record_by_its_own_keys(store: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    path = store.write(record("local-1", turns=3))
    assert _run(["show", "local-1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(path.read_text())


def test_the_beginning_of_an_id_is_enough_where_it_is_one_runs(
    store: RecordStore, capsys: pytest.CaptureFixture[str]
) -> None:
    for job_id in ("local-1", "local-12", "local-2"):
        store.write(record(job_id))
    store.record_path("broken").write_text("{")
    code, facts, err = shown("local-2", capsys=capsys)
    assert (code, facts["job"], err) == (0, "local-2", "")
    assert shown("local-12", capsys=capsys)[1]["job"] == "local-12"
    store.write(record("other-3"))
    assert shown("oth", capsys=capsys)[1]["job"] == "other-3"
    assert shown("local-1", capsys=capsys)[1]["job"] == "local-1"
    code, facts, err = shown("local-", capsys=capsys)
    assert (code, facts) == (1, {})
    assert "'local-' begins the ids of 3 runs: local-2, local-12, local-1; write more" in err.replace(
        "local-1, local-12, local-2", "local-2, local-12, local-1"
    )
    assert "broken.json" in err


def test_a_run_is_shown_by_the_name_of_its_file_too(store: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    """Tab offers that name, and it has no `:` in it."""
    path = store.write(record("repeat:nightly:1777950000000"))
    assert path.stem == "repeat_nightly_1777950000000"
    code, facts, _ = shown(path.stem, capsys=capsys)
    assert (code, facts["job"]) == (0, "repeat:nightly:1777950000000")
    assert shown("repeat_nightly", capsys=capsys)[0] == 1
    assert shown(f"../{store.folder.name}/{path.stem}", capsys=capsys)[0] == 1


def test_many_candidates_are_counted(store: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(13):
        store.write(record(f"local-{number}"))
    assert "and 3 more; write more" in shown("l", capsys=capsys)[2]


@pytest.mark.parametrize("asked", ["local-9", "\x1b[31m", "x" * 5000, "../local-1"])
def test_an_unknown_id_ends_with_1_and_says_where_it_looked(
    store: RecordStore, asked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store.write(record("local-1"))
    code, facts, err = shown(asked, capsys=capsys)
    assert (code, facts) == (1, {})
    assert str(store.folder) in err
    assert "pi-dispatch runs" in err
    assert "\x1b" not in err


def test_an_empty_id_is_a_wrong_call(store: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    code, facts, err = shown("", capsys=capsys)
    assert (code, facts) == (1, {})
    assert "JOBID is empty" in err


def test_text_is_escaped(store: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.write(record("local-1", target="[red]\x1b[31m\u202e", host="\x07"))
    _, facts, _ = shown("local-1", capsys=capsys)
    assert facts["target"] == "[red]\\u{001B}[31m\\u{202E}"
    assert facts["host"] == "\\u{0007}"


@pytest.mark.parametrize("reason", [*Reason])
def test_every_reason_is_explained(reason: Reason) -> None:
    assert explained(reason.value, None) == (reason.meaning, reason.remedy)


def test_a_cause_explains_where_it_is_the_runners_own_word() -> None:
    assert explained("infra", "error") == (RunnerReason.ERROR.meaning, RunnerReason.ERROR.remedy)
    assert explained("runner-policy", "terminated") == (
        RunnerReason.TERMINATED.meaning,
        Reason.RUNNER_POLICY.remedy,
    )
    assert explained("config-refused", "config") == (Reason.CONFIG_REFUSED.meaning, Reason.CONFIG_REFUSED.remedy)
    assert "does not know" in explained("of-a-later-version", None)[0]

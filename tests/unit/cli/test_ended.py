"""How a job ended, as it is shown to the one who waited: in full where that is told, else from the record."""

import io
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from pidispatch.cli.ended import Ended, as_document, ended_as, show_end
from pidispatch.jobs.endings import Telling
from pidispatch.runs.records import RecordStore
from pidispatch.values.cause import CAUSES
from pidispatch.values.change import Change
from pidispatch.values.job import LocalJob
from pidispatch.values.outcome import Aborted, Completed, InfraFailed, Outcome, Refused
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.record import Result, RunRecord
from pidispatch.values.usage import Telemetry

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JOB = LocalJob(id="local-1", folder=Path("/srv/site"), task="x")
_BESIDE = {"change", "changeError", "diff", "outboxFiles", "restored", "kept", "guardError", "record"}


def _result(outcome: Outcome, **update: object) -> Result:
    return Result.begin(NOW, "p", "m").ending(outcome).model_copy(update=update)


def _record(result: Result) -> RunRecord:
    return RunRecord.of(JOB, result, "here")


def _told(result: Result, **more: object) -> dict[str, object]:
    document: dict[str, object] = Telling(result=result, record="/logs/local-1.json").model_dump(mode="json")
    return document | more


@pytest.fixture
def records(tmp_path: Path) -> RecordStore:
    return RecordStore(tmp_path)


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (Completed(), 0),
        (Completed(truncated=True), 0),
        (Refused(reason=Reason.CONFIG_REFUSED), 2),
        (Aborted(reason=Reason.OPERATOR_CANCEL, cause=AbortReason.OPERATOR_CANCEL), 2),
        (InfraFailed(reason=Reason.INFRA), 1),
    ],
)
def test_the_exit_code_is_the_outcomes(outcome: Outcome, code: int) -> None:
    assert Ended(_record(_result(outcome))).exit_code == code


def test_json_holds_the_records_keys_as_they_are() -> None:
    change = Change(changed=True, commits=0, head=None, files=(), dirty_before=False)
    result = _result(Completed(), change=change, diff="+x", outbox_files=2)
    document = as_document(Ended(_record(result), result, "/logs/local-1.json"))
    keys = _record(result).model_dump(mode="json")
    assert {key: document[key] for key in keys} == keys
    assert set(document) - set(keys) == _BESIDE
    assert document["record"] == "/logs/local-1.json"
    assert document["change"] == {
        "changed": True, "commits": 0, "head": None, "files": [], "dirtyBefore": False, "truncated": False
    }  # fmt: skip
    assert json.loads(json.dumps(document)) == document


@pytest.mark.parametrize(
    ("outcome", "why", "remedy"),
    [
        (Refused(reason=Reason.INFRA, detail="d", remedy="r"), "d", "r"),
        (Refused(reason=Reason.INFRA), Reason.INFRA.meaning, Reason.INFRA.remedy),
        (InfraFailed(reason=Reason.INFRA, detail="d"), "d", Reason.INFRA.remedy),
        (
            Aborted(reason=Reason.WORKER_ABORT, cause=AbortReason.SHUTDOWN),
            Reason.WORKER_ABORT.meaning,
            Reason.WORKER_ABORT.remedy,
        ),
    ],
)
def test_json_says_why_and_what_to_do(outcome: Outcome, why: str, remedy: str) -> None:
    result = _result(outcome, telemetry=Telemetry(message="said"))
    document = as_document(Ended(_record(result), result))
    assert (document["why"], document["remedy"], document["message"]) == (why, remedy, "said")


def test_a_record_alone_is_explained_by_its_cause() -> None:
    record = _record(_result(Refused(reason=Reason.CONFIG_REFUSED, cause="dirty-tree", detail="names a file")))
    document = as_document(Ended(record))
    assert (document["why"], document["remedy"], document["message"]) == (*CAUSES["dirty-tree"], None)
    assert {document[key] for key in _BESIDE} == {None}


def test_a_record_alone_of_a_completed_job_needs_no_explanation() -> None:
    document = as_document(Ended(_record(_result(Completed()))))
    assert {"why", "remedy", "message"} & set(document) == set()


def test_what_is_told_is_taken(records: RecordStore) -> None:
    result = _result(Completed(), diff="+x")
    assert ended_as(_record(result), _told(result), records) == Ended(_record(result), result, "/logs/local-1.json")


@pytest.mark.parametrize(
    "document",
    [
        None,
        {},
        {"result": {"v": 2}},
        _told(_result(Completed(), started_at=NOW - timedelta(minutes=1))),
        _told(_result(InfraFailed(reason=Reason.INFRA))),
        _told(_result(Completed())) | {"result": "x"},
    ],
    ids=["gone", "empty", "another version's", "another attempt's", "another end", "malformed"],
)
def test_what_is_not_told_of_this_end_is_left_out(records: RecordStore, document: Mapping[str, object] | None) -> None:
    record = _record(_result(Completed()))
    assert ended_as(record, document, records) == Ended(record)


def test_keys_of_a_later_version_beside_the_result_are_ignored(records: RecordStore) -> None:
    result = _result(Completed())
    assert ended_as(_record(result), _told(result, later=1), records).result == result


def test_a_record_on_this_machine_is_named(records: RecordStore) -> None:
    record = _record(_result(Completed()))
    path = records.write(record)
    assert ended_as(record, None, records).path == str(path)
    # One of an attempt before is not this end's.
    assert ended_as(record.model_copy(update={"attempt": 2}), None, records).path is None


def test_a_record_that_is_late_is_told_and_not_named(records: RecordStore) -> None:
    result = _result(Completed())
    for document in (_told(result), None):
        ended = ended_as(_record(result), document, records, late=True)
        assert ended.path is None
        assert "not written yet" in (ended.record_error or "")
    failed = ended_as(_record(result), _told(result, recordError="no space"), records, late=True)
    assert (failed.path, failed.record_error) == (None, "the record of this run could not be written: no space")


def _shown(ended: Ended, records: RecordStore, capsys: pytest.CaptureFixture[str], *, as_json: bool) -> tuple[str, str]:
    notes = io.StringIO()
    show_end(JOB, ended, records, Console(file=notes), as_json=as_json)
    return capsys.readouterr().out, notes.getvalue()


def test_what_is_told_is_shown_as_a_result(records: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    result = _result(Refused(reason=Reason.JOB_IMAGE_MISSING, detail="not on this engine"))
    ended = Ended(_record(result), result, "/logs/local-1.json")
    out, notes = _shown(ended, records, capsys, as_json=False)
    assert out.startswith("refused    job-image-missing\nwhy        not on this engine\n")
    assert "record     /logs/local-1.json (pi-dispatch show local-1)" in out
    assert notes == ""
    out, _ = _shown(ended, records, capsys, as_json=True)
    assert json.loads(out) == as_document(ended)


def test_a_record_alone_is_shown_as_show_does(records: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    record = _record(_result(InfraFailed(reason=Reason.WORKER_LOST)))
    out, notes = _shown(Ended(record, record_error="no space\x07"), records, capsys, as_json=False)
    assert "outcome     failed" in out
    assert f"why         {Reason.WORKER_LOST.meaning}" in out
    assert notes == "note: no space\\u{0007}\n"

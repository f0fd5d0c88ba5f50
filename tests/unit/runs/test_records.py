"""The files of the run records: what is written is read back, what is broken stops nothing, what is old goes."""

import json
import os
import stat
import tempfile
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from pidispatch.runs.recordfile import MAX_RECORD_BYTES
from pidispatch.runs.records import RecordStore
from pidispatch.values.change import Change, FileChange
from pidispatch.values.errors import InfraError
from pidispatch.values.job import LocalJob
from pidispatch.values.outcome import Completed, InfraFailed, Outcome, Refused
from pidispatch.values.reason import Reason
from pidispatch.values.record import Result, RunRecord
from pidispatch.values.usage import Telemetry
from tests.unit.runs.history import NOW, record, records

DAY = 86_400


@pytest.fixture
def store(tmp_path: Path) -> RecordStore:
    store = RecordStore(tmp_path / "logs")
    store.prepare()
    return store


def aged(path: Path, days: float, now: datetime = NOW) -> Path:
    """`path`, last written so many days before `now`; made where it is absent."""
    if not path.exists():
        path.write_text("x")
    when = now.timestamp() - days * DAY
    os.utime(path, (when, when), follow_symlinks=False)
    return path


@settings(deadline=None)
@given(records)
def test_what_is_written_is_read_back(written: RunRecord) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = RecordStore(Path(folder))
        store.write(written)
        assert store.find(written.job_id) == written
        assert store.all().records == (written,)
        assert store.all().unreadable == ()


@settings(deadline=None)
@given(st.binary(max_size=200) | records.map(lambda r: r.model_dump_json().encode()[:-3]))
def test_no_bytes_of_a_file_raise(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = RecordStore(Path(folder))
        store.record_path("a").write_bytes(data)
        store.write(record("b"))
        history = store.all()
        assert [found.job_id for found in history.records] == ["b"]
        assert [found.file for found in history.unreadable] == ["a.json"]
        assert store.find("a") is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.sampled_from([str(field.alias) for field in RunRecord.model_fields.values()]), _JSON)
def test_no_value_of_a_key_raises(key: str, value: object) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = RecordStore(Path(folder))
        store.record_path("a").write_text(json.dumps(record("a").model_dump(mode="json") | {key: value}))
        history = store.all()
        assert len(history.records) + len(history.unreadable) == 1
        for found in history.records:
            assert json.loads(found.model_dump_json())["outcome"] in ("completed", "policy", "failed")


@pytest.mark.parametrize(
    "number", ["NaN", "-Infinity", "1e999", "1e999999999", "1e99999999999999999999", "9" * 5000, "[" * 5000]
)
def test_a_number_that_is_none_makes_no_record(store: RecordStore, number: str) -> None:
    text = record("a", tokens={"total": Decimal(7)}).model_dump_json().replace('"total":7', f'"total":{number}')
    store.record_path("a").write_text(text)
    assert [found.file for found in store.all().unreadable] == ["a.json"]


def test_one_object_and_a_newline_private_and_by_its_keys(store: RecordStore) -> None:
    path = store.write(record())
    data = path.read_bytes()
    assert data.endswith(b"}\n")
    assert data.count(b"\n") == 1
    assert set(json.loads(data)) == {str(field.alias) for field in RunRecord.model_fields.values()}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700


def test_the_last_record_of_a_job_stays(store: RecordStore) -> None:
    store.write(record("a", turns=1))
    store.write(record("a", turns=2))
    assert [found.turns for found in store.all().records] == [2]
    assert os.listdir(store.folder) == ["a.json"]


@pytest.mark.example(
    "ch3 E21", "a record names its folder's last part, neither account nor task; its file has no colon"
)
def test_a_record_holds_neither_account_nor_task_and_its_file_no_colon(store: RecordStore) -> None:
    job = LocalJob(id="local:7:x", folder=Path("/home/alice/site"), task="say xylophone")
    path = store.write(RunRecord.of(job, Result.begin(NOW, "anthropic", "m").ending(Completed()), "host-1"))
    text = path.read_text()
    assert json.loads(text)["target"] == "local:site"
    assert "alice" not in text
    assert "xylophone" not in text
    assert path.name == "local_7_x.json"
    assert json.loads(text)["jobId"] == "local:7:x"


def test_two_ids_of_one_file_name_are_not_taken_for_each_other(store: RecordStore) -> None:
    store.write(record("a:b"))
    assert store.find("a_b") is None
    assert store.find("a:b") is not None
    assert store.record_path("").name == "unknown-job.json"


_hidden = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), max_size=20).map(
    lambda text: f"hidden-{text}-hidden"
)


@settings(deadline=None)
@given(st.data())
def test_no_text_of_a_job_or_its_end_is_ever_recorded(data: st.DataObject) -> None:
    def hidden() -> str:
        return data.draw(_hidden)

    ends: list[Outcome] = [
        Completed(),
        Refused(reason=Reason.RUNNER_POLICY, detail=hidden(), remedy=hidden()),
        InfraFailed(reason=Reason.INFRA, cause="error", detail=hidden(), remedy=hidden()),
    ]
    change = Change(
        changed=True,
        commits=1,
        head=hidden(),
        files=(FileChange(path=hidden(), kind="added"),),
        dirty_before=False,
    )
    told = {
        "telemetry": Telemetry(turns=1, message=hidden()),
        "change": change,
        "diff": hidden(),
        "change_error": hidden(),
        "restored": (hidden(),),
        "kept": hidden(),
        "guard_error": hidden(),
    }
    job = LocalJob(id="local-1", folder=Path("/", hidden(), hidden(), "site"), task=hidden())
    result = Result.begin(NOW, "anthropic", "m").ending(data.draw(st.sampled_from(ends))).model_copy(update=told)
    assert "hidden" not in RunRecord.of(job, result, "host-1").model_dump_json()


def test_newest_first_and_those_without_an_end_last(store: RecordStore) -> None:
    store.write(record("b", ended_at=NOW))
    store.write(record("c", ended_at=NOW + timedelta(hours=1)))
    store.write(record("a", started_at=None, ended_at=None))
    assert [found.job_id for found in store.all().records] == ["c", "b", "a"]


def test_an_instant_without_a_zone_is_read_as_utc_and_one_that_is_none_is_no_record(store: RecordStore) -> None:
    text = record("a").model_dump_json()
    stamp = '"2030-01-02T03:04:05Z"'
    store.record_path("a").write_text(text.replace(stamp, '"2030-01-02T05:04:05"'))
    store.record_path("b").write_text(text.replace(stamp, '"2030-01-02T05:04:05+02:00"'))
    store.record_path("c").write_text(text.replace(stamp, '"9999-12-31T23:59:59-02:00"'))
    history = store.all()
    assert [found.ended_at for found in history.records] == [datetime(2030, 1, 2, 5, 4, 5, tzinfo=UTC), NOW]
    assert [found.file for found in history.unreadable] == ["c.json"]


def test_keys_of_other_versions_are_left_out_and_missing_ones_are_nothing(store: RecordStore) -> None:
    document = record("a", tokens={"total": Decimal(7)}).model_dump(mode="json")
    document |= {"venue": {"kind": "x"}, "context": {"tokens": 1, "window": 2, "peak": 3}}
    del document["host"], document["gitRestored"], document["attempt"]
    store.record_path("a").write_text(json.dumps(document))
    found = store.find("a")
    assert found is not None
    assert (found.host, found.git_restored, found.attempt) == (None, None, 1)
    assert found.context is not None
    assert found.context.window == 2


def test_broken_files_are_named_and_stop_no_other(store: RecordStore, tmp_path: Path) -> None:
    store.write(record("good"))
    text = record("x").model_dump_json()
    store.record_path("cut").write_text(text[:40])
    store.record_path("empty").write_text("")
    store.record_path("large").write_text(text + " " * MAX_RECORD_BYTES)
    store.record_path("list").write_text("[]")
    os.mkfifo(store.record_path("pipe"))
    store.record_path("folder").mkdir()
    (tmp_path / "outside").write_text(text)
    store.record_path("link").symlink_to(tmp_path / "outside")
    (store.folder / "notes.txt").write_text("not looked at")
    history = store.all()
    assert [found.job_id for found in history.records] == ["good"]
    whys = {found.file: found.why for found in history.unreadable}
    assert set(whys) == {f"{name}.json" for name in ("cut", "empty", "large", "list", "pipe", "folder", "link")}
    assert whys["large.json"] == "is larger than the 1048576 bytes of a run record"
    assert whys["pipe.json"] == "cannot be read: not a regular file"
    assert "not a whole one" in whys["cut.json"]


def test_a_folder_that_is_not_there_is_no_run_yet_and_is_not_made(tmp_path: Path) -> None:
    store = RecordStore(tmp_path / "none")
    assert store.all().records == ()
    assert store.find("a") is None
    assert store.find("a" * 5000) is None
    assert store.open_log("a") is None
    store.sweep(NOW, 1)
    assert not store.folder.exists()


def test_a_folder_that_cannot_be_listed_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfraError, match=r"PI_LOGS_DIR=.*file cannot be read: Not a directory") as caught:
        RecordStore(tmp_path / "file").all()
    assert caught.value.cause == "logs-dir"


def test_prepare_leaves_a_private_folder_and_nothing_in_it(tmp_path: Path) -> None:
    store = RecordStore(tmp_path / "a" / "logs")
    store.prepare()
    store.prepare()
    assert os.listdir(store.folder) == []
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700


def _file(path: Path) -> None:
    path.write_text("")


def _link(path: Path) -> None:
    path.symlink_to(path.parent)


def _foreign(path: Path) -> None:
    path.mkdir()
    os.chown(path, 12345, 12345)


@pytest.mark.parametrize("plant", [_file, _link, _foreign])
def test_prepare_refuses_what_is_no_folder_of_this_accounts(tmp_path: Path, plant: object) -> None:
    path = tmp_path / "logs"
    assert callable(plant)
    plant(path)
    with pytest.raises(InfraError, match=r"PI_LOGS_DIR=.*nothing is run.*Name a folder") as caught:
        RecordStore(path).prepare()
    assert (caught.value.cause, caught.value.exit_code) == ("logs-dir", 1)


def test_prepare_refuses_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(InfraError, match=r"cannot be written: No space left on device\..*PI_LOGS_DIR") as caught:
        RecordStore(tmp_path / "logs").prepare()
    assert caught.value.cause == "logs-dir"
    assert os.listdir(tmp_path / "logs") == []


def test_the_place_of_a_record_is_kept_until_it_is_written(store: RecordStore) -> None:
    store.reserve("local-1")
    (place,) = store.folder.iterdir()
    inode = place.stat().st_ino
    path = store.write(record("local-1"))
    assert path.stat().st_ino == inode
    assert store.find("local-1") == record("local-1")
    store.forgo("local-1")
    assert os.listdir(store.folder) == [path.name]


def test_a_full_disk_does_not_take_a_record_whose_place_is_kept(
    store: RecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.reserve("local-1")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkstemp", full)
    with pytest.raises(InfraError):
        store.write(record("local-2"))
    store.write(record("local-1"))
    assert store.find("local-1") == record("local-1")


def test_a_record_that_is_made_later_leaves_the_place_of_the_attempt_that_runs(store: RecordStore) -> None:
    store.reserve("local-1")
    (place,) = store.folder.iterdir()
    store.keep(record("local-1"))
    assert place.exists()
    inode = place.stat().st_ino
    store.add(record("local-1", attempt=2))
    assert store.record_path("local-1").stat().st_ino == inode


def test_a_place_is_one_attempts_and_can_be_given_up(store: RecordStore) -> None:
    store.forgo("local-1")
    store.reserve("local-1")
    store.reserve("local-1")
    assert len(os.listdir(store.folder)) == 1
    store.forgo("local-1")
    assert os.listdir(store.folder) == []


def test_a_place_that_was_cleared_away_keeps_no_record_from_being_written(store: RecordStore) -> None:
    store.reserve("local-1")
    (place,) = store.folder.iterdir()
    place.unlink()
    store.write(record("local-1"))
    assert store.find("local-1") == record("local-1")
    assert os.listdir(store.folder) == ["local-1.json"]


def test_a_record_that_cannot_be_written_is_told_by_its_id_alone(store: RecordStore) -> None:
    store.record_path("a").mkdir()
    with capture_logs() as logged, pytest.raises(InfraError, match=r"cannot be written to .*a\.json") as caught:
        store.write(record("a"))
    assert caught.value.cause == "record-unwritable"
    assert logged == [{"event": "run_record_failed", "log_level": "error", "jobId": "a", "reason": "EISDIR"}]


def test_text_that_is_none_ends_in_the_same_error(store: RecordStore) -> None:
    with capture_logs() as logged, pytest.raises(InfraError):
        store.write(record("a", flow="\ud800"))
    assert logged[0]["reason"] == "not-json"
    assert os.listdir(store.folder) == []


def test_the_sweep_removes_what_is_old_and_nothing_else(store: RecordStore, tmp_path: Path) -> None:
    folder = store.folder
    kept = {aged(folder / name, days).name for name, days in (("new.json", 29), ("new.log", 29.9), ("old.txt", 99))}
    (folder / "dir.json").mkdir()
    kept.add(aged(folder / "dir.json", 99).name)
    outside = aged(tmp_path / "outside.json", 99)
    (folder / "link.json").symlink_to(outside)
    kept.add(aged(folder / "link.json", 99).name)
    kept.add(aged(folder / ".tmp-abcd_123", 0.5).name)
    gone = {aged(folder / name, 31).name for name in ("old.json", "old.log")}
    gone.add(aged(folder / ".tmp-abcd_124", 2).name)
    with capture_logs() as logged:
        store.sweep(NOW, 30)
    assert set(os.listdir(folder)) == kept
    assert outside.exists()
    assert {entry["file"] for entry in logged if entry["event"] == "reaped_log"} == gone


def test_without_days_only_what_a_killed_writer_left_goes(store: RecordStore) -> None:
    aged(store.folder / "old.json", 9999)
    aged(store.folder / ".tmp-abcd_124", 2)
    store.sweep(NOW, 0)
    assert os.listdir(store.folder) == ["old.json"]
    store.sweep(NOW, 10**15 - 1)
    assert os.listdir(store.folder) == ["old.json"]


def test_an_entry_that_cannot_be_removed_stops_no_other(store: RecordStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.json", "b.json", "c.json"):
        aged(store.folder / name, 99)
    unlink = os.unlink

    def stubborn(path: str) -> None:
        if path.endswith("a.json"):
            raise PermissionError(1, "Operation not permitted")
        unlink(path)
        if path.endswith("b.json"):
            raise FileNotFoundError(2, "Another sweep was here first")

    monkeypatch.setattr(os, "unlink", stubborn)
    with capture_logs() as logged:
        store.sweep(NOW, 30)
    assert os.listdir(store.folder) == ["a.json"]
    assert {(entry["event"], entry.get("reason")) for entry in logged} == {
        ("log_reaper_skipped", "EPERM"),
        ("reaped_log", None),
    }


def test_a_folder_that_cannot_be_swept_is_told_to_the_log(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with capture_logs() as logged:
        RecordStore(tmp_path / "file").sweep(NOW, 1)
    assert [(entry["event"], entry["reason"]) for entry in logged] == [("log_reaper_skipped", "ENOTDIR")]


def test_kept_output_is_opened_where_it_is_a_file(store: RecordStore, tmp_path: Path) -> None:
    store.log_path("a:1").write_bytes(b"out")
    opened = store.open_log("a:1")
    assert opened is not None
    with opened:
        assert opened.read() == b"out"
    store.log_path("b").symlink_to(tmp_path)
    with pytest.raises(InfraError, match=r"b\.log cannot be read"):
        store.open_log("b")


def test_an_attempt_that_ended_here_always_counts(store: RecordStore) -> None:
    """The server may have forgotten the attempts before it: then its number is that of one of them."""
    failed = record("a", outcome="failed", reason="infra")
    later = [NOW + timedelta(minutes=minutes) for minutes in (0, 5, 9)]
    first, second, third = (failed.model_copy(update={"started_at": instant}) for instant in later)
    store.add(first.model_copy(update={"attempt": 2}))

    ended = store.add(second.model_copy(update={"attempt": 1}))

    assert store.find(ended.job_id) == ended
    assert (ended.attempt, [one.attempt for one in ended.attempts]) == (3, [2])
    # Told twice is written once.
    assert store.add(ended) == ended
    assert store.add(third.model_copy(update={"attempt": 4})).attempts == ended.as_earlier

"""The index as writers of records keep it: after each file, of this folder alone, and never in anybody's way."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pidispatch.runs.index import RecordIndex
from pidispatch.runs.index_look import Wanted, look
from pidispatch.runs.records import RecordStore
from tests.unit.runs.history import record
from tests.unit.runs.indexed import Indexed


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Indexed]:
    made = Indexed(tmp_path)
    yield made
    made.index.close()


def pass_over(_done: int, _of: int) -> None:
    """Hear of progress and say nothing."""


def logged_by(act: Callable[[], object]) -> list[tuple[str, str | None]]:
    with capture_logs() as logged:
        act()
    return [(entry["event"], entry.get("cause")) for entry in logged if entry["event"].startswith("index_")]


def test_a_record_is_in_the_index_right_after_its_file(place: Indexed) -> None:
    place.store.add(record("a", tokens={"cost": Decimal("0.25")}))
    place.store.add(record("a", attempt=2, tokens={"cost": Decimal("0.1")}))
    assert place.rows() == place.said()
    assert place.ask("SELECT sum(cost_micros) FROM attempts") == 350_000
    assert place.ask("SELECT count(*) FROM attempts WHERE last") == 1


def test_it_is_private_and_in_a_private_folder(place: Indexed) -> None:
    place.store.write(record("a"))
    assert stat.S_IMODE(place.state.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in place.state.iterdir() if "sqlite" in path.name}
    assert modes == dict.fromkeys(("index.sqlite", "index.sqlite-wal", "index.sqlite-shm"), 0o600)
    place.index.close()
    assert place.ask("PRAGMA journal_mode") == "wal"


def test_a_record_that_stood_already_is_told_again(place: Indexed) -> None:
    """Whoever wrote it was killed before the index heard of it, and a sweep repeats the write."""
    place.unheard.write(record("a"))
    place.store.keep(record("a"))
    assert place.rows() == place.said()


def test_what_the_retention_removes_leaves_the_index(place: Indexed) -> None:
    for job in ("a", "b"):
        place.store.write(record(job))
    os.utime(place.store.record_path("a"), (0, 0))
    place.store.sweep(datetime.now(UTC), 30)
    assert [row["file"] for row in place.rows()["files"]] == ["b.json"]
    assert place.rows() == place.said()


def test_a_sum_is_of_the_names_and_not_of_their_number(place: Indexed) -> None:
    for job in ("a", "b"):
        place.store.write(record(job))
    place.store.record_path("b").rename(place.store.record_path("c"))
    assert len(look(place.state, place.store, Wanted()).records) == 2


@pytest.mark.parametrize("put_back", [False, True])
def test_an_index_that_was_removed_is_begun_again(place: Indexed, put_back: bool) -> None:
    place.store.write(record("a"))
    place.path.unlink()
    if put_back:
        # By another process, as its own connection sees it.
        with closing(RecordIndex(place.state, place.store.folder)) as other:
            other.clear_up()
    place.store.write(record("b"))
    assert [row["file"] for row in place.rows()["files"]] == (["a.json", "b.json"] if put_back else ["b.json"])


def test_an_index_of_another_folder_is_left_to_it(place: Indexed, tmp_path: Path) -> None:
    place.store.write(record("a"))
    with closing(RecordIndex(place.state, tmp_path / "other")) as index:
        other = RecordStore(tmp_path / "other", index)
        other.prepare()
        assert logged_by(lambda: other.write(record("b"))) == [("index_unusable", "other-folder")]
        assert place.rows() == place.said()
        assert index.rebuild(pass_over).records == 1
        assert look(place.state, other, Wanted()).note is None
    assert "is of another PI_LOGS_DIR" in str(look(place.state, place.store, Wanted()).note)


def test_the_same_folder_by_a_link_is_the_same(place: Indexed, tmp_path: Path) -> None:
    place.store.write(record("a"))
    (tmp_path / "link").symlink_to(place.store.folder)
    found = look(place.state, RecordStore(tmp_path / "link"), Wanted())
    assert (len(found.records), found.note) == (1, None)


def test_clearing_up_reads_a_few_and_forgets_what_is_stale(place: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    for job in "abc":
        place.store.write(record(job))
    for job in "abcd":
        place.unheard.write(record(job, outcome="failed"))
    monkeypatch.setattr("pidispatch.runs.index.CLEAR_UP_FILES", 2)
    place.index.clear_up()
    assert [row["file"] for row in place.rows()["files"]] == ["a.json", "b.json"]
    assert look(place.state, place.store, Wanted(outcome="failed")).total == 4


def test_without_a_folder_of_records_nothing_is_made(tmp_path: Path) -> None:
    index = RecordIndex(tmp_path / "state", tmp_path / "logs")
    index.clear_up()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_changes_while_it_is_read_is_read_again(place: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    place.store.write(record("a"))
    read, times = RecordStore.read, iter(range(9))

    def and_another_writes(store: RecordStore, name: str) -> object:
        held = read(store, name)
        if next(times) == 0:
            place.unheard.write(record("a", outcome="failed", ended_at=datetime.now(UTC) + timedelta(days=1)))
        return held

    monkeypatch.setattr(RecordStore, "read", and_another_writes)
    place.index.refresh(("a.json",))
    assert place.rows() == place.said()
    assert place.ask("SELECT outcome FROM attempts") == "failed"


def test_text_that_no_table_holds_is_left_to_those_who_look(place: Indexed) -> None:
    text = record("a", flow="half").model_dump_json().replace("half", "\\ud800")
    place.store.record_path("a").write_text(text)
    os.mkdir(os.path.join(os.fsencode(place.store.folder), b"\xff.json"))
    place.index.clear_up()
    place.index.refresh(("\udcff.json",))
    assert [(row["file"], row["holds"]) for row in place.rows()["files"]] == [("a.json", 0)]
    found = look(place.state, place.store, Wanted())
    assert [one.flow for one in found.records] == ["\ud800"]
    assert [one.file for one in found.unreadable] == ["\udcff.json"]

"""What one finds who looks: the same by the index as by the files, and a word where the index is of no use."""

import gc
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pidispatch.runs import index_file, index_look
from pidispatch.runs.index import index_path
from pidispatch.runs.index_look import Wanted, look
from pidispatch.runs.index_read import Reader, _after
from pidispatch.runs.index_schema import SCHEMA
from pidispatch.runs.records import RecordStore
from tests.unit.runs.history import NOW, record
from tests.unit.runs.indexed import Indexed


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Indexed]:
    made = Indexed(tmp_path)
    yield made
    made.index.close()


def ids(place: Indexed, wanted: Wanted | None = None, limit: int | None = None) -> list[str]:
    return [one.job_id for one in look(place.state, place.store, wanted or Wanted(), limit).records]


def test_only_what_is_shown_is_read(place: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        place.store.write(record(f"job-{number:02}", ended_at=NOW - timedelta(minutes=number)))
    read: list[str] = []
    reading = RecordStore.read

    def noted(store: RecordStore, name: str) -> object:
        read.append(name)
        return reading(store, name)

    monkeypatch.setattr(RecordStore, "read", noted)
    found = look(place.state, place.store, Wanted(), 3)
    assert read == ["job-00.json", "job-01.json", "job-02.json"]
    assert (found.total, found.any, found.unreadable, found.note) == (30, True, (), None)


def test_files_that_are_gone_or_spoilt_make_room_for_the_next(place: Indexed) -> None:
    for number in range(6):
        place.store.write(record(f"job-{number}", ended_at=NOW - timedelta(minutes=number)))
    place.store.record_path("job-0").unlink()
    place.store.record_path("job-1").write_text("{")
    place.unheard.write(record("job-2", outcome="failed"))
    found = look(place.state, place.store, Wanted(outcome="completed"), 2)
    assert [one.job_id for one in found.records] == ["job-3", "job-4"]
    assert [one.file for one in found.unreadable] == ["job-1.json"]
    assert found.total == 3


def test_one_that_goes_between_the_list_and_the_look_is_left_out(
    place: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for job in "ab":
        place.store.write(record(job))
    matching = Reader.matching

    def and_one_goes(reader: Reader, wanted: Wanted) -> Iterator[str]:
        place.store.record_path("a").unlink()
        yield from matching(reader, wanted)

    monkeypatch.setattr(Reader, "matching", and_one_goes)
    found = look(place.state, place.store, Wanted())
    assert ([one.job_id for one in found.records], found.total, found.unreadable) == (["b"], 1, ())


def test_a_file_that_the_index_knows_to_hold_nothing_costs_no_more_than_itself(
    place: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.store.write(record("a"))
    place.store.record_path("junk").write_text("{")
    place.index.clear_up()
    asked: list[str] = []
    monkeypatch.setattr(Reader, "known", lambda _: asked.append("all names"))
    found = look(place.state, place.store, Wanted())
    assert [one.file for one in found.unreadable] == ["junk.json"]
    assert asked == []
    # Mended by hand, it is a run like any other.
    place.store.record_path("junk").write_text(record("junk").model_dump_json())
    assert ids(place) == ["a", "junk"]


def test_a_reader_leaves_the_index_as_it_is(place: Indexed) -> None:
    place.store.write(record("a"))
    place.index.close()
    before = {path.name: path.stat().st_mtime_ns for path in place.state.iterdir() if path.suffix == ".sqlite"}
    assert ids(place) == ["a"]
    assert before == {path.name: path.stat().st_mtime_ns for path in place.state.iterdir() if path.suffix == ".sqlite"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in place.state.glob("index.sqlite*")} == {0o600}


def test_no_index_is_one_that_knows_nothing(place: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    for job in "abc":
        place.unheard.write(record(job))
    monkeypatch.setattr(index_look, "UNTOLD_FILES", 2)
    for begun in (False, True):
        if begun:
            place.index.refresh(("of-no-file.json",))
        found = look(place.state, place.store, Wanted())
        assert place.path.exists() == begun
        assert [one.job_id for one in found.records] == ["a", "b", "c"]
        assert found.note is not None
        assert found.note.startswith("3 records are not in the index and were read one by one")
        assert found.note.endswith("pi-dispatch runs --reindex")
    monkeypatch.setattr(index_look, "UNTOLD_FILES", 3)
    assert look(place.state, place.store, Wanted()).note is None


def _version(path: Path, number: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {number}")


@pytest.mark.parametrize(
    ("harm", "meaning"),
    [
        (lambda path: path.write_bytes(os.urandom(50_000)), "is damaged"),
        (lambda path: os.truncate(path, 9000), "is damaged"),
        (lambda path: _version(path, SCHEMA + 1), "was made by a newer version of pi-dispatch"),
        (lambda path: _version(path, -1), "was made by an older version"),
        (lambda path: (path.unlink(), path.mkdir()), "cannot be read from its disk"),
    ],
    ids=["damaged", "cut", "newer", "older", "folder"],
)
def test_where_the_index_is_of_no_use_the_files_are_read(place: Indexed, harm: Any, meaning: str) -> None:
    for number in range(50):
        place.store.write(record(f"job-{number}", reason="infra", outcome="failed"))
    place.index.close()
    harm(place.path)
    found = look(place.state, place.store, Wanted(reason="infra"), 3)
    assert (len(found.records), found.total) == (3, 50)
    assert found.note is not None
    assert f"the index of the runs {meaning} ({place.path}), so every record was read. " in found.note
    assert "pi-dispatch runs --reindex" in found.note


def test_damage_that_shows_late_is_met_as_any(place: Indexed) -> None:
    for number in range(300):
        place.store.write(record(f"job-{number:03}", ended_at=NOW - timedelta(minutes=number)))
    place.index.close()
    [[root]] = _asked(place.path, "SELECT rootpage FROM sqlite_master WHERE name = 'newest'")
    with place.path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(bytes(4096))
    found = look(place.state, place.store, Wanted(), 3)
    assert [one.job_id for one in found.records] == ["job-000", "job-001", "job-002"]
    assert "is damaged" in str(found.note)


def test_one_who_holds_it_for_himself_is_named(place: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_file, "BUSY_S", 0.05)
    place.store.write(record("a"))
    place.index.close()
    with closing(sqlite3.connect(place.path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        found = look(place.state, place.store, Wanted())
    assert len(found.records) == 1
    assert "is locked by another program" in str(found.note)


@pytest.mark.parametrize("collecting", [True, False])
def test_a_look_leaves_the_collector_as_it_was(place: Indexed, collecting: bool) -> None:
    place.store.write(record("a"))
    try:
        if not collecting:
            gc.disable()
        assert ids(place) == ["a"]
        assert gc.isenabled() == collecting
    finally:
        gc.enable()


def test_reasons_are_told_where_nothing_is_found(place: Indexed) -> None:
    place.store.write(record("a", outcome="failed", reason="infra"))
    place.store.write(record("b", outcome="failed", reason="worker-lost"))
    assert look(place.state, place.store, Wanted(reason="x")).reasons == {"infra", "worker-lost"}
    place.unheard.write(record("c", outcome="policy", reason="runner-policy"))
    place.store.record_path("b").unlink()
    found = look(place.state, place.store, Wanted(reason="x"))
    assert found.reasons == {"infra", "runner-policy"}
    assert found.any
    # Nor is one sought for that no table can hold.
    assert look(place.state, place.store, Wanted(reason="\ud800")).total == 0


@pytest.mark.parametrize(
    ("beginning", "expected"),
    [("a", "b"), ("", None), ("a\U0010ffff", "b"), ("\U0010ffff", None), ("\ud7ff", "\ue000"), ("ab", "ac")],
)
def test_the_first_text_behind_all_that_begin_so(beginning: str, expected: str | None) -> None:
    assert _after(beginning) == expected


def test_ids_that_begin_so(place: Indexed) -> None:
    for job in ("a", "ab", "ab\U0010ffff", "ab\U0010ffffc", "ac", "b"):
        place.store.write(record(job))
    assert set(ids(place, Wanted(beginning="ab"))) == {"ab", "ab\U0010ffff", "ab\U0010ffffc"}
    assert len(ids(place, Wanted(beginning=""))) == len(place.store.names())


@pytest.mark.parametrize(
    "wanted", [Wanted(), Wanted(floor=NOW), Wanted(outcome="failed"), Wanted(reason="infra")], ids=str
)
def test_a_list_is_answered_by_its_own_order_alone(place: Indexed, wanted: Wanted) -> None:
    """Neither a look at rows nor a sort, which 100,000 records would feel."""
    place.store.write(record("a"))
    with closing(sqlite3.connect(place.path)) as connection:
        queries: list[str] = []
        patched = pytest.MonkeyPatch()
        patched.setattr(sqlite3, "connect", _traced(sqlite3.connect, queries))
        look(place.state, place.store, wanted)
        patched.undo()
        [listed] = [query for query in queries if "ORDER BY" in query]
        [[*_, plan]] = connection.execute(f"EXPLAIN QUERY PLAN {listed}").fetchall()
    assert "USING COVERING INDEX newest" in plan


def _traced(connect: Any, queries: list[str]) -> Any:
    def traced(*arguments: Any, **named: Any) -> sqlite3.Connection:
        made: sqlite3.Connection = connect(*arguments, **named)
        made.set_trace_callback(queries.append)
        return made

    return traced


def _asked(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_no_database_is_loaded_where_there_is_no_index(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from pidispatch.runs.index_look import Wanted, look; "
        "from pidispatch.runs.index import RecordIndex; from pidispatch.runs.records import RecordStore; "
        "place = Path(sys.argv[1]); RecordIndex(place, place); look(place, RecordStore(place), Wanted()); "
        "print('sqlalchemy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert not index_path(tmp_path).exists()

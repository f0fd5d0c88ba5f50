"""Whatever is wrong with the index: it is replaced or left alone, told once, and stops no record."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from filelock import FileLock
from structlog.testing import capture_logs

from pidispatch.runs import index_file
from pidispatch.runs.index import MARK, marked
from pidispatch.runs.index_look import Wanted, look
from pidispatch.runs.index_schema import SCHEMA
from pidispatch.runs.records import RecordStore
from tests.unit.runs.history import record
from tests.unit.runs.indexed import Indexed


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Indexed]:
    made = Indexed(tmp_path)
    yield made
    made.index.close()


def damage(path: Path) -> None:
    path.write_bytes(os.urandom(200_000))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def foreign(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE attempts (x)")
        connection.execute(f"PRAGMA user_version = {SCHEMA}")
        connection.commit()


def version(number: int) -> Callable[[Path], None]:
    def put(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA user_version = {number}")

    return put


def logged_by(act: Callable[[], object]) -> list[tuple[str, str | None]]:
    with capture_logs() as logged:
        act()
    return [(entry["event"], entry.get("cause")) for entry in logged if entry["event"].startswith("index_")]


@pytest.mark.parametrize("harm", [damage, cut, empty, foreign, version(0)])
def test_a_broken_index_is_replaced_by_the_next_who_writes(place: Indexed, harm: Callable[[Path], None]) -> None:
    for job in range(200):
        place.store.write(record(f"a{job}"))
    place.index.close()
    harm(place.path)
    assert logged_by(lambda: place.store.write(record("b"))) == []
    assert [row["file"] for row in place.rows()["files"]] == ["b.json"]
    place.index.clear_up()
    assert place.rows() == place.said()


def test_an_index_that_breaks_under_its_writer_is_replaced(place: Indexed) -> None:
    for job in range(300):
        place.store.write(record(f"a{job:03}"))
    with closing(sqlite3.connect(place.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with place.path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(place.path.stat().st_size - 4096))
    assert logged_by(place.index.clear_up) == []
    assert place.rows() == place.said()


def test_an_older_schema_is_replaced(place: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    place.store.write(record("a"))
    place.index.close()
    monkeypatch.setattr(index_file, "SCHEMA", SCHEMA + 1)
    place.store.write(record("b"))
    assert place.ask("PRAGMA user_version") == SCHEMA + 1
    assert [row["file"] for row in place.rows()["files"]] == ["b.json"]


def test_a_newer_schema_is_left_alone_and_the_records_are_marked(place: Indexed) -> None:
    place.store.write(record("a"))
    place.index.close()
    version(SCHEMA + 1)(place.path)
    before = place.path.read_bytes()

    assert logged_by(lambda: place.store.write(record("b"))) == [("index_unusable", "newer")]
    assert logged_by(lambda: place.store.write(record("c"))) == []
    assert place.path.read_bytes() == before
    assert marked(place.store.folder) is not None

    version(SCHEMA)(place.path)
    # Who wrote without the index is found by what differs, who replaced a record too.
    place.unheard.write(record("a", outcome="failed"))
    assert [one.job_id for one in look(place.state, place.store, Wanted(outcome="failed")).records] == ["a"]
    assert logged_by(place.index.clear_up) == [("index_usable", None)]
    assert marked(place.store.folder) is None
    assert place.rows() == place.said()


def test_a_locked_index_keeps_no_record_waiting_for_long(place: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_file, "BUSY_S", 0.05)
    place.store.write(record("a"))
    place.index.close()
    with closing(sqlite3.connect(place.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert logged_by(lambda: place.store.write(record("a", outcome="failed"))) == [("index_unusable", "locked")]
        # A reader does not wait for one who writes, and knows that the row is not what the file says.
        assert look(place.state, place.store, Wanted(outcome="completed")).records == ()
        assert look(place.state, place.store, Wanted(outcome="failed")).total == 1
        other.execute("ROLLBACK")
    assert logged_by(lambda: place.store.write(record("b"))) == [("index_usable", None)]
    assert marked(place.store.folder) is not None
    place.index.clear_up()
    assert marked(place.store.folder) is None
    assert place.rows() == place.said()


def test_one_who_opens_it_without_end_keeps_no_record_waiting(place: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_file, "BUSY_S", 0.05)
    place.store.write(record("a"))
    place.index.close()
    with FileLock(place.state / "index.lock"):
        assert logged_by(lambda: place.store.write(record("b"))) == [("index_unusable", "locked")]
    assert logged_by(lambda: place.store.write(record("c"))) == [("index_usable", None)]


def test_only_the_one_that_was_found_broken_is_replaced(place: Indexed) -> None:
    place.store.write(record("a"))
    index_file.replace(place.state, place.store.folder, (0, 0))
    assert place.rows() == place.said()
    index_file.replace(place.state, place.store.folder, index_file.identity(place.path))
    assert place.rows()["files"] == []


def test_a_full_disk_stops_no_record(place: Indexed) -> None:
    place.store.write(record("a"))
    place.index.close()
    with closing(sqlite3.connect(place.path)) as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connect = sqlite3.connect

    def cramped(*arguments: object, **named: object) -> sqlite3.Connection:
        made: sqlite3.Connection = connect(*arguments, **named)  # type: ignore[call-overload]
        made.execute(f"PRAGMA max_page_count = {pages}")
        return made

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sqlite3, "connect", cramped)
        told = logged_by(lambda: [place.store.write(record(f"b{n}", flow="x" * 5000)) for n in range(3)])
    assert told == [("index_unusable", "disk-full")]
    assert len(look(place.state, place.store, Wanted()).records) == 4


@pytest.mark.parametrize(
    ("blocked", "cause"), [("", "not-a-folder"), ("index.sqlite", "unopenable"), ("index.sqlite.new", "unopenable")]
)
def test_a_state_that_cannot_be_used_stops_no_record(place: Indexed, blocked: str, cause: str) -> None:
    if blocked:
        (place.state / blocked).mkdir(parents=True)
    else:
        place.state.write_text("")
    assert logged_by(lambda: place.store.write(record("a"))) == [("index_unusable", cause)]
    assert place.store.find("a") == record("a")
    assert (place.store.folder / MARK).exists()


def test_where_no_mark_can_be_left_the_index_goes(place: Indexed) -> None:
    place.store.write(record("a"))
    place.index.close()
    version(SCHEMA + 1)(place.path)
    (place.store.folder / MARK).mkdir()
    place.store.write(record("b"))
    assert not place.path.exists()


def test_a_mark_that_is_left_while_it_heals_stays(place: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    place.store.write(record("a"))
    (place.store.folder / MARK).write_text("")
    names = RecordStore.names

    def and_another_fails(store: RecordStore) -> list[str]:
        (store.folder / MARK).unlink()
        (store.folder / MARK).write_text("x")
        return names(store)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(RecordStore, "names", and_another_fails)
        place.index.clear_up()
    assert marked(place.store.folder) is not None
    place.index.clear_up()
    assert marked(place.store.folder) is None


def test_no_fault_whatever_reaches_the_one_who_writes(place: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a mistake of our own")

    monkeypatch.setattr(RecordStore, "stamp", broken)
    assert logged_by(lambda: place.store.write(record("a"))) == [("index_unusable", "RuntimeError")]

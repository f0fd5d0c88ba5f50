"""`pi-dispatch runs --reindex`, and what `runs` says of an index that is of no use."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from pidispatch.cli.main import _run
from pidispatch.cli.reindex import rebuild
from pidispatch.runs import index_file
from pidispatch.runs.index import marked
from tests.unit.runs.history import record
from tests.unit.runs.indexed import Indexed


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Indexed]:
    made = Indexed(tmp_path)
    monkeypatch.setenv("PI_LOGS_DIR", str(made.store.folder))
    monkeypatch.setenv("PI_STATE_DIR", str(made.state))
    yield made
    made.index.close()


def said(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = _run(["runs", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def version(place: Indexed, number: int) -> None:
    with closing(sqlite3.connect(place.path)) as connection:
        connection.execute(f"PRAGMA user_version = {number}")


def test_it_reads_all_and_says_how_many_and_which_not(place: Indexed, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(450):
        place.unheard.write(record(f"job-{number}"))
    place.store.record_path("bad").write_text("{")
    code, out, err = said("--reindex", capsys=capsys)
    assert (code, out) == (0, "")
    told, counted = err.splitlines()
    assert told == f"bad.json in {place.store.folder} does not hold a run record, or not a whole one; left out"
    assert re.fullmatch(rf"450 records in the index {re.escape(str(place.path))}, read in \d+\.\d s", counted)
    assert place.rows() == place.said()


def test_at_a_terminal_a_bar_goes_on(place: Indexed) -> None:
    for number in range(250):
        place.unheard.write(record(f"job-{number}"))
    stream = StringIO()
    assert rebuild(place.unheard, Console(file=stream, force_terminal=True, width=100)) == 0
    assert "reading records" in stream.getvalue()
    assert "100%" in stream.getvalue()


def test_it_says_what_is_in_its_way(
    place: Indexed, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place.store.write(record("a"))
    place.index.close()
    monkeypatch.setattr(index_file, "BUSY_S", 0.05)
    with closing(sqlite3.connect(place.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        code, _, err = said("--reindex", capsys=capsys)
    assert (code, "is locked by another program. Try again" in " ".join(err.split())) == (1, True)

    version(place, 99)
    code, _, err = said("--reindex", capsys=capsys)
    assert (code, "newer version of pi-dispatch. Write this with that version" in " ".join(err.split())) == (1, True)
    code, out, err = said(capsys=capsys)
    assert (code, "a  " in out) == (0, True)
    assert err == (
        f"the index of the runs was made by a newer version of pi-dispatch ({place.path}), so every record was read. "
        "Look with that version, or remove the file and write: pi-dispatch runs --reindex\n"
    )

    place.path.unlink()
    place.path.mkdir()
    code, _, err = said("--reindex", capsys=capsys)
    assert (code, "PI_STATE_DIR" in err) == (1, True)


def test_what_is_broken_is_told_by_the_list_and_mended(place: Indexed, capsys: pytest.CaptureFixture[str]) -> None:
    place.store.write(record("a"))
    place.index.close()
    place.path.write_bytes(b"\x00\x01" * 9000)
    code, out, err = said(capsys=capsys)
    assert (code, out.splitlines()[1].split()[0]) == (0, "a")
    assert "the index of the runs is damaged" in err
    assert said("--reindex", capsys=capsys)[0] == 0
    assert said(capsys=capsys)[2] == ""


def test_a_rebuilding_that_is_broken_off_leaves_the_word_that_one_is_due(
    place: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.store.write(record("a"))
    version(place, 99)
    place.index.close()
    place.store.write(record("b"))
    version(place, 1)
    assert marked(place.store.folder) is not None

    def broken_off(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        place.index.rebuild(broken_off)
    assert marked(place.store.folder) is not None
    place.index.rebuild(lambda _done, _of: None)
    assert marked(place.store.folder) is None


@pytest.mark.parametrize(
    "more", [["--json"], ["--since", "1h"], ["--outcome", "failed"], ["--reason", "infra"], ["--limit", "3"]]
)
def test_it_goes_alone(place: Indexed, more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said("--reindex", *more, capsys=capsys)
    assert (code, out) == (1, "")
    assert "write it alone" in err
    assert not place.path.exists()


def test_without_records_there_is_an_empty_index(place: Indexed, capsys: pytest.CaptureFixture[str]) -> None:
    place.store.folder.rmdir()
    code, _, err = said("--reindex", capsys=capsys)
    assert (code, err.startswith("0 records in the index ")) == (0, True)
    assert not place.store.folder.exists()

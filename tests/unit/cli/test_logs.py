"""The verb `logs`: kept output, made fit for a terminal, however much it is."""

import io
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.cli.logs import PIECE, copy_printable
from pidispatch.cli.main import _run
from pidispatch.runs.records import RecordStore
from tests.unit.runs.history import record


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RecordStore:
    store = RecordStore(tmp_path / "logs")
    store.prepare()
    monkeypatch.setenv("PI_LOGS_DIR", str(store.folder))
    return store


def copied(data: bytes) -> str:
    target = io.StringIO()
    copy_printable(io.BytesIO(data), target)
    return target.getvalue()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", ""),
        (b"one\ntwo\n", "one\ntwo\n"),
        (b"no end", "no end\n"),
        (b"\n\n", "\n\n"),
        ("caf\u00e9 \u4e2d\n".encode(), "caf\u00e9 \u4e2d\n"),
        (b"a\tb\r\n", "a    b\\u{000D}\n"),
        (b"\x1b[31mred\x1b]0;title\x07\n", "\\u{001B}[31mred\\u{001B}]0;title\\u{0007}\n"),
        ("a\u202eb\u2028c\n".encode(), "a\\u{202E}b\\u{2028}c\n"),
        (b"a\xffb\n", "a\ufffdb\n"),
        (b"cut \xe2\x82", "cut \ufffd\n"),
    ],
)
def test_lines_are_made_fit_for_a_terminal(data: bytes, expected: str) -> None:
    assert copied(data) == expected


def test_a_character_across_two_pieces_is_whole() -> None:
    assert copied(b"x" * (PIECE - 1) + "\u4e2d\nnext".encode()) == "x" * (PIECE - 1) + "\u4e2d\nnext\n"


@given(st.binary(max_size=300))
def test_no_bytes_reach_a_terminal_as_control_characters(data: bytes) -> None:
    text = copied(data)
    assert all(line.isprintable() for line in text.split("\n"))
    assert text.count("\n") == data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)


def test_output_is_found_by_id_by_its_beginning_and_without_a_record(
    store: RecordStore, capsys: pytest.CaptureFixture[str]
) -> None:
    store.write(record("local:1"))
    store.log_path("local:1").write_text("of one\n")
    store.log_path("local-2").write_text("of two\n")
    for asked, expected in (("local:1", "of one\n"), ("loc", "of one\n"), ("local-2", "of two\n")):
        assert _run(["logs", asked]) == 0
        assert capsys.readouterr().out == expected


def test_output_that_was_not_kept_ends_with_1_and_the_remedy(
    store: RecordStore, capsys: pytest.CaptureFixture[str]
) -> None:
    store.write(record("local-1"))
    assert _run(["logs", "local-1"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "the output of local-1 was not kept" in captured.err
    assert "PI_CAPTURE_JOB_LOGS=1" in captured.err


@pytest.mark.parametrize(("asked", "message"), [("local-9", "no record of a run 'local-9'"), ("", "JOBID is empty")])
def test_an_unknown_id_ends_with_1(
    store: RecordStore, asked: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["logs", asked]) == 1
    assert message in capsys.readouterr().err


def test_output_that_cannot_be_read_ends_with_1(store: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.log_path("local-1").symlink_to(store.folder)
    assert _run(["logs", "local-1"]) == 1
    assert "local-1.log cannot be read" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_failure(store: RecordStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.log_path("local-1").write_text("out")

    class Gone(io.StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Gone())
    assert _run(["logs", "local-1"]) == 0

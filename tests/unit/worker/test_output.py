"""What jobs print: whole lines, each with its job's id, and nothing that steers a terminal."""

import io
import sys

import pytest

from pidispatch.worker.output import JobOutput


def shown(*chunks: bytes) -> list[str]:
    stream = io.StringIO()
    write = JobOutput(stream)("local-1")
    for chunk in chunks:
        write(chunk)
    return stream.getvalue().splitlines()


def test_a_line_is_shown_once_it_is_whole() -> None:
    assert shown(b"one\ntw") == ["[local-1] one"]
    assert shown(b"one\ntw", b"o\r\n\n") == ["[local-1] one", "[local-1] two", "[local-1] "]


def test_a_character_that_is_cut_in_two_is_whole_again_and_other_bytes_end_nothing() -> None:
    euro = "€".encode()
    assert shown(euro[:1], euro[1:] + b"\n", b"\xff\n") == ["[local-1] €", "[local-1] \N{REPLACEMENT CHARACTER}"]


def test_what_steers_a_terminal_is_shown_as_text() -> None:
    assert shown(b"\x1b[2Jgone\n") == [r"[local-1] \u{001B}[2Jgone"]


def test_a_line_without_an_end_is_cut() -> None:
    assert shown(b"x" * 5000, b"y\n") == [f"[local-1] {'x' * 4096}", "[local-1] y"]


def test_lines_of_two_jobs_do_not_mix(capsys: pytest.CaptureFixture[str]) -> None:
    output = JobOutput()
    one, two = output("local-1"), output("local-2")
    one(b"he")
    two(b"you\n")
    one(b"llo\n")
    assert capsys.readouterr().out == "[local-2] you\n[local-1] hello\n"
    assert sys.stdout is not None

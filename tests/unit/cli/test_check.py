"""The verb `check`: what a person sees of it, what a program reads, and its exit code."""

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from pidispatch.cli.check import document, show
from pidispatch.cli.checks.row import Row
from pidispatch.cli.checks.table import CHECKS
from pidispatch.cli.main import _run

PAGE = (Path(__file__).resolve().parents[3] / "docs/how-to/check.md").read_text()
ROWS = [
    Row("server", "pass", "answers \x1b[31m", None),
    Row("engine-lock", "warn", "first line\nsecond line", "do [this] :bomb:"),
]


@pytest.fixture(autouse=True)
def _nothing_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PI_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    monkeypatch.setenv("VALKEY_URL", f"unix://{tmp_path}/no-server.sock")


def shown(rows: list[Row], *, terminal: bool = False, width: int = 80, color: bool = False) -> list[str]:
    file = io.StringIO()
    show(Console(file=file, force_terminal=terminal, width=width, no_color=not color), rows)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_pipe_has_one_line_a_text_and_no_control_character() -> None:
    assert shown(ROWS) == [
        "pass  server        answers \\u{001B}[31m",
        "warn  engine-lock   first line",
        "warn  engine-lock   second line",
        "warn  engine-lock   -> do [this] :bomb:",
        "1 passed, 1 to think about, 0 to mend",
    ]
    long = Row("server", "fail", "x" * 500, "y" * 500)
    assert [len(line) for line in shown([long])[:2]] == [520, 523]


def test_a_narrow_terminal_cuts_nothing() -> None:
    words = " ".join(f"word{number}" for number in range(40))
    lines = shown([Row("server", "fail", words, f"mend {words}"), *ROWS], terminal=True, width=40)
    assert all(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= 40 for line in lines)
    text = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", " ".join(lines)).split())
    assert f"{words} -> mend {words}" in text
    assert "first line" in text


def test_colours_are_for_those_who_want_them() -> None:
    coloured = "\n".join(shown(ROWS, terminal=True, color=True))
    assert "\x1b[32mpass" in coloured
    assert "\x1b[33mwarn" in coloured
    assert "\x1b[3" not in "\n".join(shown(ROWS, terminal=True))


def test_fails_alone_are_no_success() -> None:
    assert document(ROWS)["ok"] is True
    assert document([*ROWS, Row("engine", "fail", "x", "y")])["ok"] is False


def test_the_verb_ends_with_1_where_a_row_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["check"]) == 1
    captured = capsys.readouterr()
    assert captured.err == ""
    assert re.search(r"^fail  server  .* does not answer", captured.out, re.MULTILINE)
    assert re.search(r"^fail  engine  .* does not answer", captured.out, re.MULTILINE)
    assert captured.out.splitlines()[-1].endswith("to mend")


def test_the_page_has_the_keys_that_are_printed_and_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["check", "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    keys = set(printed) | {f"checks[].{key}" for row in printed["checks"] for key in row}
    told = re.findall(r"^\| `([^`]+)` \|", PAGE.split("## In a program")[1], re.MULTILINE)
    assert set(told) == keys
    assert {type(row["remedy"]) for row in printed["checks"] if row["status"] != "pass"} == {str}
    assert {row["remedy"] for row in printed["checks"] if row["status"] == "pass"} == {None}
    table = PAGE.split("## What is looked at")[1].split("## In a program")[0]
    named = [
        name
        for cell in re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
        for name in re.findall(r"`([\w-]+)`", cell)
    ]
    assert named == [check.name for check in CHECKS]

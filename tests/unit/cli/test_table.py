"""Tables for any width: what is cut, what is stacked, and what stays whole."""

import io

import pytest
from rich.console import Console
from rich.text import Text

from pidispatch.cli.table import table_of

HEADER = ("JOB ID", "WHY", "LABEL")
ROWS = [["local-0123456789abcdef", "host-busy", "local a-folder-with-a-long-name fix"], ["retry-1", "-", "local x -"]]


def printed(width: int | None, rows: list[list[str]] = ROWS) -> list[str]:
    """The lines of a table on a terminal of this width; `None`: no terminal."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=width is not None, width=width, no_color=True, color_system=None)
    console.print(table_of(console, HEADER, [[Text(cell) for cell in row] for row in rows], cut=("LABEL",)))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_where_no_person_looks_nothing_is_cut() -> None:
    lines = printed(None, [["local-1", "x", "y" * 500]])
    assert len(lines) == 2
    assert lines[1] == f"local-1  x    {'y' * 500}"


def test_where_there_is_room_a_row_is_a_line() -> None:
    assert printed(90) == [
        "JOB ID                  WHY        LABEL",
        "local-0123456789abcdef  host-busy  local a-folder-with-a-long-name fix",
        "retry-1                 -          local x -",
    ]


def test_a_text_that_may_lose_its_end_does_before_a_row_takes_two_lines() -> None:
    assert printed(55)[1] == "local-0123456789abcdef  host-busy  local a-folder-with…"


@pytest.mark.parametrize("width", [24, 30, 40])
def test_on_a_narrow_terminal_rows_are_stacked_and_an_id_is_whole(width: int) -> None:
    lines = printed(width)
    assert max(len(line) for line in lines) <= width
    assert any("local-0123456789abcdef" in line for line in lines)
    assert any("retry-1" in line for line in lines)
    assert len(lines) in (6, 9)


def test_without_rows_the_header_stands_alone() -> None:
    assert printed(80, []) == ["JOB ID  WHY  LABEL"]

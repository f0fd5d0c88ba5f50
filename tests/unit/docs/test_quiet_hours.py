"""The page of the quiet hours tells every field of their file, and shows a file that is good."""

import re
from pathlib import Path

from pidispatch.config.watched import FileName
from pidispatch.gates.pause_windows import PauseWindow, parse_pause_windows
from tests.support.documented import DOCS, documented

PAGE = "how-to/quiet-hours.md"


def test_the_page_has_the_fields_of_the_file() -> None:
    fields = {field.alias or name for name, field in PauseWindow.model_fields.items()}
    assert documented(PAGE, "## The file") == fields


def test_what_the_page_shows_is_good() -> None:
    [shown] = re.findall(r"<<'JSON'\n(.*?)JSON\n", (DOCS / PAGE).read_text(encoding="utf-8"), re.DOTALL)
    assert len(parse_pause_windows(shown, Path("pause-windows.json"))) == 2


def test_every_watched_file_is_on_the_page_of_the_status() -> None:
    page = (DOCS / "how-to/status.md").read_text(encoding="utf-8")
    assert [name for name in FileName if f"`{name.value}`" not in page] == []

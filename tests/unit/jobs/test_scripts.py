"""The table of scripts is closed: each has its file, and each file is in it."""

from pathlib import Path

import pytest

import pidispatch.jobs
from pidispatch.jobs.scripts import PRELUDE, SCRIPTS, source


def test_each_script_has_its_file_and_each_file_its_script() -> None:
    [folder] = pidispatch.jobs.__path__
    assert {path.stem for path in (Path(folder) / "lua").iterdir()} == {*SCRIPTS, PRELUDE}
    assert len(set(SCRIPTS)) == len(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_says_how_it_is_called(name: str) -> None:
    assert f"-- {name}(" in source(name)


def test_there_is_no_other_script() -> None:
    with pytest.raises(KeyError):
        source("flushall")

"""The operator's template in the repository: it is taken as it stands, and so is each line that it proposes."""

import re
from pathlib import Path

import pytest

from pidispatch.jobs.celery_defaults import operator_settings

TEMPLATE = Path(__file__).resolve().parents[2] / "celeryconfig.py"
#: Lines that an operator only has to uncomment.
PROPOSED = re.findall(r"^# (\w+ = .*)$", TEMPLATE.read_text(), re.MULTILINE)


def test_it_is_taken_as_it_stands(tmp_path: Path) -> None:
    assert operator_settings(TEMPLATE, tmp_path) == {"worker_send_task_events": True, "task_send_sent_event": True}


@pytest.mark.parametrize("line", PROPOSED)
def test_every_line_it_proposes_is_taken(line: str, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(f"{line}\n")
    assert len(operator_settings(own, tmp_path)) == 1


def test_it_proposes_some() -> None:
    assert len(PROPOSED) > 1

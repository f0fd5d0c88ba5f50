"""Which entries of the triggers file a worker serves."""

import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pidispatch.values.errors import ConfigError
from pidispatch.values.limits import Limits
from pidispatch.worker.operator_files import OperatorFiles
from tests.support.settings import settings_of


def written(folder: Path, *folders: Path) -> Path:
    """A file with a schedule for each folder, `s0`, `s1`, ..."""
    entries = [
        {
            "on": {"type": "cron", "id": f"s{number}", "pattern": "0 3 * * *"},
            "run": {"kind": "local", "folder": str(one), "flow": "tidy", "task": "x"},
        }
        for number, one in enumerate(folders)
    ]
    path = folder / "triggers.json"
    path.write_text(json.dumps({"triggers": entries}))
    return path


def files(path: Path, **more: str) -> OperatorFiles:
    """The files of a worker."""
    return OperatorFiles(settings_of({"PI_TRIGGERS_FILE": str(path), **more}), Limits())


def test_without_a_file_there_are_no_schedules() -> None:
    assert OperatorFiles(settings_of({}), Limits()).schedules is None


def test_entries_keep_their_places(tmp_path: Path) -> None:
    own = files(written(tmp_path, tmp_path, tmp_path))
    own.load()
    assert own.schedules is not None
    assert [(index, one.on.id) for index, one in own.schedules()] == [(0, "s0"), (1, "s1")]
    assert own.faulty() == []


def test_a_folder_that_is_missing_refuses_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'cron trigger "s1", field "run\.folder": there is no such folder') as caught:
        files(written(tmp_path, tmp_path, tmp_path / "gone")).load()
    assert caught.value.cause == "operator-file"
    assert str(tmp_path / "gone") not in caught.value.message


def test_with_several_machines_it_is_another_ones(tmp_path: Path) -> None:
    own = files(written(tmp_path, tmp_path / "gone", tmp_path), PI_WORKER_NAME="build-1")
    with capture_logs() as logs:
        own.load()
    assert [(one["event"], one["scheduleId"]) for one in logs] == [("schedule_unserved", "s0")]
    assert own.schedules is not None
    assert [(index, one.on.id) for index, one in own.schedules()] == [(1, "s1")]

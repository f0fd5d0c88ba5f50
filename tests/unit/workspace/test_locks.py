"""The lock of a folder: one run at a time, and none once its process is gone."""

import subprocess
import sys
from pathlib import Path

import pytest

from pidispatch.values.errors import InfraError
from pidispatch.workspace.locks import hold_folder, try_lock

HOLDER = """
import sys
from pathlib import Path
from pidispatch.workspace.locks import hold_folder
lock = hold_folder(Path(sys.argv[1]), Path(sys.argv[2]))
print("held", flush=True)
sys.stdin.readline()
"""


def test_a_second_run_in_a_folder_is_told_so_and_the_kernel_frees_it_with_the_first(tmp_path: Path) -> None:
    state, folder = tmp_path / "state", Path("/srv/site")
    argv = [sys.executable, "-c", HOLDER, str(state), str(folder)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(InfraError) as caught:
            hold_folder(state, folder)
        hold_folder(state, Path("/srv/other")).release()
        process.kill()
    assert caught.value.cause == "folder-busy"
    assert "another run works in 'site'" in caught.value.message
    assert "/srv" not in caught.value.message
    hold_folder(state, folder).release()


def test_the_lock_is_named_by_the_folders_digest(tmp_path: Path) -> None:
    lock = hold_folder(tmp_path / "state", Path("/srv/site"))
    assert [path.name for path in (tmp_path / "state" / "locks").iterdir()] == ["folder-3cd3201de5fe686c.lock"]
    lock.release()


def test_a_lock_that_cannot_be_made_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "state" / "locks" / "folder-3cd3201de5fe686c.lock").mkdir(parents=True)
    with pytest.raises(InfraError) as caught:
        hold_folder(tmp_path / "state", Path("/srv/site"))
    assert caught.value.cause == "folder-lock"


def test_a_held_lock_is_not_taken_twice(tmp_path: Path) -> None:
    first = try_lock(tmp_path / "lock")
    assert first is not None
    assert try_lock(tmp_path / "lock") is None
    first.release()
    second = try_lock(tmp_path / "lock")
    assert second is not None
    second.release()

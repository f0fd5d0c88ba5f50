"""The lock of a folder: one run at a time, and none once its process is gone."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.values.errors import InfraError
from pidispatch.workspace.locks import gate, hold_folder, overlap, try_lock

HOLDER = """
import sys
from pathlib import Path
from pidispatch.workspace.locks import hold_folder
lock = hold_folder(Path(sys.argv[1]), Path(sys.argv[2]))
print("held", flush=True)
sys.stdin.readline()
"""


@contextmanager
def holder(state: Path, folder: Path) -> Iterator[None]:
    """Another program that works in the folder, and is killed at the end."""
    argv = [sys.executable, "-c", HOLDER, str(state), str(folder)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield
        process.kill()


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with another one in it, and one beside it."""
    (tmp_path / "site" / "lib").mkdir(parents=True)
    (tmp_path / "sites").mkdir()
    return tmp_path / "site"


def test_a_second_run_in_a_folder_is_told_so_and_the_kernel_frees_it_with_the_first(tmp_path: Path, site: Path) -> None:
    with holder(tmp_path / "state", site):
        with pytest.raises(InfraError) as caught:
            hold_folder(tmp_path / "state", site)
        hold_folder(tmp_path / "state", tmp_path / "sites").release()
    assert caught.value.cause == "folder-busy"
    assert "another run works in 'site'" in caught.value.message
    assert str(tmp_path) not in caught.value.message
    hold_folder(tmp_path / "state", site).release()


@pytest.mark.parametrize(("held", "asked"), [("site", "site/lib"), ("site/lib", "site")])
def test_a_folder_is_held_with_those_around_and_in_it(tmp_path: Path, site: Path, held: str, asked: str) -> None:
    with holder(tmp_path / "state", tmp_path / held), pytest.raises(InfraError, match=f"works in '{Path(held).name}'"):
        hold_folder(tmp_path / "state", tmp_path / asked)
    for folder in (site, site / "lib", tmp_path / "sites"):
        hold_folder(tmp_path / "state", folder).release()


def test_a_lock_that_cannot_be_made_is_a_fault(tmp_path: Path, site: Path) -> None:
    hold_folder(tmp_path / "state", site).release()
    [lock] = (tmp_path / "state" / "locks").glob("folder-*.lock")
    lock.unlink()
    lock.mkdir()
    with pytest.raises(InfraError) as caught:
        hold_folder(tmp_path / "state", site)
    assert caught.value.cause == "folder-lock"


@given(st.lists(st.sampled_from(["a", "b", "ab"]), max_size=4), st.lists(st.sampled_from(["a", "b", "ab"]), max_size=4))
def test_folders_overlap_where_one_begins_with_the_other(one: list[str], other: list[str]) -> None:
    shorter = min(len(one), len(other))
    expected = one[:shorter] == other[:shorter]
    assert overlap(Path("/", *one), Path("/", *other)) is expected


def test_a_held_lock_is_not_taken_twice(tmp_path: Path) -> None:
    first = try_lock(tmp_path / "lock")
    assert first is not None
    assert try_lock(tmp_path / "lock") is None
    first.release()
    second = try_lock(tmp_path / "lock")
    assert second is not None
    second.release()


def test_a_gate_that_stays_shut_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pidispatch.workspace.locks._GATE_S", 0.05)
    with gate(tmp_path), pytest.raises(InfraError) as caught, gate(tmp_path):
        raise AssertionError("two passed")
    assert caught.value.cause == "lock-held"
    with gate(tmp_path):
        assert try_lock(tmp_path / ".gate") is None

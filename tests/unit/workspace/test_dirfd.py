"""Names below an open directory: nothing planted is followed, and nothing is too deep or too closed to be removed."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from pidispatch.workspace.dirfd import (
    DIRECTORY,
    create_file,
    directory,
    read_file,
    remove_tree,
    settle,
    unlock_directory,
)
from tests.unit.workspace.guardfolder import give_away, unprivileged


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside"
    path.mkdir()
    (path / "canary").write_text("untouched\n")
    path.chmod(0o500)
    (path / "canary").chmod(0o400)
    return path


@pytest.fixture
def top(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "top").mkdir()
    handle = os.open(tmp_path / "top", DIRECTORY)
    yield handle
    os.close(handle)


def test_a_link_is_never_a_step_of_a_path(top: int, tmp_path: Path, outside: Path) -> None:
    (tmp_path / "top/link").symlink_to(outside)
    for path in ("link", "link/inner"):
        with pytest.raises(OSError), directory(top, path, unlock=True):
            pytest.fail("a link was followed")
    unlock_directory(top, "link")
    assert stat.S_IMODE(outside.stat().st_mode) == 0o500


def test_owner_and_mode_are_never_given_through_a_link(
    top: int, tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "top/link"
    link.symlink_to(outside / "canary")
    settle(top, "link", 0o777, (os.getuid(), os.getgid()))
    assert stat.S_IMODE((outside / "canary").stat().st_mode) == 0o400
    assert link.is_symlink()


def test_only_a_plain_file_within_bounds_is_read(top: int, tmp_path: Path, outside: Path) -> None:
    os.mkfifo(tmp_path / "top/pipe")
    (tmp_path / "top/link").symlink_to(outside / "canary")
    (tmp_path / "top/file").write_text("12345")
    (tmp_path / "top/dir").mkdir()
    assert [read_file(top, name, 5) for name in ("pipe", "link", "dir", "absent")] == [None] * 4
    assert read_file(top, "file", 5) == b"12345"
    assert read_file(top, "file", 4) is None


def test_nothing_is_written_through_what_is_there(top: int, tmp_path: Path, outside: Path) -> None:
    (tmp_path / "top/link").symlink_to(outside / "canary")
    (tmp_path / "top/dangling").symlink_to(outside / "new")
    for name in ("link", "dangling"):
        with pytest.raises(FileExistsError):
            create_file(top, name, b"evil\n")
    assert (outside / "canary").read_text() == "untouched\n"
    assert os.listdir(outside) == ["canary"]


def test_a_closed_and_wide_tree_is_removed_by_an_ordinary_account(tmp_path: Path, outside: Path) -> None:
    home = tmp_path / "home"
    closed = home / "tree/closed/inner"
    closed.mkdir(parents=True)
    for number in range(1500):
        (closed / str(number)).touch()
    (closed / "link").symlink_to(outside)
    os.link(outside / "canary", closed / "hard-link")
    for path in (closed, closed.parent, closed.parent.parent):
        path.chmod(0)
    give_away(home)
    handle = os.open(home, DIRECTORY)
    with unprivileged():
        remove_tree(handle, "tree", 60.0)
    os.close(handle)
    assert os.listdir(home) == []
    assert (stat.S_IMODE(outside.stat().st_mode), stat.S_IMODE((outside / "canary").stat().st_mode)) == (0o500, 0o400)


def test_removing_ends_after_its_time(top: int, tmp_path: Path) -> None:
    (tmp_path / "top/tree/a/b").mkdir(parents=True)
    with pytest.raises(TimeoutError):
        remove_tree(top, "tree", -1.0)

"""Replacing a file: whole or not at all, and never through a link."""

import os
import stat
from pathlib import Path

import pytest

from pidispatch.workspace.atomic import TEMPORARY, Place, write_atomically


def test_a_file_is_made_and_replaced_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"one", 0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.stat().st_ino
    write_atomically(path, b"two", 0o644)
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert path.stat().st_ino != before
    assert os.listdir(tmp_path) == ["file"]


def test_a_planted_link_is_replaced_and_what_it_leads_to_is_left(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "file").symlink_to(victim)
    write_atomically(tmp_path / "file", b"new", 0o600)
    assert victim.read_text() == "mine"
    assert not (tmp_path / "file").is_symlink()


def test_a_failure_leaves_the_old_content_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new", 0o600)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_in_the_place_of_the_file_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / "file", b"new", 0o600)
    assert os.listdir(tmp_path) == ["file"]


def test_what_a_killed_writer_leaves_can_be_told_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", lambda *_: None)
    write_atomically(tmp_path / "file", b"new", 0o600)
    (left,) = os.listdir(tmp_path)
    assert TEMPORARY.fullmatch(left)
    assert not TEMPORARY.fullmatch("local-1.json")


def test_a_place_is_kept_from_before_it_is_needed(tmp_path: Path) -> None:
    place = Place(tmp_path, 4096)
    (kept,) = tmp_path.iterdir()
    assert TEMPORARY.fullmatch(kept.name)
    assert (kept.stat().st_size, stat.S_IMODE(kept.stat().st_mode)) == (4096, 0o600)
    inode = kept.stat().st_ino
    place.put(tmp_path / "file", b"short", 0o640)
    assert (tmp_path / "file").read_bytes() == b"short"
    assert ((tmp_path / "file").stat().st_ino, stat.S_IMODE((tmp_path / "file").stat().st_mode)) == (inode, 0o640)
    place.close()
    assert os.listdir(tmp_path) == ["file"]


def test_what_is_larger_than_its_place_is_put_whole(tmp_path: Path) -> None:
    Place(tmp_path, 10).put(tmp_path / "file", b"x" * 5000, 0o600)
    assert (tmp_path / "file").read_bytes() == b"x" * 5000


def test_a_place_that_is_given_up_leaves_nothing_behind(tmp_path: Path) -> None:
    open_before = len(os.listdir("/proc/self/fd"))
    place = Place(tmp_path, 4096)
    place.close()
    place.close()
    assert os.listdir(tmp_path) == []
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_without_room_there_is_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    open_before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        Place(tmp_path, 4096)
    assert os.listdir(tmp_path) == []
    assert len(os.listdir("/proc/self/fd")) == open_before

"""Files for the job to read: how they are written is tested by those who have something to write."""

from pathlib import Path, PurePosixPath

import pytest

from pidispatch.values.errors import InfraError
from pidispatch.workspace.written import write_read_only


def keep(_: Path) -> None:
    """Hands a path to nobody."""


def test_nothing_is_made_where_there_is_nothing(tmp_path: Path) -> None:
    write_read_only(tmp_path / "target", {}, keep)
    assert list(tmp_path.iterdir()) == []


def test_folders_above_a_file_are_made_once(tmp_path: Path) -> None:
    files = {PurePosixPath("a/b/c"): b"1", PurePosixPath("a/d"): b"2"}
    write_read_only(tmp_path / "target", files, keep)
    assert (tmp_path / "target/a/b/c").read_bytes() == b"1"
    assert (tmp_path / "target/a/d").read_bytes() == b"2"


def test_a_full_disk_is_a_fault_that_names_no_path(tmp_path: Path) -> None:
    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(InfraError) as caught:
        write_read_only(tmp_path / "target", {PurePosixPath("a"): b""}, full)
    assert caught.value.cause == "job-dir"
    assert str(tmp_path) not in caught.value.message

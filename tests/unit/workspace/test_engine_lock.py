"""The lock of a container engine: one worker at a time, whoever it belongs to."""

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from filelock import FileLock

from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.workspace import locks
from pidispatch.workspace.locks import engine_lock

ENGINE = "7TRN:IPZB/..:x"
NAME = "pi-dispatch-7TRN_IPZB_.._x.lock"
HOLDER = """
import sys
from pathlib import Path
from pidispatch.workspace.locks import engine_lock
lock = engine_lock(sys.argv[1], [Path(sys.argv[2])])
print("held", flush=True)
sys.stdin.readline()
"""


@contextmanager
def holder(folder: Path) -> Iterator[None]:
    """Another worker at the same engine, which is killed at the end."""
    argv = [sys.executable, "-c", HOLDER, ENGINE, str(folder)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield
        process.kill()


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    """A folder like `/run/lock`: everybody may write, and remove only what is theirs."""
    folder = tmp_path / "lock"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def test_a_second_worker_is_refused_with_the_file_and_the_first_ones_end_frees_it(open_folder: Path) -> None:
    with holder(open_folder):
        with pytest.raises(ConfigError) as caught:
            engine_lock(ENGINE, [open_folder])
        engine_lock("another", [open_folder]).release()
    assert (caught.value.cause, caught.value.exit_code) == ("engine-taken", 2)
    assert f"another worker serves this container engine: it holds {open_folder / NAME}" in caught.value.message
    engine_lock(ENGINE, [open_folder]).release()


def test_every_account_can_lock_the_file_whatever_the_mask(open_folder: Path) -> None:
    before = os.umask(0o077)
    try:
        engine_lock(ENGINE, [open_folder]).release()
    finally:
        os.umask(before)
    assert stat.S_IMODE((open_folder / NAME).stat().st_mode) == 0o666


def test_a_file_that_another_account_left_is_locked(open_folder: Path) -> None:
    path = open_folder / NAME
    path.touch()
    path.chmod(0o666)
    # Only root can make a file another account's; where the tests are not root's, the file is this account's own.
    owner = 1234 if os.geteuid() == 0 else os.geteuid()
    os.chown(path, owner, -1)
    with holder(open_folder), pytest.raises(ConfigError, match="another worker"):
        engine_lock(ENGINE, [open_folder])
    assert path.stat().st_uid == owner


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("/etc/passwd")])
def test_what_cannot_be_locked_is_refused_clearly(open_folder: Path, make: object) -> None:
    assert callable(make)
    make(open_folder / NAME)
    with pytest.raises(ConfigError) as caught:
        engine_lock(ENGINE, [open_folder, open_folder.parent])
    assert (caught.value.cause, caught.value.exit_code) == ("engine-lock", 2)
    assert str(open_folder / NAME) in caught.value.message
    assert "remove the file" in caught.value.message


def test_a_file_that_is_closed_to_us_is_refused_and_no_other_place_taken(
    open_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (open_folder / NAME).touch()

    def closed(_: FileLock) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(FileLock, "acquire", closed)
    with pytest.raises(ConfigError, match="cannot be locked \\(Permission denied\\)"):
        engine_lock(ENGINE, [open_folder, tmp_path])


def test_the_temporary_folder_is_taken_where_the_first_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_RUN_LOCKS", tmp_path / "absent")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lock = engine_lock("")
    assert (tmp_path / "pi-dispatch-unnamed.lock").exists()
    assert not (tmp_path / "absent").exists()
    lock.release()


def test_a_folder_that_takes_no_file_is_passed_over(
    open_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = FileLock.acquire

    def acquire(lock: FileLock) -> object:
        if Path(lock.lock_file).parent == open_folder:
            raise OSError(30, "Read-only file system")
        return real(lock)

    monkeypatch.setattr(FileLock, "acquire", acquire)
    engine_lock(ENGINE, [open_folder, tmp_path]).release()
    assert (tmp_path / NAME).exists()


def test_without_any_place_it_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(InfraError) as caught:
        engine_lock(ENGINE, [tmp_path / "absent"])
    assert caught.value.cause == "engine-lock"

"""Locks of files: who holds one, who gets through the gate, and how long is waited."""

import errno
import os
from pathlib import Path

import pytest

from pidispatch.config.flock import gate, is_held, open_lock, try_exclusive, try_shared, until
from pidispatch.values.errors import InfraError


def test_many_share_a_lock_and_one_has_it_alone(tmp_path: Path) -> None:
    one, other = (open_lock(tmp_path / "lock") for _ in range(2))
    assert try_shared(one)
    assert try_shared(other)
    assert not try_exclusive(one)
    os.close(other)
    assert try_exclusive(one)
    assert is_held(tmp_path / "lock")
    os.close(one)
    assert not is_held(tmp_path / "lock")


def test_a_lock_that_is_not_there_is_not_held_and_not_made_by_asking(tmp_path: Path) -> None:
    assert not is_held(tmp_path / "lock")
    assert list(tmp_path.iterdir()) == []


def test_a_lock_file_is_private_and_no_link_is_followed(tmp_path: Path) -> None:
    os.close(open_lock(tmp_path / "lock"))
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "lock")
    with pytest.raises(InfraError) as failed:
        open_lock(tmp_path / "link")
    assert failed.value.cause == "lock-unusable"


def test_a_file_system_without_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without(lock: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", without)
    lock = open_lock(tmp_path / "lock")
    with pytest.raises(InfraError) as failed:
        try_exclusive(lock)
    os.close(lock)
    assert failed.value.cause == "lock-unusable"


def test_one_at_a_time_gets_through_the_gate_and_who_waits_too_long_is_told(tmp_path: Path) -> None:
    with gate(tmp_path / "gate", 0), pytest.raises(InfraError) as failed, gate(tmp_path / "gate", 0.05):
        raise AssertionError
    assert failed.value.cause == "lock-held"
    with gate(tmp_path / "gate", 0):
        pass


def test_what_is_waited_for_is_asked_at_least_once() -> None:
    answers = iter([False, False, True])
    assert until(lambda: next(answers), 10)
    assert until(lambda: True, 0)
    assert not until(lambda: False, 0)

"""The writer of the triggers file: its lock, what it leaves as it was, and what it never writes."""

import errno
import json
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from pidispatch.config.flock import try_exclusive
from pidispatch.triggers import lock as lock_module
from pidispatch.triggers.writer import AT_ONCE, Patience, edit
from pidispatch.values.errors import ConfigError, DispatchError, InfraError
from tests.support.oneshots import entries_of, rule, write


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "triggers.json", rule(), rule(41))


def lock_of(file: Path, age_s: float = 0.0) -> Path:
    """A lock that another program made so long ago."""
    lock = file.with_name("triggers.json.lock")
    lock.touch()
    made = lock.stat().st_mtime - age_s
    os.utime(lock, (made, made))
    return lock


def renamed(document: Any) -> bool:
    """A change."""
    document["triggers"][0]["run"]["flow"] = "other"
    return True


def cause(act: Callable[[], object]) -> str | None:
    with pytest.raises(DispatchError) as caught:
        act()
    return caught.value.cause


def only(file: Path) -> None:
    """Nothing of a writer's own is left beside the file."""
    assert [one.name for one in file.parent.iterdir()] == [file.name]


def test_a_change_is_written_as_two_space_json_with_everything_else_as_it_was(file: Path) -> None:
    entry = {"note": "häuslich \u2028 \U0001f600", **rule(), "n": [1, 2.5, None, True, {}]}
    write(file, entry, rule(41))
    before = json.loads(file.read_text())
    assert edit(file, renamed)
    renamed(before)
    assert file.read_bytes() == (json.dumps(before, indent=2, ensure_ascii=False) + "\n").encode()
    only(file)


def as_account(uid: int, groups: list[int], act: Callable[[], object]) -> str:
    """How `act` ends where another account calls it, in a process of its own: `done`, or the cause of its fault."""
    out, into = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.setgroups(groups)
            os.setgid(groups[0])
            os.setuid(uid)
            try:
                act()
                said = "done"
            except DispatchError as error:
                said = str(error.cause)
            os.write(into, said.encode())
        finally:
            os._exit(0)
    os.close(into)
    with open(out) as told:
        said = told.read()
    os.waitpid(child, 0)
    return said


def test_what_changes_nothing_writes_nothing(file: Path) -> None:
    before = file.stat()
    assert not edit(file, lambda _: False)
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    only(file)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o664])
def test_mode_and_owner_stay(file: Path, mode: int) -> None:
    file.chmod(mode)
    if os.geteuid() == 0:
        os.chown(file, 12345, 12346)
    before = file.stat()
    assert edit(file, renamed)
    after = file.stat()
    assert stat.S_IMODE(after.st_mode) == mode
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert after.st_ino != before.st_ino


OWNER, GROUP, WORKER = 12345, 12346, 23456
_AS_ROOT = "only root becomes another account: run the tests as root"


@pytest.fixture
def shared() -> Iterator[Path]:
    """A file of one account and group, where everybody comes to and may make files."""
    assert os.geteuid() == 0, _AS_ROOT
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        folder = Path(made)
        folder.chmod(0o777)
        file = write(folder / "triggers.json", rule(), rule(41))
        os.chown(file, OWNER, GROUP)
        yield file


@pytest.mark.parametrize("mode", [0o640, 0o660, 0o666])
@pytest.mark.parametrize(
    ("uid", "groups"),
    [(WORKER, [WORKER]), (WORKER, [WORKER, GROUP]), (WORKER, [GROUP]), (OWNER, [OWNER])],
    ids=["a stranger", "one in its group", "one whose group it is", "its owner, who is not in its group"],
)
def test_an_account_that_would_change_owner_or_group_writes_nothing(
    shared: Path, uid: int, groups: list[int], mode: int
) -> None:
    shared.chmod(mode)
    before, content = shared.stat(), shared.read_bytes()
    said = as_account(uid, groups, lambda: edit(shared, renamed))
    # Whom the mode does not let read it does not come as far.
    readable = uid == OWNER or GROUP in groups or mode & 0o004
    assert said == ("triggers-read-only" if readable else "operator-file")
    after = shared.stat()
    assert (after.st_ino, after.st_uid, after.st_gid, after.st_mtime_ns) == (
        *(before.st_ino, OWNER, GROUP, before.st_mtime_ns),
    )
    assert shared.read_bytes() == content
    only(shared)


@pytest.mark.parametrize("groups", [[OWNER, GROUP], [GROUP]], ids=["among others", "its first"])
def test_the_owner_who_is_in_the_group_of_the_file_keeps_both(shared: Path, groups: list[int]) -> None:
    before = shared.stat()
    assert as_account(OWNER, groups, lambda: edit(shared, renamed)) == "done"
    after = shared.stat()
    assert (after.st_uid, after.st_gid, after.st_mode) == (OWNER, GROUP, before.st_mode)
    assert after.st_ino != before.st_ino
    assert entries_of(shared)[0]["run"]["flow"] == "other"
    only(shared)


def test_whoever_cannot_keep_the_owner_is_told_what_to_do(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert os.geteuid() == 0, _AS_ROOT
    os.chown(file, OWNER, GROUP)

    def refused(*_: Any) -> None:
        raise PermissionError(errno.EPERM, "not permitted")

    monkeypatch.setattr(os, "fchown", refused)
    with pytest.raises(InfraError, match=r"with its owner and group \(12345:12346\).* Run as its owner"):
        edit(file, renamed)


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real = write(tmp_path / "real" / "t.json", rule())
    link = tmp_path / "triggers.json"
    link.symlink_to("real/t.json")
    assert edit(link, renamed)
    assert link.is_symlink()
    assert entries_of(real)[0]["run"]["flow"] == "other"
    only(real)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["real", "triggers.json"]


def test_two_names_of_one_file_have_one_lock(tmp_path: Path) -> None:
    real = write(tmp_path / "t.json", rule())
    link = tmp_path / "triggers.json"
    link.symlink_to(real)
    (tmp_path / "t.json.lock").touch()
    assert cause(lambda: edit(link, renamed)) == "triggers-locked"


def test_a_result_that_its_reader_would_refuse_is_not_written(file: Path) -> None:
    before = file.read_bytes()

    def broken(document: Any) -> bool:
        document["triggers"][0]["run"]["flow"] = "Fix!"
        return True

    with pytest.raises(ConfigError, match="trigger at index 0"):
        edit(file, broken)
    assert file.read_bytes() == before
    only(file)


@pytest.mark.parametrize("text", ['{"triggers": [', '{"triggers": [], "triggers": []}', "\xff", "[1e999]"])
def test_a_file_that_cannot_be_read_is_left_alone(file: Path, text: str) -> None:
    file.write_bytes(text.encode("latin-1"))
    assert cause(lambda: edit(file, lambda _: True)) == "operator-file"
    assert file.read_bytes() == text.encode("latin-1")
    only(file)


def test_a_missing_file_is_not_made(tmp_path: Path) -> None:
    assert cause(lambda: edit(tmp_path / "triggers.json", lambda _: True)) == "operator-file"
    assert list(tmp_path.iterdir()) == []


def test_what_a_change_raises_leaves_the_file_and_no_lock(file: Path) -> None:
    def breaks(_: Any) -> bool:
        raise KeyError("x")

    with pytest.raises(KeyError):
        edit(file, breaks)
    only(file)


def test_at_once_means_at_once(file: Path) -> None:
    lock = lock_of(file, 9.0)
    with pytest.raises(InfraError, match=r"another program writes it, whose lock is triggers\.json\.lock") as caught:
        edit(file, renamed)
    assert caught.value.cause == "triggers-locked"
    assert lock.exists()
    assert entries_of(file)[0]["run"]["flow"] == "deploy"


def test_a_patient_writer_tries_five_times_with_sleeps_of_its_own_choice(file: Path) -> None:
    lock_of(file)
    slept: list[float] = []
    asked: list[tuple[float, float]] = []

    def between(least: float, most: float) -> float:
        asked.append((least, most))
        return float(len(asked))

    patience = Patience(tries=5, sleep=slept.append, between=between)
    assert cause(lambda: edit(file, renamed, patience)) == "triggers-locked"
    assert asked == [(0.1, 0.3)] * 4
    assert slept == [1, 2, 3, 4]


def test_a_patient_writer_goes_on_once_the_lock_is_gone(file: Path) -> None:
    lock = lock_of(file)
    assert edit(file, renamed, Patience(tries=5, sleep=lambda _: lock.unlink()))
    only(file)


def test_a_lock_older_than_ten_seconds_is_taken_away_and_told(file: Path) -> None:
    lock_of(file, 10.5)
    with capture_logs() as logs:
        assert edit(file, renamed)
    [told] = logs
    assert told["event"] == "triggers_lock_stale_taken"
    assert 10_500 <= told["ageMs"] < 60_000
    only(file)


def test_a_lock_from_the_future_is_taken_away_as_an_old_one_is(file: Path) -> None:
    lock_of(file, -9.0)
    assert cause(lambda: edit(file, renamed)) == "triggers-locked"
    lock_of(file, -3600.0)
    with capture_logs() as logs:
        assert edit(file, renamed)
    [told] = logs
    assert told["event"] == "triggers_lock_stale_taken"
    assert -3_700_000 < told["ageMs"] < -3_500_000
    only(file)


def test_a_lock_that_goes_while_it_is_looked_at_is_free(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = lock_of(file)

    def gone(handle: int) -> bool:
        lock.unlink()
        return try_exclusive(handle)

    monkeypatch.setattr(lock_module, "try_exclusive", gone)
    assert edit(file, renamed)


def test_only_one_at_a_time_takes_a_stale_lock_away(file: Path) -> None:
    lock_of(file, 60.0)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        assert try_exclusive(folder)
        assert cause(lambda: edit(file, renamed)) == "triggers-locked"
    finally:
        os.close(folder)
    assert edit(file, renamed)


def test_a_file_system_without_such_locks_is_served_too(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: int) -> bool:
        raise InfraError("none here", "lock-unusable")

    lock_of(file, 60.0)
    monkeypatch.setattr(lock_module, "try_exclusive", none)
    assert edit(file, renamed)


def test_a_lock_that_cannot_be_removed_is_told_and_ends_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remove = os.unlink

    def stuck(path: Any, **more: Any) -> None:
        if str(path).endswith(".lock"):
            raise OSError(errno.EIO, "input/output error")
        remove(path, **more)

    monkeypatch.setattr(os, "unlink", stuck)
    with capture_logs() as logs:
        assert edit(file, renamed)
    assert [(one["event"], one["reason"]) for one in logs] == [("triggers_lock_stuck", "EIO")]
    assert entries_of(file)[0]["run"]["flow"] == "other"


def test_a_writer_that_lost_its_lock_writes_nothing_and_leaves_the_other_ones(file: Path) -> None:
    lock = file.with_name("triggers.json.lock")

    def stopped_for_long(document: Any) -> bool:
        lock.unlink()
        # Held open, or the next file could be the same one again.
        other.append(lock.open("x"))
        return renamed(document)

    other: list[Any] = []
    try:
        with pytest.raises(InfraError, match="stopped for so long") as caught:
            edit(file, stopped_for_long)
    finally:
        other[0].close()
    assert caught.value.cause == "triggers-locked"
    assert sorted(one.name for one in file.parent.iterdir()) == ["triggers.json", "triggers.json.lock"]
    assert entries_of(file)[0]["run"]["flow"] == "deploy"


def test_a_lock_that_somebody_removed_is_no_lock(file: Path) -> None:
    def removed(document: Any) -> bool:
        file.with_name("triggers.json.lock").unlink()
        return renamed(document)

    assert cause(lambda: edit(file, removed)) == "triggers-locked"
    only(file)


def by_another_file(file: Path) -> None:
    """As most editors save: a new file in the place of the old one."""
    write(file.with_name("saved"), *entries_of(file), rule(50)).replace(file)


def in_its_place(file: Path) -> None:
    """As other editors do."""
    write(file, *entries_of(file), rule(50))


def same_length_and_time(file: Path) -> None:
    """As a program that copies files with their times may."""
    before, content = file.stat(), file.read_text()
    file.write_text(content.replace('"number": 41', '"number": 50'))
    # Until the clock of the file system has ticked.
    while (now := file.stat()).st_ctime_ns == before.st_ctime_ns or now.st_mtime_ns != before.st_mtime_ns:
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


SAVED = [by_another_file, in_its_place, same_length_and_time]


@pytest.mark.parametrize("save", SAVED)
def test_what_is_saved_while_it_writes_is_not_lost(file: Path, save: Callable[[Path], None]) -> None:
    found: list[Any] = []

    def changed(document: Any) -> bool:
        found.append(len(document["triggers"]))
        if len(found) == 1:
            save(file)
        return renamed(document)

    assert edit(file, changed)
    assert len(found) == 2
    entries = entries_of(file)
    assert entries[0]["run"]["flow"] == "other"
    assert entries[-1]["on"]["number"] == 50
    only(file)


@pytest.mark.parametrize("save", SAVED[:2])
def test_what_is_saved_right_before_the_rename_is_not_lost(
    file: Path, save: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    sync, times = os.fsync, []

    def saved(handle: int) -> None:
        sync(handle)
        times.append(1)
        if len(times) == 1:
            save(file)

    monkeypatch.setattr(os, "fsync", saved)
    assert edit(file, renamed)
    assert [one["on"]["number"] for one in entries_of(file)] == [40, 41, 50]
    assert entries_of(file)[0]["run"]["flow"] == "other"
    only(file)


def test_what_is_saved_between_two_tries_of_the_rename_is_not_lost(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    act, times = os.replace, []

    def once(*paths: Any) -> None:
        times.append(1)
        if len(times) == 1:
            in_its_place(file)
            raise PermissionError(errno.EPERM, "not now")
        act(*paths)

    monkeypatch.setattr(os, "replace", once)
    assert edit(file, renamed)
    assert [one["on"]["number"] for one in entries_of(file)] == [40, 41, 50]


def test_a_mode_that_is_changed_meanwhile_stays(file: Path) -> None:
    mode = 0o600

    def hidden(document: Any) -> bool:
        if stat.S_IMODE(file.stat().st_mode) != mode:
            file.chmod(mode)
        return renamed(document)

    file.chmod(0o644)
    assert edit(file, hidden)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    mode = 0o400
    assert cause(lambda: edit(file, hidden)) == "triggers-read-only"


def test_a_file_that_is_changed_all_the_time_is_left_to_who_changes_it(file: Path) -> None:
    saved: list[Any] = []

    def busy(document: Any) -> bool:
        saved.append(rule(50 + len(saved)))
        write(file, *saved)
        return renamed(document)

    with pytest.raises(InfraError, match="was changed 3 times while this program worked on it") as caught:
        edit(file, busy)
    assert caught.value.cause == "triggers-locked"
    assert entries_of(file) == [rule(50), rule(51), rule(52)]
    only(file)


def test_a_file_that_goes_away_meanwhile_is_not_made_anew(file: Path) -> None:
    def gone(document: Any) -> bool:
        file.unlink()
        return renamed(document)

    assert cause(lambda: edit(file, gone)) == "operator-file"
    assert list(file.parent.iterdir()) == []


def test_a_file_that_nobody_has_the_right_to_write_is_read_only_for_root_too(file: Path) -> None:
    file.chmod(0o444)
    with pytest.raises(InfraError, match="cannot be written: nobody has the right") as caught:
        edit(file, renamed)
    assert caught.value.cause == "triggers-read-only"
    only(file)


@pytest.mark.parametrize(
    ("number", "cause_"),
    [
        (errno.EROFS, "triggers-read-only"),
        (errno.EACCES, "triggers-read-only"),
        (errno.EBUSY, "triggers-read-only"),
        (errno.ENOSPC, "triggers-unwritable"),
    ],
)
@pytest.mark.parametrize("where", ["open", "replace"])
def test_a_place_that_takes_no_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, where: str, number: int, cause_: str
) -> None:
    act = getattr(os, where)

    def refused(path: Any, *more: Any, **named: Any) -> Any:
        if str(path).endswith((".lock", ".tmp")):
            raise OSError(number, os.strerror(number))
        return act(path, *more, **named)

    monkeypatch.setattr(os, where, refused)
    assert cause(lambda: edit(file, renamed)) == cause_
    monkeypatch.undo()
    only(file)
    assert entries_of(file)[0]["run"]["flow"] == "deploy"


def test_one_refused_rename_is_tried_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    act, times = os.replace, []

    def once(*paths: Any) -> None:
        times.append(1)
        if len(times) == 1:
            raise PermissionError(errno.EPERM, "not now")
        act(*paths)

    monkeypatch.setattr(os, "replace", once)
    assert edit(file, renamed)
    assert len(times) == 2


def test_what_a_killed_writer_of_the_same_number_left_is_in_nobodys_way(file: Path) -> None:
    for number in range(2000):
        file.with_name(f"triggers.json.{os.getpid()}.{number}.tmp").touch()
    assert edit(file, renamed)


def test_threads_that_write_at_once_all_have_their_change(file: Path) -> None:
    numbers = range(50, 58)
    gate = threading.Barrier(len(numbers))
    patience = Patience(tries=10_000, shortest_s=0.0, longest_s=0.001)

    def add(number: int) -> None:
        def added(document: Any) -> bool:
            document["triggers"].append(rule(number))
            return True

        gate.wait()
        assert edit(file, added, patience)

    threads = [threading.Thread(target=add, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one["on"]["number"] for one in entries_of(file)) == [40, 41, *numbers]
    only(file)


def test_a_person_waits_for_nothing() -> None:
    assert AT_ONCE.tries == 1


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(st.characters(codec="utf-8"), max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcé", max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(extra=st.dictionaries(st.text("xyzü_", min_size=1, max_size=5), _JSON, max_size=4))
def test_whatever_stands_beside_what_is_changed_stays(tmp_path: Path, extra: dict[str, Any]) -> None:
    path = tmp_path / "triggers.json"
    document = {**extra, "triggers": [{**extra, **rule()}, rule(41)]}
    path.write_text(json.dumps(document))
    assert edit(path, renamed)
    renamed(document)
    assert path.read_text(encoding="utf-8") == json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def test_a_file_that_comes_while_it_is_looked_for_is_written(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat, missing = Path.stat, [True, True]

    def late(self: Path, **options: Any) -> os.stat_result:
        # For the lock and for the first try it is not there yet.
        if self.name == file.name and missing:
            missing.pop()
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        return stat(self, **options)

    monkeypatch.setattr(Path, "stat", late)
    assert edit(file, renamed)
    assert entries_of(file)[0]["run"]["flow"] == "other"
    assert not missing

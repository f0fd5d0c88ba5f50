"""A file that is taken over while a program runs: real folders, a real watcher, and nothing but its events."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pidispatch.config.operator_file import refuse
from pidispatch.config.watched import FileName, WatchedFile
from pidispatch.values.errors import ConfigError
from tests.support.heard import Heard, listening

Numbers = tuple[int, ...]


@pytest.fixture
def heard() -> Iterator[Heard]:
    with listening() as heard:
        yield heard


def parser(path: Path) -> Callable[[str], Numbers]:
    def parse(text: str) -> Numbers:
        try:
            return tuple(json.loads(text))
        except ValueError:
            refuse(path, ("is no list. Write one",))

    return parse


def watched(path: Path, look_s: float = 3600) -> WatchedFile[Numbers]:
    """The file, of which nothing is heard but by events, unless it is looked at often."""
    return WatchedFile(path, FileName.PAUSE_WINDOWS, parser(path), debounce_ms=5, look_s=look_s)


@contextmanager
def watching(file: WatchedFile[Numbers], heard: Heard) -> Iterator[None]:
    file.load()
    file.start()
    try:
        heard.wait("pause_windows_watching")
        yield
    finally:
        file.stop()


def replace(path: Path, text: str) -> None:
    """In one step, as most editors do it: nobody sees half of it."""
    new = path.with_name("new")
    new.write_text(text)
    os.replace(new, path)


@pytest.mark.parametrize("write", [Path.write_text, replace], ids=["in place", "replaced"])
def test_an_edit_is_taken_over(write: Callable[[Path, str], object], tmp_path: Path, heard: Heard) -> None:
    path = tmp_path / "numbers.json"
    path.write_text("[1]")
    file = watched(path)
    told: list[Numbers] = []
    file.on_change.append(told.append)
    with watching(file, heard):
        assert (file.value, file.fault) == ((1,), None)
        for number in (2, 3):
            write(path, f"[1, {number}]")
            assert heard.wait("pause_windows_reloaded", number - 1)["count"] == 2
            assert file.value == (1, number)
    assert told == [(1, 2), (1, 3)]
    assert heard.named("pause_windows_watching") == [
        {"event": "pause_windows_watching", "path": str(path), "log_level": "info"}
    ]


def test_a_bad_edit_keeps_what_was_good_and_says_so_until_it_is_mended(tmp_path: Path, heard: Heard) -> None:
    path = tmp_path / "numbers.json"
    path.write_text("[1]")
    file = watched(path)
    edits: list[str | None] = []
    file.on_edit.append(lambda: edits.append(file.fault))
    with watching(file, heard):
        replace(path, "[1,")
        told = heard.wait("pause_windows_reload_invalid")
        assert (told["reason"], told["log_level"]) == (f"{path}: is no list. Write one", "error")
        assert (file.value, file.fault) == ((1,), told["reason"])
        replace(path, "[1]")
        heard.wait("pause_windows_reloaded")
        assert (file.value, file.fault) == ((1,), None)
    assert edits == [f"{path}: is no list. Write one", None]


def test_a_file_that_vanishes_is_a_bad_edit(tmp_path: Path, heard: Heard) -> None:
    path = tmp_path / "numbers.json"
    path.write_text("[1]")
    file = watched(path)
    with watching(file, heard):
        path.unlink()
        assert "No such file" in heard.wait("pause_windows_reload_invalid")["reason"]
        assert file.value == (1,)
        path.write_text("[2]")
        heard.wait("pause_windows_reloaded")
        assert (file.value, file.fault) == ((2,), None)


def test_a_mounted_configmap_is_swapped_by_a_link_above_the_file(tmp_path: Path, heard: Heard) -> None:
    def put(name: str, text: str) -> None:
        (tmp_path / name).mkdir()
        (tmp_path / name / "numbers.json").write_text(text)
        (tmp_path / "..data_tmp").symlink_to(name)
        os.replace(tmp_path / "..data_tmp", tmp_path / "..data")

    put("..2026_1", "[1]")
    path = tmp_path / "numbers.json"
    path.symlink_to("..data/numbers.json")
    file = watched(path)
    with watching(file, heard):
        for number in (2, 3):
            put(f"..2026_{number}", f"[{number}]")
            heard.wait("pause_windows_reloaded", number - 1)
            assert file.value == (number,)
            # Now in another folder, which is watched from now on.
            heard.wait("pause_windows_watching", number)
        for one in ("..2026_1/numbers.json", "..2026_2/numbers.json"):
            (tmp_path / one).unlink()
            (tmp_path / one).parent.rmdir()
        put("..2026_4", "[4,")
        heard.wait("pause_windows_reload_invalid")
        assert file.value == (3,)


def test_a_file_that_is_a_link_into_another_folder_is_watched_there(tmp_path: Path, heard: Heard) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "etc").mkdir()
    (tmp_path / "real" / "one").write_text("[1]")
    path = tmp_path / "etc" / "numbers.json"
    path.symlink_to(tmp_path / "real" / "one")
    file = watched(path)
    with watching(file, heard):
        (tmp_path / "real" / "one").write_text("[2]")
        heard.wait("pause_windows_reloaded")
        assert file.value == (2,)


def test_an_edit_between_load_and_watching_is_found(tmp_path: Path, heard: Heard) -> None:
    path = tmp_path / "numbers.json"
    path.write_text("[1]")
    file = watched(path)
    file.load()
    path.write_text("[2]")
    file.start()
    heard.wait("pause_windows_reloaded")
    assert file.value == (2,)
    file.stop()


def test_other_files_of_the_folder_change_nothing(tmp_path: Path, heard: Heard) -> None:
    path = tmp_path / "numbers.json"
    path.write_text("[1]")
    file = watched(path)
    with watching(file, heard):
        (tmp_path / "other").write_text("x")
        path.touch()
        replace(path, "[2]")
        heard.wait("pause_windows_reloaded")
    assert len(heard.named("pause_windows_reloaded")) == 1
    assert heard.named("pause_windows_reload_invalid") == []


def test_without_events_it_is_looked_at_now_and_then(
    tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a network's file system is like: nothing tells of an edit from elsewhere.
    monkeypatch.setattr(WatchedFile, "_folders", lambda _: (str(tmp_path / "silent"),))
    (tmp_path / "silent").mkdir()
    path = tmp_path / "numbers.json"
    path.write_text("[1]")
    file = watched(path, look_s=0.01)
    with watching(file, heard):
        path.write_text("[2]")
        heard.wait("pause_windows_reloaded")
    assert file.fault is None


def test_a_folder_that_is_gone_is_told_once_and_watched_when_it_is_back(
    tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries, folders = threading.Semaphore(0), WatchedFile._folders

    def counted(file: WatchedFile[Numbers]) -> tuple[str, ...]:
        tries.release()
        return folders(file)

    monkeypatch.setattr(WatchedFile, "_folders", counted)
    folder = tmp_path / "etc"
    folder.mkdir()
    path = folder / "numbers.json"
    path.write_text("[1]")
    file = watched(path, look_s=0.01)
    file.load()
    path.unlink()
    folder.rmdir()
    file.start()
    try:
        assert "FileNotFoundError" in heard.wait("pause_windows_watch_unavailable")["reason"]
        heard.wait("pause_windows_reload_invalid")
        assert file.value == (1,)
        assert all(tries.acquire(timeout=20) for _ in range(4))
        folder.mkdir()
        path.write_text("[2]")
        heard.wait("pause_windows_watching")
        heard.wait("pause_windows_reloaded")
        assert (file.value, file.fault) == ((2,), None)
    finally:
        file.stop()
    assert len(heard.named("pause_windows_watch_unavailable")) == 1


def test_a_mistake_in_judging_ends_nothing(tmp_path: Path, heard: Heard) -> None:
    path = tmp_path / "numbers.json"
    path.write_text("1")

    def parse(text: str) -> Numbers:
        return (10 // int(text),)

    file = WatchedFile(path, FileName.PAUSE_WINDOWS, parse, debounce_ms=5, look_s=3600)
    with watching(file, heard):
        replace(path, "0")
        assert heard.wait("pause_windows_reload_invalid")["reason"].endswith("ZeroDivisionError. Undo the edit")
        assert file.value == (10,)
        replace(path, "5")
        heard.wait("pause_windows_reloaded")
        assert file.value == (2,)


@pytest.mark.parametrize("text", [None, "[", "\udcff"], ids=["missing", "invalid", "no UTF-8"])
def test_a_program_does_not_start_on_a_file_that_it_cannot_use(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "numbers.json"
    if text is not None:
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError) as caught:
        watched(path).load()
    assert (caught.value.cause, caught.value.exit_code) == ("operator-file", 2)
    assert str(path) in caught.value.message


def test_its_thread_ends_with_it_and_keeps_no_program_alive(tmp_path: Path, heard: Heard) -> None:
    path = tmp_path / "numbers.json"
    path.write_text("[1]")
    file = watched(path)
    file.stop()
    file = watched(path)
    with watching(file, heard):
        [thread] = [one for one in threading.enumerate() if one.name == "pi-watch-pause_windows"]
        assert thread.daemon
    assert not thread.is_alive()

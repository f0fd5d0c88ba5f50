"""Kept output: what a job printed, up to a bound, and never a reason for a run to fail."""

import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from pidispatch.box.run import Sink
from pidispatch.runs import joblog
from pidispatch.runs.joblog import JobLog, shown, tee

MARKER = b"\n[pi-dispatch: PI_JOB_LOG_MAX_BYTES=5 is reached; the rest was not kept]\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "local-1.log"


def test_everything_is_kept_as_it_came_in_a_private_file(path: Path) -> None:
    path.write_text("of an earlier attempt, and longer")
    path.chmod(0o644)
    sink = JobLog(path, 100)
    sink.write(b"one\n\xff")
    sink.write(b"")
    sink.write(b"two")
    assert path.read_bytes() == b"one\n\xfftwo"
    sink.close()
    sink.close()
    sink.write(b"late")
    assert path.read_bytes() == b"one\n\xfftwo"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("chunks", [[b"12345", b"6"], [b"1234567"], [b"123", b"4567", b"8"], [b"1"] * 9])
def test_past_the_bound_one_marker_is_written_and_no_more(path: Path, chunks: list[bytes]) -> None:
    sink = JobLog(path, 5)
    for chunk in chunks:
        sink.write(chunk)
    sink.close()
    assert path.read_bytes() == b"".join(chunks)[:5] + MARKER


def test_output_of_just_the_bound_has_no_marker(path: Path) -> None:
    sink = JobLog(path, 5)
    sink.write(b"12345")
    sink.write(b"")
    sink.close()
    assert path.read_bytes() == b"12345"


@settings(deadline=None)
@given(st.lists(st.binary(max_size=20), max_size=8), st.integers(1, 40))
def test_no_bytes_in_no_pieces_pass_the_bound(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes], bound: int
) -> None:
    path = tmp_path_factory.mktemp("kept") / "a.log"
    sink = JobLog(path, bound)
    for chunk in chunks:
        sink.write(chunk)
    sink.close()
    whole, kept = b"".join(chunks), path.read_bytes()
    assert kept[:bound] == whole[:bound]
    assert (b"rest was not kept" in kept[bound:]) == (len(whole) > bound)
    assert len(kept) <= bound + 200


def _link(path: Path) -> None:
    (path.parent / "victim").write_text("mine")
    path.symlink_to(path.parent / "victim")


@pytest.mark.parametrize("plant", [Path.mkdir, os.mkfifo, _link])
def test_a_file_that_cannot_be_opened_is_told_once_and_ends_nothing(path: Path, plant: object) -> None:
    assert callable(plant)
    plant(path)
    with capture_logs() as logged:
        sink = JobLog(path, 5)
        sink.write(b"x")
        sink.write(b"x")
        sink.close()
    assert [(entry["event"], entry["jobId"]) for entry in logged] == [("log_sink_error", "local-1")]
    if path.is_symlink():
        assert path.read_text() == "mine"


def test_a_pipe_with_a_reader_is_no_file_either(path: Path) -> None:
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with capture_logs() as logged:
        JobLog(path, 5).write(b"x")
    assert [entry["event"] for entry in logged] == ["log_sink_error"]
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_disk_that_is_full_is_told_once_and_ends_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = JobLog(path, 100)
    sink.write(b"kept")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(joblog, "_write_all", full)
    with capture_logs() as logged:
        sink.write(b"lost")
        sink.write(b"lost")
        sink.close()
    assert [(entry["event"], entry["errno"]) for entry in logged] == [("log_sink_error", 28)]
    assert path.read_bytes() == b"kept"


def test_a_file_that_cannot_be_closed_is_told_and_ends_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = JobLog(path, 100)
    close = os.close

    def failing(handle: int) -> None:
        close(handle)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "close", failing)
    with capture_logs() as logged:
        sink.close()
        sink.close()
    assert [(entry["event"], entry["errno"]) for entry in logged] == [("log_sink_error", 5)]


def test_a_log_whose_reader_is_gone_ends_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> object:
        raise BrokenPipeError

    monkeypatch.setattr(joblog, "log", gone)
    path.mkdir()
    sink = JobLog(path, 5)
    sink.write(b"x")
    sink.close()
    assert list(path.iterdir()) == []


def test_close_does_not_wait_for_a_write_that_hangs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    write_all = joblog._write_all

    def hanging(handle: int, data: bytes) -> None:
        begun.set()
        go_on.wait()
        write_all(handle, data)

    monkeypatch.setattr(joblog, "_write_all", hanging)
    monkeypatch.setattr(joblog, "_CLOSE_S", 0.01)
    sink = JobLog(path, 100)
    writer = threading.Thread(target=sink.write, args=(b"slow",))
    writer.start()
    begun.wait()
    sink.close()
    assert writer.is_alive()
    go_on.set()
    writer.join()
    sink.write(b"late")
    assert path.read_bytes() == b"slow"


def test_output_goes_to_every_sink_in_order() -> None:
    heard: list[tuple[str, bytes]] = []
    write = tee([lambda chunk: heard.append(("a", chunk)), lambda chunk: heard.append(("b", chunk))])
    write(b"1")
    write(b"2")
    assert heard == [("a", b"1"), ("b", b"1"), ("a", b"2"), ("b", b"2")]
    tee([])(b"nobody hears it")


def test_what_is_shown_is_asked_for_once_and_with_the_first_output() -> None:
    asked: list[str] = []
    heard = bytearray()

    def output(job_id: str) -> Sink:
        asked.append(job_id)
        return heard.extend

    write = shown(output, "local-1")
    assert asked == []
    write(b"one ")
    write(b"two")
    assert (asked, bytes(heard)) == (["local-1"], b"one two")


@pytest.mark.parametrize("at", ["output", "sink"])
def test_a_sink_that_fails_is_told_once_and_asked_no_more(at: str) -> None:
    calls: list[str] = []

    def sink(_: bytes) -> None:
        calls.append("sink")
        raise BrokenPipeError("private")

    def output(_: str) -> Sink:
        calls.append("output")
        if at == "output":
            raise BrokenPipeError("private")
        return sink

    write = shown(output, "local-1")
    with capture_logs() as events:
        write(b"1")
        write(b"2")
    assert calls == ["output", "sink"][: 1 + (at == "sink")]
    told = {"event": "output_sink_failed", "jobId": "local-1", "cause": "BrokenPipeError", "log_level": "warning"}
    assert events == [told]

"""The one way programs are started: bounded, timed, closed, and nothing left behind."""

import os
import select
import sys
import threading
from pathlib import Path

import pytest

from pidispatch.values.errors import InfraError
from pidispatch.workspace import process
from pidispatch.workspace.process import Finished, program, run_program
from tests.unit.workspace.repository import script


def python(
    code: str,
    *arguments: str,
    env: dict[str, str] | None = None,
    cwd: Path = Path("/"),
    timeout_s: float = 60,
    max_bytes: int = 1 << 20,
    stdin: bytes = b"",
) -> Finished:
    return run_program(
        [sys.executable, "-I", "-c", code, *arguments],
        env=env or {},
        cwd=cwd,
        timeout_s=timeout_s,
        max_bytes=max_bytes,
        stdin=stdin,
    )


def test_tells_exit_code_and_both_outputs() -> None:
    done = python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert done == Finished(3, b"out\n", b"err\n", False)
    assert done.error_text == "err\n"


def test_a_signal_is_a_negative_code() -> None:
    assert python("import os; os.kill(os.getpid(), 15)").code == -15


def test_undecodable_error_text_is_replaced() -> None:
    assert Finished(1, b"", b"\xff!", False).error_text == "\ufffd!"


@pytest.mark.parametrize(("written", "truncated"), [(999, False), (1000, False), (1001, True), (5_000_000, True)])
def test_output_is_cut_at_the_bound_and_the_program_never_blocks(written: int, truncated: bool) -> None:
    done = python("import sys; sys.stdout.write('x' * int(sys.argv[1]))", str(written), max_bytes=1000)
    assert done.code == 0
    assert done.output == b"x" * min(written, 1000)
    assert done.truncated is truncated


def test_error_output_is_bounded_too() -> None:
    done = python("import sys; sys.stderr.write('x' * 5_000_000)", max_bytes=1000)
    assert done.errors == b"x" * 1000


def test_stdin_reaches_the_program() -> None:
    data = os.urandom(300_000)
    assert python("import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())", stdin=data).output == data


def test_a_program_that_reads_no_stdin_ends_all_the_same() -> None:
    assert python("print('done')", stdin=b"x" * 5_000_000).output == b"done\n"


def test_the_environment_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_WORKER", "1")
    env = program("env")
    done = run_program([env], env={"ONLY": "this"}, cwd=Path("/"), timeout_s=60, max_bytes=1000)
    assert done.output == b"ONLY=this\n"


def test_no_other_descriptor_is_inherited() -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    try:
        code = "import os, sys; os.fstat(int(sys.argv[1]))"
        assert python(code, str(writing)).code == 1
    finally:
        os.close(reading)
        os.close(writing)


def test_runs_in_the_folder_it_is_given(tmp_path: Path) -> None:
    done = python("import os; print(os.getcwd())", cwd=tmp_path)
    assert done.output.decode().strip() == os.path.realpath(tmp_path)


#: A child and a grandchild that hold the outputs open and never end; the grandchild's id stands in a file.
_FAMILY = "sh -c 'sh -c \"echo \\$\\$ >pid; echo; exec sleep 600\" & exec sleep 600' | { read -r _; %s; }"


def family(tmp_path: Path, then: str, timeout_s: float) -> Finished:
    return run_program(
        [program("sh"), "-c", _FAMILY % then],
        env={"PATH": os.environ["PATH"]},
        cwd=tmp_path,
        timeout_s=timeout_s,
        max_bytes=1000,
    )


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def _ends(pid: int) -> bool:
    """Whether a process ends soon: a signal that was sent is not yet a process that is gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(10_000))
    finally:
        os.close(handle)


@pytest.fixture(params=["told", "looked for"])
def exits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system tells that a program has ended, or has nothing that would."""

    def none(_: int) -> int:
        raise OSError(38, "not implemented")

    if request.param == "looked for":
        monkeypatch.setattr(os, "pidfd_open", none)


@pytest.mark.usefixtures("exits")
def test_a_program_that_closes_its_outputs_is_waited_for() -> None:
    done = python("import os, time; os.close(1); os.close(2); time.sleep(0.3); os._exit(4)")
    assert (done.code, done.output) == (4, b"")


@pytest.mark.usefixtures("exits")
def test_what_it_wrote_last_is_read_after_its_end() -> None:
    done = python("import sys; sys.stdout.write('x' * 3_000_000); sys.stderr.write('last'); sys.exit(5)")
    assert (done.code, done.errors, len(done.output)) == (5, b"last", 1 << 20)


def test_a_time_out_kills_the_whole_group(tmp_path: Path) -> None:
    with pytest.raises(InfraError) as caught:
        family(tmp_path, "exec sleep 600", timeout_s=2)
    assert caught.value.cause == "timeout"
    assert "2 s" in caught.value.message
    assert _ends(int((tmp_path / "pid").read_text()))


class StopAt:
    """Set once a file is there."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def is_set(self) -> bool:
        return self._path.exists()


@pytest.mark.parametrize("told", [True, False])
def test_a_program_that_is_not_wanted_any_more_is_ended_with_its_group(
    *, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not told:
        monkeypatch.setattr(process, "_exit_fd", lambda _: None)
    with pytest.raises(InfraError) as caught:
        run_program(
            [program("sh"), "-c", _FAMILY % "echo >stop; exec sleep 600"],
            env={"PATH": os.environ["PATH"]},
            cwd=tmp_path,
            timeout_s=60,
            max_bytes=1000,
            stop=StopAt(tmp_path / "stop"),
        )
    assert caught.value.cause == "stopped"
    assert _ends(int((tmp_path / "pid").read_text()))


def test_what_is_not_wanted_from_the_first_is_not_started(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    # Starting it would fail.
    command = [str(tmp_path / "absent")]
    with pytest.raises(InfraError) as caught:
        run_program(command, env={}, cwd=Path("/"), timeout_s=60, max_bytes=1000, stop=stop)
    assert caught.value.cause == "stopped"


@pytest.mark.usefixtures("exits")
def test_what_could_be_stopped_and_is_not_comes_to_its_end_or_to_its_time() -> None:
    sleep = [program("sleep"), "600"]
    echo = [program("echo"), "done"]
    stop = threading.Event()
    done = run_program(echo, env={}, cwd=Path("/"), timeout_s=60, max_bytes=1000, stop=stop)
    assert done == Finished(0, b"done\n", b"", False)
    with pytest.raises(InfraError) as caught:
        run_program(sleep, env={}, cwd=Path("/"), timeout_s=0.1, max_bytes=1000, stop=stop)
    assert caught.value.cause == "timeout"


@pytest.mark.parametrize("told", [True, False])
def test_children_left_behind_do_not_hold_the_call(
    *, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not told:
        monkeypatch.setattr(process, "_exit_fd", lambda _: None)
    assert family(tmp_path, "kill -9 $$", timeout_s=60).code == -9
    assert _ends(int((tmp_path / "pid").read_text()))


def test_a_child_that_left_the_group_does_not_hold_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_DRAIN_S", 0.2)
    code = """
import os, signal
print('before', flush=True)
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    print(os.getpid(), flush=True)
    os.close(writing)
    os.close(reading)
    signal.pause()
os.close(writing)
os.read(reading, 1)
"""
    done = python(code)
    word, pid = done.output.split()
    try:
        assert word == b"before"
        assert _alive(int(pid))
    finally:
        os.kill(int(pid), 9)


def test_a_program_that_cannot_be_started_is_a_fault_of_the_surroundings(tmp_path: Path) -> None:
    with pytest.raises(InfraError) as caught:
        run_program([str(tmp_path / "absent")], env={}, cwd=Path("/"), timeout_s=60, max_bytes=1000)
    assert caught.value.cause == "not-started"
    with pytest.raises(InfraError) as caught:
        python("", cwd=tmp_path / "absent")
    assert str(tmp_path) not in caught.value.message


def test_finds_a_program_on_absolute_entries_of_the_path_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "tool", "exit 0")
    monkeypatch.chdir(tmp_path)
    for relative in (".", "", "./", os.path.relpath(tmp_path)):
        monkeypatch.setenv("PATH", os.pathsep.join([relative, "/nonexistent"]))
        with pytest.raises(InfraError) as caught:
            program("tool")
        assert caught.value.cause == "no-tool"
        assert "install" in caught.value.message
    monkeypatch.setenv("PATH", os.pathsep.join([".", str(tmp_path)]))
    assert program("tool") == str(tmp_path / "tool")


def test_a_path_of_relative_entries_only_finds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "tool", "exit 0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ".")
    with pytest.raises(InfraError):
        program("tool")

"""`logs --follow` with a real server, the moves of the worker made by hand, and its output written byte by byte."""

import io
import os
import signal
from collections.abc import Callable
from threading import Thread

import click
import pytest
from rich.console import Console

from pidispatch.cli.follow import REST, Follower
from pidispatch.cli.main import _run
from pidispatch.cli.view import Live
from pidispatch.jobs.charges import Reserved
from pidispatch.jobs.rows import JobState, Lease
from pidispatch.runs.joblog import JobLog
from pidispatch.values.outcome import Completed, InfraFailed
from pidispatch.values.reason import Reason
from tests.integration.cli.bench import Bench, Script, nothing
from tests.support.server import until

JOB = "local-1"
DONE = Completed()
INFRA = InfraFailed(reason=Reason.INFRA)
Step = Callable[[], object]


class Follow:
    """One who follows the job, step by step; what was printed, what was said beside it, and how it ended."""

    def __init__(self, bench: Bench, *steps: Step) -> None:
        self.target, notes = io.StringIO(), io.StringIO()
        self.script = Script(steps)
        live = Live(Console(file=notes), None)
        follower = Follower(bench.store, bench.records, live, self.target, self.script)
        self.known = follower.knows(JOB)
        try:
            self.ended: bool | None = follower(JOB)
        except click.ClickException as error:
            self.ended, self.error = None, error.message
        self.said = notes.getvalue().splitlines()

    @property
    def printed(self) -> str:
        return self.target.getvalue()


class Kept:
    """The output of the job as its worker keeps it."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._log: JobLog | None = None

    def begin(self) -> None:
        """Another attempt begins: what the one before left is gone."""
        self._log = JobLog(self._bench.records.log_path(JOB), 1000)

    def say(self, text: bytes) -> Step:
        """A step in which the job prints."""

        def step() -> None:
            assert self._log is not None
            self._log.write(text)

        return step


@pytest.fixture
def kept(bench: Bench) -> Kept:
    return Kept(bench)


def spend(bench: Bench) -> Lease:
    """A worker has the job, and its container is about to start."""
    lease = bench.take()
    assert bench.store.spend(lease) == Reserved()
    return lease


def test_a_job_is_followed_from_before_its_start_to_its_end(bench: Bench, kept: Kept) -> None:
    bench.submit()
    leases: list[Lease] = []

    def start() -> None:
        kept.begin()
        leases.append(spend(bench))

    follow = Follow(
        bench, nothing, start, kept.say(b"one\n"), kept.say(b"tw"), kept.say(b"o\n"), lambda: bench.end(leases[0], DONE)
    )
    assert (follow.known, follow.ended) == (True, True)
    assert follow.printed == "one\ntwo\n"
    assert follow.said == ["waiting in pi-jobs", "attempt 1 of 2 runs on build-1"]


def test_what_is_split_between_two_looks_comes_out_whole_and_escaped(bench: Bench, kept: Kept) -> None:
    bench.submit()
    kept.begin()
    lease = spend(bench)
    character = "\u4e2d".encode()
    follow = Follow(
        bench,
        kept.say(b"a" + character[:1]),
        kept.say(character[1:2]),
        kept.say(character[2:] + b"\x1b[31"),
        kept.say(b"m\tcut \xe2"),
        lambda: bench.end(lease, DONE),
    )
    assert follow.printed == "a\u4e2d\\u{001B}[31m    cut \ufffd\n"


def test_the_next_attempt_follows_though_it_prints_the_same(bench: Bench, kept: Kept) -> None:
    bench.submit()
    kept.begin()
    lease = spend(bench)

    def again() -> None:
        kept.begin()
        kept.say(b"same\nand more\n")()
        second.append(spend(bench))

    second: list[Lease] = []
    follow = Follow(
        bench,
        kept.say(b"same\n"),
        kept.say(b"no end"),
        lambda: bench.end(lease, INFRA),
        again,
        nothing,
        lambda: bench.end(second[0], DONE),
    )
    assert follow.ended is True
    assert follow.printed == "same\nno end\nsame\nand more\n"
    assert any(line.startswith("attempt 1 of 2 failed (infra)") for line in follow.said)
    assert follow.said[-1] == "attempt 2 of 2 runs on build-1"


def test_one_who_comes_between_two_attempts_sees_both(bench: Bench, kept: Kept) -> None:
    bench.submit()
    kept.begin()
    kept.say(b"first\n")()
    bench.end(spend(bench), INFRA)

    def again() -> None:
        kept.begin()
        kept.say(b"second, which is longer\n")()
        bench.end(spend(bench), DONE)

    follow = Follow(bench, nothing, again)
    assert follow.printed == "first\nsecond, which is longer\n"
    assert follow.script.pauses == 2


def test_a_refused_second_attempt_leaves_the_output_of_the_first(bench: Bench, kept: Kept) -> None:
    bench.submit()
    kept.begin()
    kept.say(b"first\n")()
    bench.end(spend(bench), INFRA)
    follow = Follow(bench, lambda: bench.end(bench.take(), DONE))
    assert (follow.ended, follow.printed) == (True, "first\n")


def test_a_job_that_ended_is_printed_at_once(bench: Bench, kept: Kept) -> None:
    bench.submit()
    kept.begin()
    kept.say(b"all of it")()
    bench.end(spend(bench), DONE)
    follow = Follow(bench)
    assert (follow.printed, follow.said, follow.script.pauses) == ("all of it\n", [], 0)


def test_output_that_is_not_kept_is_told_once_and_at_the_end(bench: Bench) -> None:
    bench.submit()
    lease = spend(bench)
    follow = Follow(bench, nothing, nothing, lambda: bench.end(lease, DONE))
    assert follow.ended is None
    assert "the output of local-1 was not kept" in follow.error
    assert [line.partition(":")[0] for line in follow.said] == [
        f"local-1 runs, and its output is not kept in {bench.records.folder}",
        "attempt 1 of 2 runs on build-1",
    ]


def test_whoever_is_told_to_go_ends_the_line_and_changes_nothing(bench: Bench, kept: Kept) -> None:
    bench.submit()
    kept.begin()
    spend(bench)
    before = bench.row()
    follow = Follow(bench, kept.say(b"half a line"))
    assert (follow.ended, follow.printed) == (False, "half a line\n")
    assert bench.row() == before


def test_while_the_server_is_away_the_record_tells_the_end(bench: Bench, kept: Kept) -> None:
    bench.submit()
    kept.begin()
    lease = spend(bench)
    steps = [kept.say(b"one\n"), bench.server.stop, kept.say(b"two\n"), *[nothing] * REST]
    try:
        follow = Follow(bench, *steps, kept.begin, kept.say(b"2\n"))
        assert (follow.ended, follow.printed) == (False, "one\ntwo\n2\n")
        assert [line for line in follow.said if "does not answer" in line] == [follow.said[-1]]
        assert "Until it does, the record of the run tells its end" in follow.said[-1]
    finally:
        bench.server.start()
    record = bench.end(lease, DONE, recorded=False)
    bench.server.stop()
    try:
        follow = Follow(bench, lambda: bench.records.write(record))
        assert (follow.ended, follow.printed) == (True, "2\n")
    finally:
        bench.server.start()


def test_a_server_that_comes_back_has_the_last_word_again(bench: Bench, kept: Kept) -> None:
    bench.submit()
    kept.begin()
    kept.say(b"one\n")()
    lease = spend(bench)
    bench.server.stop()
    steps = [bench.server.start, *[nothing] * REST, kept.say(b"two\n"), lambda: bench.end(lease, DONE)]
    follow = Follow(bench, *steps)
    # What was printed is not printed again.
    assert (follow.ended, follow.printed) == (True, "one\ntwo\n")


def test_output_of_a_job_that_the_store_does_not_know_is_printed(bench: Bench, kept: Kept) -> None:
    kept.begin()
    kept.say(b"left\n")()
    assert Follow(bench).printed == "left\n"
    kept_of_nobody = bench.records.log_path(JOB)
    kept_of_nobody.unlink()
    assert Follow(bench).known is False


def test_a_reader_that_went_away_ends_it(bench: Bench, kept: Kept) -> None:
    bench.submit()
    kept.begin()
    spend(bench)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as target:
        follower = Follower(bench.store, bench.records, Live(Console(file=io.StringIO()), None), target, Script([]))
        assert follower(JOB) is True


def test_the_verb_refuses_what_is_unknown_and_takes_the_beginning_of_an_id(bench: Bench, kept: Kept) -> None:
    found = bench.program.run("logs", "-f", JOB)
    assert found.code == 1
    assert "no record of a run 'local-1'" in found.err
    bench.submit()
    kept.begin()
    kept.say(b"out\n")()
    bench.end(spend(bench), DONE)
    found = bench.program.run("logs", "--follow", "loc")
    assert (found.code, found.out, found.err) == (0, "out\n", "")


@pytest.fixture
def here(bench: Bench, kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has the environment of the program, and the job runs."""
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    monkeypatch.setenv("PI_LOGS_DIR", str(bench.records.folder))
    bench.submit()
    kept.begin()
    kept.say(b"one\n")()
    spend(bench)


@pytest.mark.usefixtures("here")
def test_ctrl_c_ends_the_verb_with_1_and_leaves_the_job(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)

    def interrupt() -> None:
        until(lambda: signal.getsignal(signal.SIGINT) is not before, "the verb to listen")
        os.kill(os.getpid(), signal.SIGINT)

    user = Thread(target=interrupt)
    user.start()
    code = _run(["logs", "-f", JOB])
    user.join()
    captured = capsys.readouterr()
    assert (code, captured.out) == (1, "one\n")
    assert f"no longer following. If the job runs it goes on; cancel it with: pi-dispatch cancel {JOB}" in captured.err
    assert signal.getsignal(signal.SIGINT) is before
    assert bench.state() is JobState.ACTIVE


@pytest.mark.usefixtures("here")
def test_a_reader_that_has_seen_enough_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Gone())
    assert _run(["logs", "-f", JOB]) == 0

"""What one who waits is told of a job, look by look, and what a signal does to the wait."""

import io
import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from pidispatch.cli.view import Live
from pidispatch.cli.wait import Narrator, instant, signalled
from pidispatch.jobs.rows import JobState, Row
from pidispatch.values.job import LocalJob
from pidispatch.values.outcome import InfraFailed
from pidispatch.values.reason import Reason
from pidispatch.values.record import Result, RunRecord
from pidispatch.values.verdict import Why
from tests.support.rows import row_of

#: 2026-01-01T00:00:05Z by the server's clock.
DUE_MS = 1_767_225_605_000
JOB = LocalJob(id="local-1", folder=Path("/srv/site"), task="x")
OWNER = "build-1#engine#nonce"


def _row(state: JobState, **update: object) -> Row:
    return row_of(JOB, state, **update)


def _deferred(why: Why | str, **update: object) -> Row:
    return _row(JobState.DEFERRED, **{"due_ms": DUE_MS, "why": str(why), **update})


def _active(**update: object) -> Row:
    return _row(JobState.ACTIVE, **{"owner": OWNER, **update})


Look = tuple[Row, RunRecord | None, tuple[int, int] | None]


def _said(*looks: Row | Look) -> list[str]:
    stream = io.StringIO()
    narrator = Narrator(Live(Console(file=stream, width=200), None))
    for look in looks:
        narrator.see(*(look if isinstance(look, tuple) else (look, None, None)))
    return stream.getvalue().splitlines()


def test_a_job_that_waits_is_told_once() -> None:
    assert _said(_row(JobState.QUEUED), _row(JobState.QUEUED)) == ["waiting in pi-jobs"]


@pytest.mark.parametrize(
    ("why", "words"),
    [
        (Why.HOST_BUSY, "all job slots of the machine are taken"),
        (Why.SCOPE_BUSY, "another job works in the same folder"),
        (Why.FORGE_LIMITED, "its forge answers no more questions for now"),
        (Why.STOPPED, "its worker stopped before anything was spent"),
        ("later\x1b", "later\\u{001B}"),
    ],
)
def test_a_job_that_is_put_off_again_and_again_says_why_once(why: str, words: str) -> None:
    looks = [
        _deferred(why, gen=2),
        _active(gen=3),
        _deferred(why, gen=4, due_ms=DUE_MS + 5000),
        _row(JobState.QUEUED, gen=4),
        _deferred(why, gen=6, due_ms=DUE_MS + 10_000),
    ]
    assert _said(*looks)[0] == f"deferred until 00:00:05Z: {words}"
    assert len([line for line in _said(*looks) if line.startswith("deferred")]) == 1


def test_an_attempt_that_stays_is_told_with_its_worker() -> None:
    assert _said(_active(gen=2), _active(gen=2), _active(gen=2)) == ["attempt 1 of 2 runs on build-1"]


def test_a_moment_at_the_gates_is_no_attempt() -> None:
    assert _said(_active(gen=2), _deferred(Why.HOST_BUSY, gen=3), _active(gen=4)) == [
        "deferred until 00:00:05Z: all job slots of the machine are taken"
    ]


def test_every_turn_is_told_once() -> None:
    spending = _active(gen=2, spend_ms=1)
    looks = [
        (spending, None, None),
        *((spending, None, (turn, turn * 1000)) for turn in (1, 1, 2)),
    ]
    assert _said(*looks) == [
        "attempt 1 of 2 runs on build-1",
        "turn 1: 1,000 tokens so far",
        "turn 2: 2,000 tokens so far",
    ]


def test_numbers_of_an_attempt_before_are_not_told_of_one_that_has_spent_nothing() -> None:
    again = _active(gen=4, attempt=2)
    assert _said((again, None, (3, 100)), (again, None, (3, 100))) == ["attempt 2 of 2 runs on build-1"]


def test_a_retry_says_what_failed_and_when_the_next_comes() -> None:
    failed = Result.begin(datetime(2026, 1, 1, tzinfo=UTC), "p", "m")
    record = RunRecord.of(JOB, failed.ending(InfraFailed(reason=Reason.INFRA, cause="oom-killed")), "h")
    retry = _deferred(Why.RETRY, gen=3, attempt=2)
    assert _said(
        (retry, record, None), (retry, record, None), _active(gen=4, attempt=2), _active(gen=4, attempt=2)
    ) == [
        "attempt 1 of 2 failed (infra/oom-killed); the next comes at 00:00:05Z",
        "attempt 2 of 2 runs on build-1",
    ]
    assert _said(retry) == ["attempt 1 of 2 failed; the next comes at 00:00:05Z"]


def test_a_worker_that_is_lost_is_told() -> None:
    assert _said(_active(gen=2), _active(gen=2), _row(JobState.QUEUED, gen=3))[1:] == [
        "its worker was lost before anything was spent; it waits again",
        "waiting in pi-jobs",
    ]


def test_what_the_time_passes_with_is_not_told_where_lines_stay() -> None:
    stream = io.StringIO()
    Live(Console(file=stream), None).goes_on("checking")
    assert stream.getvalue() == ""


def test_an_instant_that_is_not_known() -> None:
    assert instant(None) == "its time"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_wait_and_not_the_program(number: signal.Signals) -> None:
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    with signalled() as pause:
        assert pause(0) is False
        os.kill(os.getpid(), number)
        assert pause(60) is True
        # Whoever waits next is sent away as well.
        assert pause(60) is True
    assert {each: signal.getsignal(each) for each in before} == before


def test_the_handlers_are_put_back_after_an_error() -> None:
    before = signal.getsignal(signal.SIGTERM)

    def fail() -> None:
        with signalled():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signalled() as pause:
            os.kill(os.getpid(), signal.SIGHUP)
            assert pause(0) is False
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)

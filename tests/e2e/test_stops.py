"""What ends a run from outside: its worker is told to stop, the deadline, the memory; and who can go without ending it.

The container is gone within seconds, and what was spent is told.
"""

import os
import re
import signal
import threading
import time
from pathlib import Path

import docker
import pytest

from pidispatch.box.abort import Abort
from pidispatch.values.job import LocalJob
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Aborted, Completed, InfraFailed
from pidispatch.values.progress import Progress, Stopping
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.record import Result
from tests.fakes.model.usage import total_usage
from tests.support.engine import left_of
from tests.support.program import PROGRAM, REAL, RUN_S, How, Ran, Stage, await_id, await_line, job
from tests.support.repository import Repository
from tests.support.server import until
from tests.support.terminal import at_terminal, read_all

#: Seconds in which a worker that is told to stop has ended its jobs and itself.
STOP_S = 15


def is_left(engine: docker.DockerClient, job_id: str) -> bool:
    return bool(left_of(engine, f"pi-job-{job_id}"))


@pytest.mark.parametrize(
    ("number", "script", "how"),
    [
        (signal.SIGINT, "sleepy", How(REAL)),
        (signal.SIGTERM, "stubborn", How()),
        (signal.SIGHUP, "sleepy", How()),
    ],
    ids=["SIGINT", "SIGTERM", "SIGHUP"],
)
def test_a_worker_that_is_told_to_stop_ends_its_run(
    stage: Stage, repository: Repository, engine: docker.DockerClient, number: signal.Signals, script: str, how: How
) -> None:
    with stage.worker(how) as worker, stage.waiting(repository.path, script) as process:
        await_line(process, "turn 1:")
        sent = time.monotonic()
        code = worker.stop(number)
        took = time.monotonic() - sent
        out, err = process.communicate(timeout=RUN_S)
        ran = Ran(process.returncode, out, err)

    assert (code, ran.code) == (0, 2), ran
    assert (ran.document["reason"], ran.document["cause"]) == ("worker-abort", "shutdown"), ran
    assert took < STOP_S, took
    assert ran.document["tokens"]["total"] == total_usage(1).total
    assert stage.requests() == 1
    assert not is_left(engine, ran.document["jobId"])


def test_whoever_waits_may_go_and_the_job_goes_on(
    stage: Stage, repository: Repository, engine: docker.DockerClient
) -> None:
    with stage.worker() as worker, stage.waiting(repository.path, "sleepy") as process:
        job_id = await_id(process)
        await_line(process, "turn 1:")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)

        assert (process.returncode, out) == (1, ""), err
        assert f"no longer waiting. The job goes on; cancel it with: pi-dispatch cancel {job_id}" in err
        assert is_left(engine, job_id)
        assert worker.events("job_completed") == []

        cancelled = stage.run("cancel", job_id)
        until(lambda: worker.events("job_completed"), "the end of the job", RUN_S)
    assert cancelled.code == 0, cancelled
    assert not is_left(engine, job_id)
    shown = stage.run("show", job_id)
    assert "operator-cancel" in shown.out, shown
    assert stage.requests() == 1


def test_the_deadline_ends_the_run(stage: Stage, repository: Repository, engine: docker.DockerClient) -> None:
    told: list[Progress] = []
    mine = LocalJob(id="local-deadline", folder=repository.path, task="Go.", model="sleepy")

    result = stage.attempt(engine, Limits(job_timeout_s=8))(mine, told.append, Abort())

    assert isinstance(result, Result)
    assert result.outcome == Aborted(reason=Reason.WORKER_ABORT, cause=AbortReason.JOB_TIMEOUT)
    assert any(isinstance(progress, Stopping) for progress in told)
    assert result.telemetry.turns == 1
    assert not is_left(engine, mine.id)
    assert os.listdir(stage.home / "jobs") == [".gate"]


def test_an_abort_before_the_container_spends_nothing(
    stage: Stage, repository: Repository, engine: docker.DockerClient
) -> None:
    abort = Abort()
    abort.set(AbortReason.OPERATOR_CANCEL)
    mine = LocalJob(id="local-early", folder=repository.path, task="Go.", model="edit")

    result = stage.attempt(engine, Limits())(mine, lambda _: None, abort)

    assert isinstance(result, Result)
    assert result.outcome == Aborted(reason=Reason.OPERATOR_CANCEL, cause=AbortReason.OPERATOR_CANCEL)
    assert (result.exit_code, result.change, result.image_digest) == (None, None, None)
    assert stage.requests() == 0


def test_memory_that_runs_out_ends_the_tool_or_the_run_and_is_told(
    stage: Stage, repository: Repository, engine: docker.DockerClient
) -> None:
    """The kernel takes whatever is largest; whichever it takes, the run ends by itself and the spend is known."""
    mine = LocalJob(id="local-hungry", folder=repository.path, task="Go.", model="oom")
    result = stage.attempt(engine, Limits(memory_mib=512))(mine, lambda _: None, Abort())

    assert isinstance(result, Result)
    assert isinstance(result.outcome, Completed | InfraFailed), result
    assert result.telemetry.tokens is not None
    assert result.telemetry.tokens["total"] == total_usage(stage.requests()).total
    assert not is_left(engine, mine.id)


def at_width(stage: Stage) -> dict[str, str]:
    return stage.environment(TERM="xterm-256color", COLUMNS="100", LINES="30")


def test_a_person_at_a_terminal_sees_the_run(stage: Stage, repository: Repository, tmp_path: Path) -> None:
    command = [PROGRAM, "run", str(repository.path), *job("edit"), "--wait"]
    with stage.worker():
        process, controller = at_terminal(command, at_width(stage), tmp_path)
        shown = read_all(controller)

    assert process.wait(60) == 0
    for words in ("attempt 1 of 2 runs on", "completed", "hello.txt", "+hello pi"):
        assert words in shown, shown


def test_a_person_at_a_terminal_sees_the_worker(stage: Stage, repository: Repository, tmp_path: Path) -> None:
    """Events as lines for a person, and what the job prints behind its id; Ctrl-C ends it."""
    process, controller = at_terminal(list(REAL), at_width(stage), tmp_path)
    shown: list[str] = []
    reader = threading.Thread(target=lambda: shown.append(read_all(controller)))
    reader.start()
    try:
        with stage.waiting(repository.path, "edit") as waiting:
            job_id = await_id(waiting)
            out, err = waiting.communicate(timeout=RUN_S)
        process.send_signal(signal.SIGINT)
        code = process.wait(STOP_S)
    finally:
        process.kill()
        process.wait()
        reader.join(10)

    assert (waiting.returncode, code) == (0, 0), (out, err, shown)
    [text] = shown
    for words in ("worker_started", "job_completed", "worker_stopped", f'\n[{job_id}] {{"event":"turn"'):
        assert words in text, text
    assert f"jobId={job_id}" in "".join(re.split("\x1b\\[[0-9;]*m", text))
    assert '"event": "job_completed"' not in text

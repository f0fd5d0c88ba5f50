"""What ends a run from outside: a signal, the deadline; the container is gone within seconds and the spend is told."""

import os
import signal
import time
from pathlib import Path

import docker
import pytest

from pidispatch.box.abort import Abort
from pidispatch.values.job import Job
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Aborted, Completed, InfraFailed
from pidispatch.values.progress import Progress, Stopping
from pidispatch.values.reason import AbortReason, Reason
from tests.fakes.model.usage import total_usage
from tests.support.engine import left_of
from tests.support.program import PROGRAM, Ran, Stage, await_line
from tests.support.repository import Repository
from tests.support.terminal import at_terminal, read_all


def is_left(engine: docker.DockerClient, job_id: str) -> bool:
    return bool(left_of(engine, f"pi-job-{job_id}"))


@pytest.mark.parametrize(
    ("number", "reason", "cause"),
    [
        (signal.SIGINT, "operator-cancel", "operator-cancel"),
        (signal.SIGTERM, "worker-abort", "shutdown"),
        (signal.SIGHUP, "worker-abort", "shutdown"),
    ],
)
@pytest.mark.parametrize("script", ["sleepy", "stubborn"])
def test_a_signal_ends_the_run_within_ten_seconds(
    stage: Stage,
    repository: Repository,
    engine: docker.DockerClient,
    number: signal.Signals,
    reason: str,
    cause: str,
    script: str,
) -> None:
    process = stage.start_job(repository.path, script)
    try:
        await_line(process, "turn 1:")
        sent = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        took = time.monotonic() - sent
    finally:
        process.kill()

    ran = Ran(process.returncode, out, err)
    assert (ran.code, ran.document["reason"], ran.document["cause"]) == (2, reason, cause), ran
    assert took < 10, took
    assert ran.document["tokens"]["total"] == total_usage(1).total
    assert stage.requests() == 1
    assert not is_left(engine, ran.document["jobId"])


def test_the_deadline_ends_the_run(stage: Stage, repository: Repository, engine: docker.DockerClient) -> None:
    told: list[Progress] = []
    job = Job(id="local-deadline", folder=repository.path, task="Go.", model="sleepy")

    result = stage.attempt(engine, Limits(job_timeout_s=8))(job, told.append, Abort())

    assert result.outcome == Aborted(reason=Reason.WORKER_ABORT, cause=AbortReason.JOB_TIMEOUT)
    assert any(isinstance(progress, Stopping) for progress in told)
    assert result.telemetry.turns == 1
    assert not is_left(engine, job.id)
    assert os.listdir(stage.home / "jobs") == [".gate"]


def test_an_abort_before_the_container_spends_nothing(
    stage: Stage, repository: Repository, engine: docker.DockerClient
) -> None:
    abort = Abort()
    abort.set(AbortReason.OPERATOR_CANCEL)
    job = Job(id="local-early", folder=repository.path, task="Go.", model="edit")

    result = stage.attempt(engine, Limits())(job, lambda _: None, abort)

    assert result.outcome == Aborted(reason=Reason.OPERATOR_CANCEL, cause=AbortReason.OPERATOR_CANCEL)
    assert (result.exit_code, result.change, result.image_digest) == (None, None, None)
    assert stage.requests() == 0


@pytest.mark.parametrize("number", [None, signal.SIGTERM])
def test_a_reader_that_goes_away_takes_nothing_with_it(
    stage: Stage, repository: Repository, engine: docker.DockerClient, number: signal.Signals | None
) -> None:
    """Progress is advice: a run that is paid for keeps its result and its exit code."""
    process = stage.start_job(repository.path, "edit" if number is None else "sleepy")
    await_line(process, "started" if number is None else "turn 1:")
    assert process.stderr is not None
    process.stderr.close()
    if number is not None:
        process.send_signal(number)
    assert process.stdout is not None
    ran = Ran(0, process.stdout.read(), "")

    assert process.wait(30) == (0 if number is None else 2)
    assert ran.document["outcome"] == ("completed" if number is None else "policy")
    assert ran.document["tokens"]["total"] == total_usage(3 if number is None else 1).total
    assert not is_left(engine, ran.document["jobId"])
    process.stdout.close()


def test_memory_that_runs_out_ends_the_tool_or_the_run_and_is_told(
    stage: Stage, repository: Repository, engine: docker.DockerClient
) -> None:
    """The kernel takes whatever is largest; whichever it takes, the run ends by itself and the spend is known."""
    job = Job(id="local-hungry", folder=repository.path, task="Go.", model="oom")
    result = stage.attempt(engine, Limits(memory_mib=512))(job, lambda _: None, Abort())

    assert isinstance(result.outcome, Completed | InfraFailed), result
    assert result.telemetry.tokens is not None
    assert result.telemetry.tokens["total"] == total_usage(stage.requests()).total
    assert not is_left(engine, job.id)


def test_a_person_at_a_terminal_sees_the_run(stage: Stage, repository: Repository, tmp_path: Path) -> None:
    env = stage.environment(TERM="xterm-256color", COLUMNS="100", LINES="30")
    command = [PROGRAM, "run", str(repository.path), "--task", "Go.", "--model", "edit"]
    process, controller = at_terminal(command, env, tmp_path)
    shown = read_all(controller)

    assert process.wait(60) == 0
    for words in ("turn 3", "completed", "hello.txt", "+hello pi", "started"):
        assert words in shown, shown

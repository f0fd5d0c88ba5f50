"""The whole attempt, from its first check to its record, beside the raw sequence of engine calls, interleaved."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import structlog

from benchmarks.call import PAIRS, raw_call, stage
from benchmarks.measure import Figure, figure
from pidispatch.box.abort import Abort
from pidispatch.box.engine import Engine
from pidispatch.config.clock import SystemClock
from pidispatch.config.settings import Settings
from pidispatch.runs.attempt import Attempt
from pidispatch.runs.records import RecordStore
from pidispatch.values.job import Job, LocalJob
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Completed
from pidispatch.values.record import Result, RunRecord
from pidispatch.workspace import git as host_git
from pidispatch.workspace import process
from tests.support.repository import make_repository
from tests.support.spec import plain_spec

BOUND_MS = 20
BOUND_RATIO = 1.10


def attempt_overhead(client: docker.DockerClient) -> Iterator[Figure]:
    """p50 of the attempt without its git programs less the raw calls' p50, and the git programs apart."""
    own, git, raw = [], [], []
    # As in a program whose log nobody writes down for a person.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with stage(client) as (folder, image, neighbour), git_time() as git_s:
        settings = _settings(folder, image, neighbour.alias)
        records, engine = RecordStore(settings.logs_dir), Engine(client)

        def finish(job: Job, result: Result) -> None:
            records.write(RunRecord.of(job, result, "bench"))

        environ = {"ANTHROPIC_API_KEY": "k"}
        run = Attempt(settings, lambda: engine, finish, Limits(), SystemClock(), environ, records=records)
        repository = make_repository(folder / "site")
        for number in range(PAIRS):
            git_s.clear()
            took = _attempt(run, LocalJob(id=f"bench-{number}", folder=repository.path, task="x"))
            own.append(took - sum(git_s))
            git.append(sum(git_s))
            raw.append(raw_call(client, plain_spec(image, folder, network=True), neighbour))
    what = "an attempt with its record, without its git programs, beside the engine calls made by hand"
    yield figure("attempt without git", what, own, raw, BOUND_MS, BOUND_RATIO)
    yield figure("git of an attempt", "host git in a repository of one file", git, None, None)


def _settings(folder: Path, image: str, proxy: str) -> Settings:
    paths = {"PI_JOBS_DIR": "jobs", "PI_STATE_DIR": "state", "PI_LOGS_DIR": "logs"}
    variables = {name: str(folder / path) for name, path in paths.items()}
    return Settings.model_validate({**variables, "PI_JOB_IMAGE": image, "PI_EGRESS_PROXY": proxy})


def _attempt(run: Attempt, job: LocalJob) -> float:
    began = time.perf_counter()
    result = run(job, lambda _: None, Abort())
    took = time.perf_counter() - began
    if not isinstance(result, Result) or not isinstance(result.outcome, Completed):
        raise RuntimeError(f"the benchmark's own attempt did not complete: {result}")
    return took


@contextmanager
def git_time() -> Iterator[list[float]]:
    """Seconds of every git program that host git runs meanwhile."""
    seconds: list[float] = []
    run_program = process.run_program

    def timed(*arguments: Any, **named: Any) -> Any:
        began = time.perf_counter()
        try:
            return run_program(*arguments, **named)
        finally:
            seconds.append(time.perf_counter() - began)

    host_git.run_program = timed  # type: ignore[attr-defined]
    try:
        yield seconds
    finally:
        host_git.run_program = run_program  # type: ignore[attr-defined]

"""Runs whose reader is not there to see them: the run ends as it would have, and its record stands."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.fakes.model.usage import total_usage
from tests.support.engine import left_of
from tests.support.program import PROGRAM, RUN_S, Stage
from tests.support.repository import Repository
from tests.support.terminal import at_terminal


def run(repository: Repository, model: str, *more: str) -> list[str]:
    return [PROGRAM, "run", str(repository.path), "--task", "Go.", "--model", model, *more]


def records(logs: Path) -> list[dict[str, Any]]:
    """All records of `logs`."""
    return [json.loads(path.read_text()) for path in logs.glob("*.json")]


@pytest.mark.parametrize(
    ("redirection", "more"), [(">&- 2>&-", ()), (">/dev/full 2>/dev/full", ()), (">/dev/full", ("--json",))]
)
def test_a_run_that_cannot_be_shown_is_kept(
    stage: Stage,
    repository: Repository,
    engine: docker.DockerClient,
    tmp_path: Path,
    redirection: str,
    more: tuple[str, ...],
) -> None:
    logs = tmp_path / "logs"
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", *run(repository, "edit", *more)],
        env=stage.environment(PI_LOGS_DIR=str(logs)),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=RUN_S,
    )

    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    [record] = records(logs)
    assert (record["outcome"], record["tokens"]["total"]) == ("completed", total_usage(3).total)
    assert not left_of(engine, f"pi-job-{record['jobId']}")


def test_a_terminal_that_is_closed_ends_no_run(
    stage: Stage, repository: Repository, engine: docker.DockerClient, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    env = stage.environment(TERM="xterm-256color", COLUMNS="100", LINES="30", PI_LOGS_DIR=str(logs))
    process, controller = at_terminal(run(repository, "edit"), env, tmp_path)
    try:
        seen = b""
        while b"started" not in seen:
            seen += os.read(controller, 65536)
        os.close(controller)
        code = process.wait(60)
    finally:
        process.kill()

    assert code == 0
    [record] = records(logs)
    assert (record["outcome"], record["tokens"]["total"]) == ("completed", total_usage(3).total)
    assert stage.requests() == 3
    assert not left_of(engine, f"pi-job-{record['jobId']}")

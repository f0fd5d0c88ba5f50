"""A worker whose reader is not there to see it: its jobs end as they would have, and so does it."""

import json
import os
import signal
import subprocess

import docker
import pytest

from tests.fakes.model.usage import total_usage
from tests.support.engine import left_of
from tests.support.program import REAL, RUN_S, Stage
from tests.support.repository import Repository
from tests.support.terminal import at_terminal


def stopped(
    process: "subprocess.Popen[bytes]", stage: Stage, repository: Repository, engine: docker.DockerClient
) -> int:
    """Exit code of the worker, once it has done a job and was told to stop."""
    try:
        with stage.waiting(repository.path, "edit") as waiting:
            out, err = waiting.communicate(timeout=RUN_S)
        process.send_signal(signal.SIGTERM)
        code = process.wait(RUN_S)
    finally:
        process.kill()
        process.wait()
    assert waiting.returncode == 0, (out, err)
    document = json.loads(out)
    assert (document["outcome"], document["tokens"]["total"]) == ("completed", total_usage(3).total)
    assert left_of(engine, f"pi-job-{document['jobId']}") == []
    return code


@pytest.mark.parametrize("redirection", [">&- 2>&-", ">/dev/full 2>/dev/full"])
def test_a_worker_that_cannot_be_shown_does_its_work(
    stage: Stage, repository: Repository, engine: docker.DockerClient, redirection: str
) -> None:
    command = ["sh", "-c", f'exec "$@" {redirection}', "sh", *REAL]
    process = subprocess.Popen(command, env=stage.environment(), cwd=stage.home, stdin=subprocess.DEVNULL)
    assert stopped(process, stage, repository, engine) == 0


def test_a_terminal_that_is_closed_ends_no_worker(
    stage: Stage, repository: Repository, engine: docker.DockerClient
) -> None:
    """One that stays, as behind `nohup`; without that a terminal says SIGHUP when it goes, and the worker stops."""
    process, controller = at_terminal(list(REAL), stage.environment(TERM="xterm"), stage.home)
    seen = b""
    while b"worker_started" not in seen:
        seen += os.read(controller, 65536)
    os.close(controller)
    assert stopped(process, stage, repository, engine) == 0

"""Programs whose reader is not there to see them: what was handed in runs to its end, and its record stands."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.fakes.model.usage import total_usage
from tests.support.engine import left_of
from tests.support.program import PROGRAM, RUN_S, Stage, await_id, job
from tests.support.repository import Repository
from tests.support.server import until
from tests.support.terminal import at_terminal


@pytest.fixture
def served(staffed: Stage) -> Stage:
    """The stage of this file with its worker; its requests count from here on."""
    staffed.forget()
    return staffed


class Records:
    """The records of a stage that were not there before."""

    def __init__(self, stage: Stage) -> None:
        self._logs = stage.home / ".pi-dispatch" / "logs"
        self._before = set(self._logs.glob("*.json"))

    def only(self) -> dict[str, Any]:
        """The one that is there now; it is waited for."""
        [path] = until(lambda: set(self._logs.glob("*.json")) - self._before, "the record", RUN_S)
        record: dict[str, Any] = json.loads(path.read_text())
        return record


def assert_kept(record: dict[str, Any], engine: docker.DockerClient) -> None:
    assert (record["outcome"], record["tokens"]["total"]) == ("completed", total_usage(3).total)
    assert not left_of(engine, f"pi-job-{record['jobId']}")


@pytest.mark.parametrize(
    ("redirection", "more"),
    [
        (">&- 2>&-", ()),
        (">&- 2>&-", ("--wait",)),
        (">/dev/full 2>/dev/full", ("--wait",)),
        (">/dev/full", ("--wait", "--json")),
    ],
)
def test_a_run_that_cannot_be_shown_is_kept(
    served: Stage,
    repository: Repository,
    engine: docker.DockerClient,
    redirection: str,
    more: tuple[str, ...],
) -> None:
    records = Records(served)
    run = [PROGRAM, "run", str(repository.path), *job("edit"), *more]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", *run],
        env=served.environment(),
        cwd=served.home,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=RUN_S,
    )

    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert_kept(records.only(), engine)


def test_a_reader_that_goes_away_takes_nothing_with_it(
    served: Stage, repository: Repository, engine: docker.DockerClient
) -> None:
    """Progress is advice: whoever waits keeps the result and the exit code."""
    records = Records(served)
    with served.waiting(repository.path, "edit") as process:
        job_id = await_id(process)
        assert process.stderr is not None
        process.stderr.close()
        assert process.stdout is not None
        document = json.loads(process.stdout.read())
        assert process.wait(30) == 0

    assert (document["jobId"], document["outcome"]) == (job_id, "completed")
    assert_kept(records.only(), engine)


def test_a_terminal_that_is_closed_ends_no_run(
    served: Stage, repository: Repository, engine: docker.DockerClient, tmp_path: Path
) -> None:
    records = Records(served)
    env = served.environment(TERM="xterm-256color", COLUMNS="100", LINES="30")
    process, controller = at_terminal([PROGRAM, "run", str(repository.path), *job("edit"), "--wait"], env, tmp_path)
    try:
        seen = b""
        while b"runs on" not in seen:
            seen += os.read(controller, 65536)
        os.close(controller)
        code = process.wait(60)
    finally:
        process.kill()

    assert code == 0
    assert_kept(records.only(), engine)
    assert served.requests() == 3

"""SIGTERM at any moment: one line, code 143, what was spent, and soon."""

import os
import signal
import time

import pytest

from pidispatch.values.limits import Limits
from tests.fakes.agent.job import Job, ended, read_until

#: What the engine leaves a container between the polite and the final signal.
STOP_GRACE_S = Limits().stop_grace_s


@pytest.mark.parametrize("scenario", ["works_until_aborted", "ignores_everything"])
def test_running_agent(job: Job, scenario: str) -> None:
    process = job.start(scenario)
    before = read_until(process, "turn")
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    run = ended(process, before)
    assert time.monotonic() - started < STOP_GRACE_S
    assert (run.code, run.exit_line["code"], run.exit_line["reason"]) == (143, 143, "terminated")
    tokens = run.exit_line["tokens"]
    assert isinstance(tokens, dict)
    turns = run.exit_line["turns"]
    assert isinstance(turns, int)
    assert turns >= 1
    assert tokens["total"] == 100 * turns


def test_watchdog_prints_the_line_when_the_runner_itself_hangs(job: Job) -> None:
    prompt = job.root / "job/prompt.md"
    prompt.unlink()
    os.mkfifo(prompt)
    job.layout["terminate_seconds"] = 0.2
    process = job.start("completes")
    # Opening the pipe's other end returns once the runner waits for its prompt, which never comes.
    with prompt.open("wb"):
        process.send_signal(signal.SIGTERM)
        run = ended(process)
    assert (run.code, run.exit_line["reason"], run.exit_line["turns"]) == (143, "terminated", 0)


def test_during_the_grace_of_an_agent_that_settled(job: Job) -> None:
    job.layout |= {"settle_seconds": 60.0, "kill_seconds": 0.2}
    process = job.start("settles_and_stays")
    before = read_until(process, "turn")
    process.send_signal(signal.SIGTERM)
    run = ended(process, before)
    assert (run.code, run.exit_line["reason"]) == (143, "terminated")


def test_repeated_signals_make_one_line(job: Job) -> None:
    process = job.start("ignores_everything")
    before = read_until(process, "turn")
    for _ in range(3):
        process.send_signal(signal.SIGTERM)
    run = ended(process, before)
    assert (run.code, run.exit_line["reason"]) == (143, "terminated")

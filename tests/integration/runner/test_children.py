"""Nothing the agent started outlives the exit line."""

from pathlib import Path

from tests.fakes.agent.job import Job


def _alive(pid: str) -> bool:
    try:
        state = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_children_in_sessions_of_their_own_are_killed(job: Job) -> None:
    run = job.run("leaves_children")
    assert run.exit_line["reason"] == "stop"
    pids = job.note.read_text().split()
    assert len(pids) == 2
    assert not any(_alive(pid) for pid in pids)


def test_child_that_holds_a_dead_agents_output_is_killed(job: Job) -> None:
    job.run("dies_but_its_output_stays_open")
    assert not _alive(job.note.read_text())


def test_agent_that_ignores_every_signal_is_killed(job: Job) -> None:
    job.layout |= {"settle_seconds": 0.2, "kill_seconds": 0.2}
    run = job.run("settles_and_stays")
    assert run.code == 0

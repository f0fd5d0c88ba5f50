"""Budgets from outside: an agent whose in-process stop does not work is stopped all the same."""

from tests.fakes.agent.job import Job


def test_turn_budget_stops_an_agent_that_does_not_stop_itself(job: Job) -> None:
    job.environ["PI_MAX_TURNS"] = "3"
    run = job.run("works_until_aborted")
    line = run.exit_line
    assert (run.code, line["reason"]) == (2, "turn_budget")
    assert job.note.read_text() == "abort"
    assert [(said["turns"], said["maxTurns"]) for said in run.events("turn_budget_exceeded")] == [(3, 3)]


def test_token_budget_stops_an_agent_that_does_not_stop_itself(job: Job) -> None:
    job.environ["PI_MAX_TOKENS"] = "250"
    run = job.run("works_until_aborted")
    line = run.exit_line
    assert (run.code, line["reason"]) == (2, "token_budget")
    assert [(said["tokens"], said["maxTokens"]) for said in run.events("token_budget_exceeded")] == [(300, 250)]


def test_agent_that_ignores_the_abort_is_ended(job: Job) -> None:
    job.environ["PI_MAX_TURNS"] = "2"
    job.layout |= {"abort_seconds": 0.3, "settle_seconds": 0.2, "kill_seconds": 0.2}
    run = job.run("exceeds_and_ignores_the_abort")
    assert (run.code, run.exit_line["reason"]) == (2, "turn_budget")
    assert len(run.events("turn_budget_exceeded")) == 1


def test_budget_met_by_the_last_answer_is_a_completed_run(job: Job) -> None:
    job.environ |= {"PI_MAX_TURNS": "2", "PI_MAX_TOKENS": "120"}
    run = job.run("completes")
    assert (run.code, run.exit_line["reason"], run.exit_line["turns"]) == (0, "stop", 2)

"""Settings of the worker that reach its jobs, and those that only stand in its environment."""

from tests.support.program import Stage
from tests.support.repository import Repository


def test_a_token_budget_stops_after_the_turn_that_passes_it(stage: Stage, repository: Repository) -> None:
    ran = stage.run_job(repository.path, "big", PI_MAX_TOKENS="100000")

    document = ran.document
    assert (ran.code, document["reason"], document["cause"]) == (2, "runner-policy", "token_budget"), ran
    assert stage.requests() == 2
    assert ran.document["tokens"]["total"] == 120_000


def test_the_agent_sees_the_closed_environment_alone(stage: Stage, repository: Repository) -> None:
    marked = {"MARKED_SECRET": "marked-secret", "VALKEY_PASSWORD": "marked-password-of-a-server"}
    ran = stage.run_job(repository.path, "env", **marked)

    assert ran.code == 0, ran
    seen = repository.read("env.txt")
    assert "ANTHROPIC_API_KEY=" in seen
    assert "PI_OFFLINE=1" in seen
    assert "marked" not in seen
    assert "OPENAI_API_KEY" not in seen
    assert str(stage.home) not in seen

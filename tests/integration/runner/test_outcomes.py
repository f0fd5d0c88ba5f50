"""How runs end: the runner's exit code and line for every way an agent can behave."""

from decimal import Decimal

import pytest

from tests.fakes.agent.job import Job


def _tokens(line: dict[str, object]) -> dict[str, object]:
    tokens = line["tokens"]
    assert isinstance(tokens, dict)
    return tokens


def test_completed_run(job: Job) -> None:
    (job.root / "pi-ai.json").write_text('{"version": "1.6.0"}')
    run = job.run("completes")
    assert run.code == 0
    line = run.exit_line
    assert list(line)[:4] == ["event", "jobId", "code", "reason"]
    assert (line["jobId"], line["code"], line["reason"], line["turns"]) == ("pi-job-x", 0, "stop", 2)
    assert _tokens(line)["total"] == 250
    assert Decimal(str(_tokens(line)["cost"])) == Decimal("0.002")
    assert line["context"] == {"tokens": 150, "window": 1000}
    usage = line["usage"]
    assert isinstance(usage, dict)
    assert usage["piAi"] == "1.6.0"
    assert [(row["provider"], row["model"], row["calls"], row["total"]) for row in usage["models"]] == [
        ("stub", "stub-1", 2, 250)
    ]
    assert [(turn["turns"], turn["tokens"]) for turn in run.events("turn")] == [(1, 100), (2, 250)]
    assert run.stderr == ""


@pytest.mark.example(
    "ch8 F4", "An agent that reports its end and never exits is ended by the runner, by its own result."
)
def test_agent_that_settles_and_stays_is_ended(job: Job) -> None:
    job.layout |= {"settle_seconds": 0.5, "kill_seconds": 0.2}
    run = job.run("settles_and_stays")
    assert (run.code, run.exit_line["reason"], run.exit_line["turns"]) == (0, "stop", 1)
    assert _tokens(run.exit_line)["total"] == 100


def test_agent_whose_last_event_is_agent_end(job: Job) -> None:
    job.layout["settle_seconds"] = 0.3
    run = job.run("ends_without_a_word")
    assert (run.code, run.exit_line["reason"]) == (0, "stop")


def test_agent_that_dies_at_start_is_infra(job: Job) -> None:
    run = job.run("dies_at_start", "cannot open display")
    line = run.exit_line
    assert (run.code, line["reason"]) == (1, "infra")
    assert line["message"] == "pi ended with code 1: cannot open display"
    assert "tokens" not in line


@pytest.mark.parametrize(
    "complaint",
    ['Error: Unknown provider "x".', "No models available. Use /login", "No API key found for anthropic"],
)
def test_agent_that_lacks_its_model_is_config(job: Job, complaint: str) -> None:
    run = job.run("dies_at_start", complaint)
    assert (run.code, run.exit_line["reason"]) == (2, "config")


def test_agent_that_dies_midway_is_infra_with_what_it_spent(job: Job) -> None:
    run = job.run("dies_midway")
    line = run.exit_line
    assert (run.code, line["reason"], line["turns"]) == (1, "infra", 1)
    assert line["message"] == "pi ended with code 7: heap out of memory"
    assert (_tokens(line)["total"], _tokens(line)["unresolved"]) == (100, 1)


def test_death_is_noticed_while_a_child_holds_the_output(job: Job) -> None:
    run = job.run("dies_but_its_output_stays_open")
    assert (run.code, run.exit_line["reason"]) == (1, "infra")


def test_garbage_is_ignored_and_huge_lines_are_read(job: Job) -> None:
    run = job.run("garbage")
    assert (run.code, run.exit_line["reason"], _tokens(run.exit_line)["total"]) == (0, "stop", 100)


def test_handled_prompt_is_not_waited_for(job: Job) -> None:
    run = job.run("handles_the_prompt")
    assert (run.code, run.exit_line["reason"]) == (1, "no-terminal-message")


def test_run_an_extension_started_is_waited_for(job: Job) -> None:
    run = job.run("handles_the_prompt_and_runs")
    assert (run.code, run.exit_line["reason"], run.exit_line["turns"]) == (0, "stop", 1)


def test_restart_of_a_failed_turn_is_said(job: Job) -> None:
    run = job.run("fails_once")
    assert (run.code, run.exit_line["reason"], run.exit_line["turns"]) == (0, "stop", 1)
    assert [(said["attempt"], said["maxAttempts"]) for said in run.events("pi_auto_retry")] == [(1, 2)]


@pytest.mark.parametrize(
    ("reason", "code", "expected"),
    [("No API key for stub/stub-1", 2, "config"), ("Agent is already processing", 1, "infra")],
)
def test_rejected_prompt(job: Job, reason: str, code: int, expected: str) -> None:
    run = job.run("rejects_the_prompt", reason)
    assert (run.code, run.exit_line["reason"]) == (code, expected)
    assert run.exit_line["message"] == f"pi did not take the prompt: {reason}"


def test_dialogs_are_cancelled(job: Job) -> None:
    run = job.run("asks_the_user")
    assert (run.code, run.exit_line["reason"]) == (0, "stop")


def test_agent_that_never_answers(job: Job) -> None:
    job.layout["reply_seconds"] = 0.3
    run = job.run("never_answers")
    assert (run.code, run.exit_line["reason"]) == (1, "infra")
    assert run.exit_line["message"] == ("pi did not answer get_state, get_available_models, get_commands within 0.3 s")


def test_agent_that_never_takes_the_prompt(job: Job) -> None:
    job.layout["reply_seconds"] = 1.0
    run = job.run("never_takes_the_prompt")
    assert (run.code, run.exit_line["reason"]) == (1, "infra")
    assert run.exit_line["message"] == "pi did not answer prompt within 1 s"


def test_refused_key_is_determinate_and_never_printed(job: Job) -> None:
    job.environ["STUB_API_KEY"] = "sk-very-secret-value"
    run = job.run("refused", "401 invalid key sk-very-secret-value")
    assert (run.code, run.exit_line["reason"]) == (2, "provider-auth-refused")
    assert run.exit_line["message"] == "401 invalid key [redacted]"


def test_program_that_cannot_be_started_is_infra(job: Job) -> None:
    job.layout["pi_command"] = ["/nonexistent/node", "cli.js"]
    run = job.run("completes")
    assert (run.code, run.exit_line["reason"]) == (1, "infra")
    assert "/nonexistent/node" in str(run.exit_line["message"])


def test_error_of_the_runner_itself_is_infra(job: Job) -> None:
    # A grace that is no number makes the first wait raise: the line still comes, and only once.
    job.layout["reply_seconds"] = "soon"
    run = job.run("completes")
    assert (run.code, run.exit_line["reason"]) == (1, "infra")
    assert str(run.exit_line["message"]).startswith("TypeError: ")

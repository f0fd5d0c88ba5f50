"""Everything that ends a job before its first token, and the order in which it is looked at."""

from pathlib import Path

import pytest

from tests.fakes.agent.job import Ended, Job


def _refused(run: Ended, reason: str) -> str:
    """The message of a start-up refusal, whose line carries nothing else."""
    line = run.exit_line
    assert (run.code, line["code"], line["reason"]) == (2, 2, reason)
    assert list(line) == ["event", "jobId", "code", "reason", "message"]
    return str(line["message"])


def test_environment_comes_first(job: Job) -> None:
    job.environ["PI_MAX_TURNS"] = "03"
    job.layout["workspace"] = str(job.root / "absent")
    message = _refused(job.run("shows_its_start"), "config")
    assert message.startswith("PI_MAX_TURNS must be an integer")
    assert not job.note.exists()


def test_unserved_variable(job: Job) -> None:
    job.environ["PI_COMMAND"] = "review"
    assert _refused(job.run("completes"), "config") == "PI_COMMAND is not served by this image"


def test_missing_prompt(job: Job) -> None:
    (job.root / "job/prompt.md").unlink()
    assert "prompt.md is missing" in _refused(job.run("completes"), "config")


def test_empty_prompt(job: Job) -> None:
    (job.root / "job/prompt.md").write_text(" \n")
    assert "prompt.md is empty" in _refused(job.run("completes"), "config")


def test_input_that_cannot_be_listed(job: Job) -> None:
    file = job.root / "file"
    file.touch()
    job.layout["overlay"] = str(file)
    assert str(file) in _refused(job.run("completes"), "job-inputs-unreadable")


def test_skills_of_the_rule_that_cannot_be_listed(job: Job) -> None:
    skills = job.root / "job/trigger-skills"
    skills.touch()
    assert str(skills) in _refused(job.run("completes"), "job-inputs-unreadable")


def test_prompt_that_cannot_be_read(job: Job) -> None:
    prompt = job.root / "job/prompt.md"
    prompt.unlink()
    prompt.mkdir()
    assert str(prompt) in _refused(job.run("completes"), "job-inputs-unreadable")


def test_overlay_models_that_cannot_be_read(job: Job) -> None:
    models = job.root / "overlay/models.json"
    models.mkdir(parents=True)
    assert str(models) in _refused(job.run("completes"), "job-inputs-unreadable")


@pytest.mark.parametrize("rules", [None, " \n"])
def test_guardrails_are_required(job: Job, rules: str | None) -> None:
    path = job.root / "other-rules.md"
    if rules is not None:
        path.write_text(rules)
    job.layout["rules"] = str(path)
    assert "guardrails" in _refused(job.run("completes"), "config")


def test_home_that_cannot_be_written(job: Job) -> None:
    job.environ["HOME"] = "/proc"
    run = job.run("completes")
    assert "keeps its settings there" in _refused(run, "config")
    assert [line["event"] for line in run.lines] == ["home_not_writable", "agent_dir_not_writable", "exit"]


def test_workspace_that_cannot_be_written(job: Job) -> None:
    # In /proc not even root can create a file.
    job.layout["workspace"] = "/proc"
    run = job.run("shows_its_start")
    assert "/proc cannot be written" in _refused(run, "workspace-not-writable")
    (advice,) = run.events("workspace_not_writable")
    assert list(advice) == ["event", "jobId", "path", "uid", "code"]
    assert advice["path"] == "/proc"
    assert not job.note.exists()


def test_agent_folder_that_cannot_be_written(job: Job) -> None:
    (job.root / "home/.pi").write_text("a file in the way")
    run = job.run("completes")
    assert "keeps its settings there" in _refused(run, "config")
    assert len(run.events("agent_dir_not_writable")) == 1


def test_unwritable_outbox_and_home_under_a_mount_are_said(job: Job) -> None:
    job.layout["outbox"] = "/proc"
    job.environ["HOME"] = str(job.root / "workspace")
    run = job.run("completes")
    assert run.code == 0
    assert [line["event"] for line in run.lines[:2]] == ["outbox_not_writable", "home_under_mount"]


@pytest.mark.parametrize(("variable", "value"), [("PI_MODEL", "stub"), ("PI_MODEL", "stub-10"), ("PI_PROVIDER", "stu")])
def test_model_must_be_the_exact_one(job: Job, variable: str, value: str) -> None:
    job.environ[variable] = value
    message = _refused(job.run("completes"), "config")
    assert f"{job.environ['PI_PROVIDER']}/{job.environ['PI_MODEL']}" in message


def test_called_flow_must_be_loaded(job: Job) -> None:
    job.environ["PI_FLOW"] = "fi"
    (job.root / "job/prompt.md").write_text("/skill:fi the request")
    assert "the skill fi is not loaded" in _refused(job.run("has_a_skill"), "flow-not-loaded")
    assert not job.note.exists()


def test_called_flow_that_is_loaded_gets_the_prompt(job: Job) -> None:
    job.environ["PI_FLOW"] = "fix"
    (job.root / "job/prompt.md").write_text("/skill:fix the request")
    run = job.run("has_a_skill")
    assert (run.code, job.note.read_text()) == (0, "/skill:fix the request")
    assert run.events("flow_not_loaded") == []


def test_flow_the_prompt_does_not_call_is_advice(job: Job) -> None:
    job.environ["PI_FLOW"] = "other"
    run = job.run("has_a_skill")
    assert run.code == 0
    assert run.events("flow_not_loaded") == [
        {"event": "flow_not_loaded", "jobId": "pi-job-x", "flow": "other", "skills": 1}
    ]


def test_agent_is_started_as_the_image_promises(job: Job) -> None:
    (job.root / "job/pi/skills").mkdir(parents=True)
    persona = job.root / "job/pi/APPEND_SYSTEM.md"
    persona.write_text("be brief")
    (job.root / "overlay").mkdir()
    (job.root / "overlay/models.json").write_text('{"providers":{}}')
    job.environ["PI_MAX_TOKENS"] = "5000"
    assert job.run("shows_its_start").code == 0
    shown = job.note.read_text().split("\n")
    appended = [shown[index + 1] for index, word in enumerate(shown) if word == "--append-system-prompt"]
    assert appended == [str(job.root / "rules.md"), str(persona)]
    agent_dir = job.root / "home/.pi/agent"
    assert {
        f"cwd={job.root / 'workspace'}",
        "PI_OFFLINE=1",
        "PI_TELEMETRY=0",
        "RUN_MAX_TURNS=9",
        "RUN_MAX_TOKENS=5000",
        f"PI_CODING_AGENT_DIR={agent_dir}",
    } <= set(shown)
    assert (agent_dir / "models.json").read_text() == '{"providers":{}}'
    assert Path(agent_dir / "settings.json").exists()
    assert list((job.root / "workspace").iterdir()) == []


def test_arguments_are_refused(job: Job) -> None:
    job.layout["arguments"] = ["--help"]
    assert "takes no arguments" in _refused(job.run("completes"), "config")

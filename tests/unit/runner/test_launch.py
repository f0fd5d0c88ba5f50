"""pi's command line and settings."""

from dataclasses import replace
from pathlib import Path

from pirunner import agent_home, launch
from pirunner.environment import parse
from pirunner.layout import Layout

ASKED = parse({"PI_PROVIDER": "p", "PI_MODEL": "m", "PI_MAX_TURNS": "3", "PI_RETRY_MAX": "4", "PI_RETRY_BASE_MS": "50"})


def test_command_of_a_job_without_extras(tmp_path: Path) -> None:
    layout = Layout(job_dir=tmp_path)
    assert launch.command(ASKED, layout) == [
        "/usr/local/bin/node",
        "/app/node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js",
        *("--mode", "rpc", "--offline", "--no-session", "--no-approve"),
        *("--no-extensions", "-e", "/app/runner/budget.js"),
        *("--no-prompt-templates", "--no-themes", "--no-skills"),
        *("--provider", "p", "--model", "m"),
        *("--append-system-prompt", "/opt/pi-dispatch/HARD_RULES.md"),
    ]


def test_skills_and_persona_of_the_job(tmp_path: Path) -> None:
    (tmp_path / "pi/skills").mkdir(parents=True)
    (tmp_path / "pi/APPEND_SYSTEM.md").touch()
    command = launch.command(ASKED, Layout(job_dir=tmp_path))
    assert command[command.index("--skill") + 1] == str(tmp_path / "pi/skills")
    assert command[-4:] == [
        *("--append-system-prompt", "/opt/pi-dispatch/HARD_RULES.md"),
        *("--append-system-prompt", str(tmp_path / "pi/APPEND_SYSTEM.md")),
    ]


def test_the_repositorys_skills_come_before_those_of_the_rule(tmp_path: Path) -> None:
    for name in ("trigger-skills", "pi/skills"):
        (tmp_path / name).mkdir(parents=True)
    command = launch.command(ASKED, Layout(job_dir=tmp_path))
    assert [command[index + 1] for index, word in enumerate(command) if word == "--skill"] == [
        str(tmp_path / "pi/skills"),
        str(tmp_path / "trigger-skills"),
    ]


def test_skills_of_the_rule_alone(tmp_path: Path) -> None:
    (tmp_path / "trigger-skills").mkdir()
    command = launch.command(ASKED, Layout(job_dir=tmp_path))
    assert command.count("--skill") == 1
    assert command[command.index("--skill") + 1] == str(tmp_path / "trigger-skills")


def test_environment_keeps_pi_off_the_network_whatever_was_given() -> None:
    given = {"PI_OFFLINE": "0", "RUN_MAX_TURNS": "999", "OTHER": "kept"}
    variables = launch.process_environment(given, ASKED, Path("/h"), Path("/h/agent"), Path("/h/compiled"))
    assert (variables["PI_OFFLINE"], variables["PI_TELEMETRY"], variables["PI_SKIP_VERSION_CHECK"]) == ("1", "0", "1")
    assert (variables["RUN_MAX_TURNS"], variables["RUN_MAX_TOKENS"], variables["OTHER"]) == ("3", "", "kept")
    capped = replace(ASKED, max_tokens=7)
    assert launch.process_environment(given, capped, Path("/h"), Path("/a"), None)["RUN_MAX_TOKENS"] == "7"


def test_settings_pin_what_could_spend_unseen() -> None:
    chosen = agent_home.settings(ASKED)
    assert chosen["compaction"] == {"enabled": False}
    assert chosen["retry"] == {
        "enabled": True,
        "maxRetries": 4,
        "baseDelayMs": 50,
        "provider": {"timeoutMs": 120_000, "maxRetries": 0},
    }
    assert (chosen["defaultProjectTrust"], chosen["cacheWarming"]) == ("never", "off")


def test_guardrails_are_short_and_carry_the_sentinel() -> None:
    rules = (Path(__file__).resolve().parents[3] / "pidispatch/image/job/HARD_RULES.md").read_text()
    assert "pi-dispatch-guardrails-v1" in rules
    assert "--force-with-lease" in rules
    assert len(rules) < 2000

"""How pi is started: its command line and environment. Pure, so that a test can read both.

Discovery is off for everything a repository could bring along to run or to steer the session: extensions, skills,
prompt templates, themes, project settings. What a job may use is named on the command line. The repository's
`AGENTS.md` is read by pi as context; it is reviewed content like the code.
"""

from collections.abc import Mapping
from pathlib import Path

from pirunner.environment import Environment
from pirunner.layout import Layout


def command(environment: Environment, layout: Layout) -> list[str]:
    """pi's command line (pi's documentation, "Command Line"). Additions to the system prompt come in their order."""
    # Of two skills with one name pi keeps the first, so the repository's own are not displaced.
    skills = (layout.job_dir / "pi" / "skills", layout.trigger_skills)
    persona = layout.job_dir / "pi" / "APPEND_SYSTEM.md"
    arguments = [*layout.pi_command, "--mode", "rpc", "--offline", "--no-session", "--no-approve"]
    arguments += ["--no-extensions", "-e", str(layout.budget_extension)]
    arguments += ["--no-prompt-templates", "--no-themes", "--no-skills"]
    for folder in filter(Path.is_dir, skills):
        arguments += ["--skill", str(folder)]
    arguments += ["--provider", environment.provider, "--model", environment.model]
    arguments += ["--append-system-prompt", str(layout.rules)]
    if persona.is_file():
        arguments += ["--append-system-prompt", str(persona)]
    return arguments


def process_environment(
    environ: Mapping[str, str], environment: Environment, home: Path, agent_dir: Path, compile_cache: Path | None
) -> dict[str, str]:
    """The runner's environment plus what keeps pi off the network and tells the budget extension its limits."""
    cached = {"NODE_COMPILE_CACHE": str(compile_cache)} if compile_cache else {}
    return {
        **environ,
        **cached,
        "HOME": str(home),
        "PI_OFFLINE": "1",
        "PI_TELEMETRY": "0",
        "PI_SKIP_VERSION_CHECK": "1",
        "PI_CODING_AGENT_DIR": str(agent_dir),
        "RUN_MAX_TURNS": str(environment.max_turns),
        "RUN_MAX_TOKENS": "" if environment.max_tokens is None else str(environment.max_tokens),
    }

"""The commands that scenarios run: all are valid bash and Python; those that do no harm here are run."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.fakes.model import CATALOGUE, Call, programs

COMMANDS = {
    name: str(step.arguments["command"])
    for name, scenario in CATALOGUE.items()
    for step in scenario.steps
    if isinstance(step, Call) and step.tool == "bash"
}
EMBEDDED = re.compile(r"^python3 - <<'PROGRAM'\n(.*)^PROGRAM\n", re.DOTALL | re.MULTILINE)


def run(command: str, folder: Path) -> str:
    """Run as the agent's bash tool does; the environment is closed, as in the box."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "MARKER": "seen"}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_valid_bash(name: str) -> None:
    done = subprocess.run(["bash", "-n", "-c", COMMANDS[name]], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["flood", "forge", "forgelate", "oom", "escape"])
def test_every_embedded_program_is_valid_python(name: str) -> None:
    found = EMBEDDED.fullmatch(COMMANDS[name])
    assert found is not None
    assert compile(found[1], name, "exec")


def test_commit_commits(tmp_path: Path) -> None:
    run("git init -q", tmp_path)
    revision = run(programs.COMMIT, tmp_path).strip()
    assert run("git log --format='%H %s'", tmp_path).strip() == f"{revision} Add committed.txt"


def test_environment_is_written_under_its_headings(tmp_path: Path) -> None:
    run(programs.ENVIRONMENT, tmp_path)
    text = (tmp_path / "env.txt").read_text()
    assert text.startswith("# env\n")
    assert "MARKER=seen\n" in text
    assert "# /proc/1/environ\n" in text


def test_floodtool_prints_32_mib(tmp_path: Path) -> None:
    assert len(run(programs.FLOOD_TOOL, tmp_path)) == 32 << 20

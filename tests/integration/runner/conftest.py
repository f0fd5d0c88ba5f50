"""A prepared job folder for the runner."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.fakes.agent.job import Job


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    """A job whose folders are all in order."""
    for name in ("job", "workspace", "home"):
        (tmp_path / name).mkdir()
    (tmp_path / "job/prompt.md").write_text("do it")
    (tmp_path / "rules.md").write_text("rules")
    environ: Mapping[str, str] = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "PI_JOB_ID": "pi-job-x",
        "PI_PROVIDER": "stub",
        "PI_MODEL": "stub-1",
        "PI_MAX_TURNS": "9",
        **{name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")},
    }
    layout: Mapping[str, object] = {
        "job_dir": str(tmp_path / "job"),
        "workspace": str(tmp_path / "workspace"),
        "overlay": str(tmp_path / "overlay"),
        "outbox": str(tmp_path / "outbox"),
        "rules": str(tmp_path / "rules.md"),
        "pi_ai_manifest": str(tmp_path / "pi-ai.json"),
        "settle_seconds": 5.0,
        "abort_seconds": 5.0,
        "kill_seconds": 2.0,
    }
    made = Job(tmp_path, dict(environ), dict(layout))
    yield made
    for process in made.started:
        process.kill()
        process.communicate()

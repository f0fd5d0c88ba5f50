"""Jobs for the tests of the gates."""

from datetime import UTC, datetime
from pathlib import Path

from pidispatch.values.job import Job

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def job(number: int, folder: str | Path = "/srv/site") -> Job:
    """The job `local-<number>` in `folder`."""
    return Job(id=f"local-{number}", folder=Path(folder), task="a private task")

"""Jobs for the tests of the gates."""

from datetime import UTC, datetime
from pathlib import Path

from pidispatch.values.job import LocalJob

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def job(number: int, folder: str | Path = "/srv/site") -> LocalJob:
    """The job `local-<number>` in `folder`."""
    return LocalJob(id=f"local-{number}", folder=Path(folder), task="a private task")

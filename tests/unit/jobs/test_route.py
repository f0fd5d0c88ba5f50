"""Which queue a job goes to."""

from pathlib import Path

import pytest

from pidispatch.config.settings import load_settings
from pidispatch.jobs.route import route
from pidispatch.values.job import LocalJob

JOB = LocalJob(id="local-1", folder=Path("/srv/site"), task="tidy up")


def test_one_machine_has_the_shared_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PI_WORKER_NAME", raising=False)
    assert route(JOB, load_settings()) == "pi-jobs"


def test_a_folder_is_worked_in_on_the_machine_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_WORKER_NAME", "build-1")
    assert route(JOB, load_settings()) == "pi-jobs@build-1"

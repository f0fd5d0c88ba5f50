"""What a start makes of broken-off attempts where it needs no engine, or gets none."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pidispatch.box.engine import Engine
from pidispatch.box.leftover import Leftover
from pidispatch.box.run import ContainerEnd
from pidispatch.config.settings import Settings
from pidispatch.runs.note import AttemptNote, write_note
from pidispatch.runs.sweep import Swept, _result, sweep
from pidispatch.values.errors import InfraError
from pidispatch.values.job import Job
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Completed, InfraFailed, Refused
from pidispatch.values.reason import Reason
from pidispatch.workspace.jobdir import JobDir, make_job_dir, release_job_dir
from pidispatch.workspace.locks import hold_folder
from tests.support.clock import FakeClock

NOW = datetime(2026, 1, 31, tzinfo=UTC)
EXIT = '{"event":"exit","jobId":"x","code":%d,"reason":"stop","turns":3}\n'


def note(folder: Path) -> AttemptNote:
    return AttemptNote(
        job=Job(id="local-9", folder=folder, task="x"),
        folder=folder,
        provider="anthropic",
        model="m",
        image_digest="sha256:1",
        prepared_at=NOW,
        engine="e",
        container="pi-job-local-9",
        neighbour=None,
    )


class Host:
    """Folders of a deployment, and how often its engine was asked for."""

    def __init__(self, tmp_path: Path) -> None:
        self.path = tmp_path
        paths = {"PI_JOBS_DIR": "jobs", "PI_STATE_DIR": "state", "PI_LOGS_DIR": "logs"}
        self.settings = Settings.model_validate({name: str(tmp_path / path) for name, path in paths.items()})
        self.asked = 0

    def connect(self) -> Engine:
        self.asked += 1
        raise InfraError("nobody answers", "container-never-started")

    def left(self, *, noted: bool) -> JobDir:
        """The directory of a program that is gone."""
        job_dir = make_job_dir(self.settings.jobs_dir, (os.getuid(), os.getgid()))
        if noted:
            write_note(job_dir.note, note(self.path))
        release_job_dir(job_dir)
        return job_dir

    def sweep(self) -> Swept:
        return sweep(self.settings, self.connect, Limits(), FakeClock(NOW))


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_nothing_left_asks_for_no_engine(host: Host) -> None:
    assert host.sweep() == Swept()
    assert host.asked == 0
    assert os.listdir(host.path) == []


def test_an_attempt_that_never_came_to_its_container_is_only_removed(host: Host) -> None:
    job_dir = host.left(noted=False)
    assert host.sweep() == Swept()
    assert host.asked == 0
    assert not job_dir.path.exists()


def test_one_that_is_under_way_is_left_alone(host: Host) -> None:
    job_dir = make_job_dir(host.settings.jobs_dir, (os.getuid(), os.getgid()))
    write_note(job_dir.note, note(host.path))
    assert host.sweep() == Swept()
    assert job_dir.note.exists()


def test_without_its_engine_everything_stays_for_the_next_start(host: Host) -> None:
    job_dir = host.left(noted=True)
    assert host.sweep().unsettled == {"local-9": "nobody answers"}
    assert job_dir.note.exists()
    assert host.sweep().unsettled == {"local-9": "nobody answers"}
    assert host.asked == 2


def test_a_folder_that_somebody_works_in_is_settled_by_a_later_start(host: Host) -> None:
    job_dir = host.left(noted=True)
    with hold_folder(host.settings.state_dir, host.path):
        assert "another run works in" in host.sweep().unsettled["local-9"]
    assert host.asked == 0
    assert job_dir.note.exists()


def test_a_note_that_cannot_be_read_is_told_and_stays(host: Host) -> None:
    job_dir = host.left(noted=True)
    job_dir.note.write_text("{")
    [(name, why)] = host.sweep().unsettled.items()
    assert name == job_dir.path.name
    assert "cannot be read" in why
    assert job_dir.path.exists()


def test_a_start_removes_records_and_kept_versions_that_are_old(host: Host) -> None:
    old, new = NOW.timestamp() - 31 * 86400, NOW.timestamp() - 29 * 86400
    names = ["logs/a.json", "logs/a.log", "jobs/kept-a/config"]
    for name in names:
        path = host.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        for aged in (path, path.parent):
            os.utime(aged, (new, new))
    host.sweep()
    assert all((host.path / name).exists() for name in names)
    for name in names:
        for aged in (host.path / name, (host.path / name).parent):
            os.utime(aged, (old, old))
    host.sweep()
    assert not any((host.path / name).exists() for name in names)


def leftover(code: int, tail: str = "", *, started: bool = True, by_itself: bool = True) -> Leftover:
    return Leftover(started=started, by_itself=by_itself, end=ContainerEnd(code=code, tail=tail))


@pytest.mark.parametrize(
    ("left", "outcome", "spent"),
    [
        (leftover(0, EXIT % 0), Completed(), True),
        (leftover(2, EXIT % 2), Refused, True),
        (leftover(0), InfraFailed(reason=Reason.WORKER_LOST), True),
        (leftover(0, EXIT % 0, by_itself=False), InfraFailed(reason=Reason.WORKER_LOST), True),
        (leftover(0, started=False), InfraFailed(reason=Reason.CONTAINER_NEVER_STARTED), False),
        (None, InfraFailed(reason=Reason.WORKER_LOST), True),
    ],
)
def test_what_is_known_of_it_is_recorded_and_what_may_have_run_counts_as_spent(
    left: Leftover | None, outcome: object, spent: bool, tmp_path: Path
) -> None:
    result = _result(note(tmp_path), left)
    assert result.outcome == outcome or (isinstance(outcome, type) and isinstance(result.outcome, outcome))
    assert result.spent is spent
    assert result.telemetry.turns == (3 if left and left.end.tail else None)

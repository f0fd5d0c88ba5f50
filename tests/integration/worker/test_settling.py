"""What is told of an attempt that a killed worker left, and who writes its record."""

from pathlib import Path
from typing import cast

import pytest

from pidispatch.box.engine import Engine
from pidispatch.config.clock import SystemClock
from pidispatch.config.settings import Settings
from pidispatch.jobs.rows import Acquired, JobState, Lease, Ticket
from pidispatch.runs.note import AttemptNote
from pidispatch.runs.reaper import Stray
from pidispatch.runs.sweep import Found
from pidispatch.values.outcome import Completed, InfraFailed
from pidispatch.values.reason import Reason
from pidispatch.values.record import Result
from pidispatch.worker.settling import Settling
from pidispatch.worker.sweeper import Sweeper
from tests.integration.worker.bench import JOB, LIMITS, Bench
from tests.support.ends import NOW, job_of, record_of, result_of

ENGINE = "engine"
LOST = InfraFailed(reason=Reason.WORKER_LOST)
BROKEN = InfraFailed(reason=Reason.INFRA, cause="exit-1")
Logs = list[dict[str, object]]


class NoEngine:
    """An engine on which nothing is left."""

    def facts(self) -> "NoEngine":
        """Its own."""
        return self

    id = ENGINE

    def job_containers(self, _: str) -> tuple[()]:
        """None."""
        return ()

    def job_networks(self, _: str) -> tuple[()]:
        """None."""
        return ()


class Place:
    """A worker that begins where another was killed."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench = bench
        self.announced: list[Ticket] = []
        settings = Settings.model_validate(
            {
                "PI_JOBS_DIR": str(folder / "jobs"),
                "PI_LOGS_DIR": str(bench.records.folder),
                "PI_STATE_DIR": str(folder / "state"),
                "PI_WORKER_NAME": "build-1",
            }
        )
        sweeper = Sweeper(bench.store, self.announced.append, bench.recorder)
        self.settling = Settling(
            bench.store, bench.records, bench.recorder, sweeper, settings, "0" * 16, LIMITS, SystemClock()
        )

    def active(self, *, spent: bool) -> Lease:
        """A job that the killed one held."""
        row = self.bench.store.row(JOB)
        gen = self.bench.submit().gen if row is None else row.gen
        acquired = self.bench.store.acquire(JOB, gen, self.bench.owner())
        assert isinstance(acquired, Acquired)
        if spent:
            self.bench.store.spend(acquired.lease)
        return acquired.lease

    def found(self, result: Result, started: bool | None, attempt: int = 1) -> None:
        """Its job directory is found."""
        note = AttemptNote(
            job=job_of(JOB),
            attempt=attempt,
            folder=Path("/srv/site"),
            inode=1,
            provider="anthropic",
            model="m",
            image_digest="sha256:1",
            begun_at=NOW,
            engine=ENGINE,
            container=f"pi-job-{JOB}",
            neighbour=None,
            deployment="0" * 16,
        )
        self.settling._found(Found(note, result, started), ENGINE)

    def stray(self, result: Result, *, started: bool, attempt: int = 1) -> None:
        """Its container is found, without a job directory."""
        self.settling._stray(Stray(JOB, attempt, "exited", result, started), ENGINE)

    def recorded(self) -> tuple[str, str | None, list[int]] | None:
        """Outcome, reason and earlier attempts of the record file."""
        found = self.bench.records.find(JOB)
        return None if found is None else (found.outcome, found.reason, [one.attempt for one in found.attempts])


@pytest.fixture
def place(bench: Bench, tmp_path: Path) -> Place:
    return Place(bench, tmp_path)


def test_where_nothing_is_left_nothing_is_told(place: Place) -> None:
    place.settling(cast(Engine, NoEngine()))
    assert (place.announced, place.recorded()) == ([], None)


def test_a_run_that_ended_after_its_worker_has_its_true_end(place: Place) -> None:
    place.active(spent=True)
    place.found(result_of(Completed()), started=True)
    assert place.recorded() == ("completed", None, [])
    row = place.bench.row()
    assert (row.state, row.recorded) == (JobState.COMPLETED, True)


def test_one_of_which_only_the_container_is_left_too(place: Place) -> None:
    place.active(spent=True)
    place.stray(result_of(Completed()), started=True)
    assert (place.recorded(), place.bench.row().state) == (("completed", None, []), JobState.COMPLETED)


def test_an_attempt_that_never_started_is_queued_again(place: Place) -> None:
    lease = place.active(spent=False)
    place.found(result_of(LOST, spent=False), started=False)
    assert [(one.job_id, one.gen) for one in place.announced] == [(JOB, lease.gen + 1)]
    assert (place.recorded(), place.bench.row().state) == (None, JobState.QUEUED)


def test_of_one_that_nothing_is_known_of_the_store_says_whether_it_spent(place: Place) -> None:
    place.active(spent=True)
    place.found(result_of(LOST, spent=None), started=None)
    assert place.recorded() == ("failed", "worker-lost", [])
    assert place.announced == []


def test_the_attempts_before_it_stand_in_its_record(place: Place) -> None:
    first = place.active(spent=True)
    place.bench.store.fail(first, record_of(JOB, BROKEN), never_started=False)
    place.active(spent=True)
    place.found(result_of(Completed()), started=True, attempt=2)
    assert place.recorded() == ("completed", None, [1])


def test_one_that_counts_as_lost_already_is_completed_by_what_is_known(place: Place) -> None:
    lease = place.active(spent=True)
    lost = record_of(JOB, LOST)
    place.bench.store.finish(lease, lost)
    place.bench.recorder(lost)
    place.stray(result_of(Completed()).model_copy(update={"exit_code": 0}), started=True)
    record = place.bench.records.find(JOB)
    assert record is not None
    assert (record.outcome, record.reason, record.exit_code) == ("failed", "worker-lost", 0)


def test_a_run_whose_row_the_server_has_lost_is_recorded(place: Place) -> None:
    place.found(result_of(Completed()), started=True)
    assert place.recorded() == ("completed", None, [])


def test_one_that_certainly_did_not_start_leaves_nothing_then(place: Place) -> None:
    place.found(result_of(LOST, spent=False), started=False)
    assert place.recorded() is None


def test_a_container_that_nobody_knows_is_told_to_the_log_alone(place: Place, logs: Logs) -> None:
    place.stray(result_of(Completed()), started=True)
    assert {"event": "stray_unknown", "log_level": "warning", "jobId": JOB} in logs
    assert place.recorded() is None

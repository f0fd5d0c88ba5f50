"""What an attempt asks of whoever runs it, on a real engine: the word before it spends, its number, its output."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import docker
import pytest

from pidispatch.box.abort import Abort
from pidispatch.runs.note import read_note
from pidispatch.runs.seams import LeaseLost
from pidispatch.values.errors import InfraError
from pidispatch.values.job import LocalJob
from pidispatch.values.outcome import Aborted, Completed, InfraFailed
from pidispatch.values.progress import ContainerStarted, Progress
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.record import Result
from pidispatch.values.verdict import Defer, Why
from pidispatch.workspace.locks import hold_folder
from tests.integration.box.workplace import Workplace, workplace
from tests.support.engine import left_of

LOST = Aborted(reason=Reason.WORKER_ABORT, cause=AbortReason.LEASE_LOST)


@pytest.fixture
def place(engine: docker.DockerClient, tmp_path: Path) -> Iterator[Workplace]:
    with workplace(engine, tmp_path) as place:
        yield place


def unheard(_: Progress) -> None:
    """Nobody looks."""


def test_the_word_comes_before_the_container_and_after_every_check(place: Workplace) -> None:
    job, seen, output = place.job(), list[object](), bytearray()

    def spend(spent: LocalJob, _: datetime) -> tuple[dict[str, int], None]:
        [job_dir] = place.job_dirs()
        note = read_note(job_dir / "attempt.json")
        assert note is not None
        seen.append((spent, note.attempt, left_of(place.client, note.container)))
        return {}, None

    result = place.attempt(spend=spend, output=lambda job_id: output.extend)(job, unheard, Abort(), 2)

    assert isinstance(result, Result)
    assert isinstance(result.outcome, Completed)
    # Neither the container nor its network is made by then.
    assert seen == [(job, 2, [])]
    assert output.decode().startswith("at work\n")
    assert [one.spent for one in place.finished] == [True]
    assert place.job_dirs() == []


def test_the_container_says_whose_it_is(place: Workplace) -> None:
    job, labels = place.job(), list[dict[str, str]]()

    def look(progress: Progress) -> None:
        if isinstance(progress, ContainerStarted):
            labels.append(place.client.containers.get(progress.name).labels)

    place.attempt()(job, look, Abort(), 2)
    assert [(one["pi.dispatch.job"], one["pi.dispatch.attempt"]) for one in labels] == [(job.id, "2")]


@pytest.mark.parametrize(
    ("fault", "outcome", "finished"),
    [
        (InfraError("no answer", "not-started"), InfraFailed, 1),
        (LeaseLost(), Aborted, 0),
        (ZeroDivisionError(), InfraFailed, 1),
    ],
)
def test_what_the_word_meets_ends_the_attempt_before_it_spends(
    place: Workplace, fault: Exception, outcome: type, finished: int
) -> None:
    job, told = place.job(), list[Progress]()

    def spend(_: LocalJob, __: datetime) -> tuple[dict[str, int], None]:
        raise fault

    result = place.attempt(spend=spend)(job, told.append, Abort())

    assert isinstance(result, Result)
    assert isinstance(result.outcome, outcome)
    assert result.spent is False
    assert len(place.finished) == finished
    assert left_of(place.client, f"pi-job-{job.id}") == []
    assert place.job_dirs() == []
    assert not [one for one in told if isinstance(one, ContainerStarted)]


@pytest.mark.example("ch2 CH-16", "one that lost its lease while it ran stops its container and writes nothing")
def test_a_loser_stops_its_container_and_tells_nothing(place: Workplace) -> None:
    place.repository.write("long", "")
    job, abort = place.job(), Abort()

    def lose(progress: Progress) -> None:
        if isinstance(progress, ContainerStarted):
            abort.set(AbortReason.LEASE_LOST)

    result = place.attempt()(job, lose, abort)

    assert isinstance(result, Result)
    assert result.outcome == LOST
    assert place.finished == []
    assert left_of(place.client, f"pi-job-{job.id}") == []
    assert place.job_dirs() == []


def test_a_cancelled_run_keeps_its_reason(place: Workplace) -> None:
    place.repository.write("long", "")
    abort = Abort()

    def cancel(progress: Progress) -> None:
        if isinstance(progress, ContainerStarted):
            abort.set(AbortReason.OPERATOR_CANCEL)

    place.attempt()(place.job(), cancel, abort)
    [result] = place.finished
    assert result.outcome == Aborted(reason=Reason.OPERATOR_CANCEL, cause=AbortReason.OPERATOR_CANCEL)


def test_a_folder_that_another_program_works_in_is_come_back_to(place: Workplace) -> None:
    spent: list[LocalJob] = []

    def spend(job: LocalJob, _: datetime) -> tuple[dict[str, int], None]:
        spent.append(job)
        return {}, None

    attempt = place.attempt(spend=spend)
    with hold_folder(place.settings.state_dir, place.repository.path):
        assert attempt(place.job(), unheard, Abort()) == Defer(why=Why.SCOPE_BUSY, delay_ms=5000)
    assert (place.finished, spent, place.job_dirs()) == ([], [], [])
    assert isinstance(attempt(place.job(), unheard, Abort()), Result)


def test_output_that_nobody_can_hear_ends_nothing(place: Workplace) -> None:
    def gone(_: bytes) -> None:
        raise BrokenPipeError

    result = place.attempt(output=lambda _: gone)(place.job(), unheard, Abort())
    assert isinstance(result, Result)
    assert isinstance(result.outcome, Completed)
    assert result.telemetry.turns == 4

"""The boot reaper where one of its steps fails: what fails is told, stops no other, and stays for the next time."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pidispatch.box.engine import Engine
from pidispatch.box.facts import JobContainer
from pidispatch.box.leftover import Leftover
from pidispatch.box.run import ContainerEnd
from pidispatch.runs import reaper
from pidispatch.runs.note import write_note
from pidispatch.runs.reaper import Stray, reap
from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Completed, InfraFailed
from pidispatch.values.reason import Reason
from pidispatch.workspace.jobdir import make_job_dir
from tests.support.clock import FakeClock
from tests.unit.runs.place import note_of

NOW, MADE = datetime(2030, 1, 2, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
EXIT = '{"event":"exit","jobId":"x","code":0,"reason":"stop","turns":3}\n'
LOST, NEVER = (InfraFailed(reason=reason) for reason in (Reason.WORKER_LOST, Reason.CONTAINER_NEVER_STARTED))


def container(number: int, job_id: str | None = "", attempt: int = 1, state: str = "exited") -> JobContainer:
    return JobContainer(
        name=f"pi-job-local-{number}",
        job_id=f"local-{number}" if job_id == "" else job_id,
        attempt=attempt,
        state=state,
        provider="anthropic",
        model="m",
        image_digest="sha256:1",
        created_at=MADE,
    )


def left(*, started: bool = True, by_itself: bool = True, tail: str = EXIT) -> Leftover:
    return Leftover(started=started, by_itself=by_itself, end=ContainerEnd(code=0, tail=tail))


class Shelf:
    """An engine with these containers and networks; those named in `stuck` cannot be removed."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        found: dict[JobContainer, Leftover],
        networks: tuple[str, ...] = (),
        stuck: tuple[str, ...] = (),
    ) -> None:
        self.found = found
        self.networks = networks
        self.stuck = stuck
        self.gone: list[str] = []
        monkeypatch.setattr(reaper, "remove_leftover", self.remove)

    def remove(self, *arguments: object) -> None:
        _engine, name, neighbour, deployment, _limits, ended = arguments
        assert (neighbour, deployment) == (None, "d")
        [left] = [one for container, one in self.found.items() if container.name == name]
        assert callable(ended)
        ended(left)
        if name in self.stuck:
            raise InfraError("it resists", "leftover")
        self.gone.append(str(name))

    def job_containers(self, deployment: str) -> tuple[JobContainer, ...]:
        assert deployment == "d"
        return tuple(self.found)

    def job_networks(self, deployment: str) -> tuple[str, ...]:
        assert deployment == "d"
        return self.networks

    def clear_network(self, name: str) -> str | None:
        if name in self.stuck:
            return "APIError 500"
        self.gone.append(name)
        return None


class Told:
    """What was settled; raises for the jobs named in `deaf`."""

    def __init__(self, deaf: tuple[str, ...] = ()) -> None:
        self.strays: list[Stray] = []
        self.deaf = deaf

    def __call__(self, stray: Stray) -> None:
        if stray.job_id in self.deaf:
            raise InfraError("no answer", "store-unreachable")
        self.strays.append(stray)


def run(shelf: Shelf, told: Told, jobs_dir: Path) -> tuple[str, ...]:
    engine: Engine = shelf  # type: ignore[assignment]
    return reap(engine, "d", jobs_dir, told, Limits(), FakeClock(NOW))


@pytest.mark.parametrize(
    ("found", "outcome", "spent", "turns"),
    [
        (left(), Completed(), True, 3),
        (left(tail="cut"), LOST, True, None),
        (left(by_itself=False), LOST, True, 3),
        (left(started=False), NEVER, False, None),
    ],
)
def test_each_is_settled_by_what_it_shows(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    found: Leftover,
    outcome: object,
    spent: bool,
    turns: int | None,
) -> None:
    told, shelf = Told(), Shelf(monkeypatch, {container(1, attempt=2, state="running"): found})
    with capture_logs() as events:
        assert run(shelf, told, tmp_path) == ()
    [stray] = told.strays
    assert (stray.job_id, stray.attempt, stray.state, stray.started) == ("local-1", 2, "running", found.started)
    assert (stray.result.outcome, stray.result.spent, stray.result.telemetry.turns) == (outcome, spent, turns)
    assert (stray.result.started_at, stray.result.ended_at, stray.result.provider) == (MADE, NOW, "anthropic")
    assert shelf.gone == ["pi-job-local-1"]
    assert events == [
        {"event": "reaped_container", "jobId": "local-1", "state": "running", "log_level": "warning"},
    ]


def test_one_that_fails_is_told_and_stops_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    containers = {container(number): left() for number in (1, 2, 3)}
    networks = ("pi-job-local-7-net", "pi-job-local-8-net")
    shelf = Shelf(monkeypatch, containers, networks, stuck=("pi-job-local-2", "pi-job-local-7-net"))
    told = Told(deaf=("local-1",))
    with capture_logs() as events:
        failed = run(shelf, told, tmp_path)
    assert failed == ("pi-job-local-1", "pi-job-local-2", "pi-job-local-7-net")
    assert shelf.gone == ["pi-job-local-3", "pi-job-local-8-net"]
    assert [stray.job_id for stray in told.strays] == ["local-2", "local-3"]
    assert [(event["event"], event["jobId"], event.get("cause")) for event in events] == [
        ("reaper_failed", "local-1", "store-unreachable"),
        ("reaper_failed", "local-2", "leftover"),
        ("reaped_container", "local-3", None),
        ("reaper_failed", "local-7", "network"),
        ("reaped_network", "local-8", None),
    ]


def test_one_whose_job_nobody_knows_is_removed_and_settles_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told, shelf = Told(), Shelf(monkeypatch, {container(1, None): left()})
    assert run(shelf, told, tmp_path) == ()
    assert (told.strays, shelf.gone) == ([], ["pi-job-local-1"])


def test_what_a_job_directory_explains_is_left_to_the_sweep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    owner = (os.getuid(), os.getgid())
    explained, unreadable, fresh = (make_job_dir(tmp_path / "jobs", owner) for _ in range(3))
    write_note(explained.note, note_of(tmp_path))
    unreadable.note.write_text("{")
    networks = ("pi-job-local-9-net", "pi-job-local-8-net")
    shelf = Shelf(monkeypatch, {container(9): left(), container(8): left()}, networks)
    told = Told()
    assert run(shelf, told, tmp_path / "jobs") == ()
    assert shelf.gone == ["pi-job-local-8", "pi-job-local-8-net"]
    assert not fresh.note.exists()


def test_a_job_that_begins_while_it_looks_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its note stands before it makes anything; the reaper may come while other jobs run."""
    jobs_dir = tmp_path / "jobs"

    class Busy(Shelf):
        def begin(self) -> None:
            job_dir = make_job_dir(jobs_dir, (os.getuid(), os.getgid()))
            write_note(job_dir.note, note_of(tmp_path))
            held.append(job_dir)

        def job_containers(self, deployment: str) -> tuple[JobContainer, ...]:
            self.begin()
            return super().job_containers(deployment)

    held: list[object] = []
    one = Busy(monkeypatch, {container(9): left()}, ("pi-job-local-9-net",))
    told = Told()
    assert run(one, told, jobs_dir) == ()
    assert (told.strays, one.gone) == ([], [])

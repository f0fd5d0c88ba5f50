"""Triggers whose runs come to nothing: paused after so many, told once, and until then nothing is lost or leaks."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import docker
import pytest

from pidispatch.box.abort import Abort
from pidispatch.box.engine import Engine
from pidispatch.config.clock import SystemClock
from pidispatch.config.settings import Settings
from pidispatch.jobs.rows import JobState, Ticket
from pidispatch.runs.attempt import Attempt
from pidispatch.triggers.file import parse_triggers
from pidispatch.values.change import Change
from pidispatch.values.epoch import to_ms
from pidispatch.values.job import LocalJob
from pidispatch.values.outcome import Completed
from pidispatch.values.record import Result
from pidispatch.worker.delivery import End
from pidispatch.worker.scheduler import Scheduler
from pidispatch.worker.sweeper import Sweeper
from tests.integration.worker.bench import LIMITS, QUEUE, Bench
from tests.support.box import program_image
from tests.support.ends import NOW, job_of, result_of
from tests.support.repository import make_repository
from tests.support.server import OwnServer
from tests.support.settings import settings_of

NAME = "nightly"
UNCHANGED = Change(changed=False, commits=0, head="0" * 40, files=(), dirty_before=False)
Logs = list[dict[str, object]]


class Hand:
    """A clock that a test moves."""

    at = datetime(2026, 5, 4, 12, tzinfo=UTC)

    def now(self) -> datetime:
        """Where it stands."""
        return self.at

    def monotonic(self) -> float:
        """Likewise."""
        return self.at.timestamp()


class Nightly:
    """A worker with one schedule, which falls due every hour."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.clock = Hand()
        self.tickets: list[Ticket] = []
        self.changed: bool | None = False
        self.scheduler = self.another()
        self.scheduler()
        bench.attempt(self._attempt)

    def another(self) -> Scheduler:
        """A scheduler of this file, as every worker has one."""
        on = {"type": "cron", "id": NAME, "pattern": "0 * * * *"}
        run = {"kind": "local", "folder": "/srv/site", "flow": "tidy", "task": "tidy up"}
        file = parse_triggers(json.dumps({"triggers": [{"on": on, "run": run}]}), Path("triggers.json"))
        zone, settings = ZoneInfo("UTC"), settings_of({})
        return Scheduler(
            lambda: file.schedules, zone, self.bench.store, self.tickets.append, settings, LIMITS, self.clock
        )

    def _attempt(self, job: LocalJob, _: Abort) -> Result:
        self.bench.cases.spend(job, NOW)
        change = None if self.changed is None else UNCHANGED.model_copy(update={"changed": self.changed})
        result = result_of(Completed()).model_copy(update={"change": change})
        self.bench.cases.finish(job, result)
        return result

    def hour(self, changed: bool | None = False) -> str | None:
        """Let an hour pass: the job that fell due, once it has run; `None` where there was none."""
        self.changed = changed
        self.clock.at += timedelta(hours=1)
        self.scheduler()
        if not self.tickets:
            return None
        ticket = self.tickets.pop()
        assert self.bench.deliver(ticket.job_id, ticket.gen).end is End.RETURNED
        return ticket.job_id

    def sweep(self) -> None:
        """As every worker does."""
        Sweeper(self.bench.store, lambda _: None, self.bench.recorder)()


@pytest.fixture
def nightly(bench: Bench) -> Nightly:
    return Nightly(bench)


def named(logs: Logs, event: str) -> list[dict[str, object]]:
    return [one for one in logs if one["event"] == event]


@pytest.mark.example("ch8 F5", "five occurrences that change nothing pause the schedule, and that is told once")
def test_f5_a_schedule_that_changes_nothing_is_paused_and_told_once(nightly: Nightly, logs: Logs) -> None:
    ran = []
    for _ in range(5):
        assert named(logs, "trigger_paused") == []
        ran.append(nightly.hour())
        nightly.sweep()
    for job_id in ran:
        assert job_id is not None
        found = nightly.bench.records.find(job_id)
        assert found is not None
        assert (found.outcome, found.exit_code, found.changed) == ("completed", None, False)
    nightly.sweep()
    [told] = named(logs, "trigger_paused")
    assert {**told} == {
        "event": "trigger_paused",
        "log_level": "error",
        "trigger": NAME,
        "runs": 5,
        "jobId": ran[-1],
        "reason": "",
    }
    # What falls due from now on passes, and is dealt with.
    assert [nightly.hour() for _ in range(3)] == [None, None, None]
    assert [(one["scheduleId"], one["log_level"]) for one in named(logs, "schedule_paused")] == [(NAME, "warning")]
    assert nightly.bench.store.dealt_with([NAME]) == {NAME: nightly.clock.at}
    assert len(named(logs, "schedule_fired")) == 5


def test_a_paused_schedule_goes_on_where_it_is_resumed_and_makes_up_for_nothing(nightly: Nightly, logs: Logs) -> None:
    for _ in range(7):
        nightly.hour()
    assert nightly.bench.store.rearm(breaker=NAME) == (False, True)
    assert nightly.hour(changed=True) == f"repeat:{NAME}:{to_ms(nightly.clock.at)}"
    assert len(named(logs, "schedule_fired")) == 6
    # Five more, and it is told anew.
    for _ in range(6):
        nightly.hour()
    assert len(named(logs, "schedule_paused")) == 2


def test_a_schedule_that_changes_something_now_and_then_goes_on(nightly: Nightly) -> None:
    assert all(nightly.hour(changed=hour % 5 == 4) for hour in range(12))
    assert nightly.bench.store.paused_triggers() == {}


def test_runs_whose_change_cannot_be_read_say_nothing(nightly: Nightly) -> None:
    assert all(nightly.hour(changed=None) for _ in range(8))


def test_an_occurrence_of_a_paused_schedule_is_dealt_with_for_all_schedulers(nightly: Nightly, logs: Logs) -> None:
    for _ in range(5):
        nightly.hour()
    other = nightly.another()
    for first, second in ((nightly.scheduler, other), (other, nightly.scheduler), (other, nightly.scheduler)):
        nightly.clock.at += timedelta(hours=1)
        first()
        second()
    assert nightly.tickets == []
    # Each of the two says once that it is paused.
    assert len(named(logs, "schedule_paused")) == 2


def test_a_pause_that_was_taken_away_before_anybody_told_of_it_is_not_told(nightly: Nightly, logs: Logs) -> None:
    for _ in range(5):
        nightly.hour()
    nightly.bench.store.rearm(breaker=NAME)
    nightly.sweep()
    assert named(logs, "trigger_paused") == []


def test_with_the_bound_switched_off_nothing_is_paused(server: OwnServer, tmp_path: Path) -> None:
    bench = Bench(server, tmp_path, Settings.model_validate({"PI_BREAKER_RUNS": "0"}))
    bench.client.flushall()
    nightly = Nightly(bench)
    assert all(nightly.hour() for _ in range(12))
    bench.close()


@pytest.mark.example("ch8 F14", "a run that did nothing is in the record as one: completed, changed false")
def test_f14_a_green_run_that_did_nothing_is_told_from_one_that_did_something(nightly: Nightly) -> None:
    said = {}
    for changed in (True, False):
        job_id = nightly.hour(changed=changed)
        assert job_id is not None
        found = json.loads(nightly.bench.records.record_path(job_id).read_text())
        assert found["outcome"] == "completed"
        said[changed] = found["changed"]
    assert said == {True: True, False: False}


# Twenty jobs of one trigger that none of them can run.

JOBS = 20


def _engine_away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nothing.sock")


def _key_unset(_: pytest.MonkeyPatch, __: Path) -> None:
    pass


@pytest.mark.example("ch8 F6", "a dead engine, or a missing key: bounded, nothing leaks, distinct reasons, a pause")
@pytest.mark.parametrize(
    ("arrange", "reason", "attempts"),
    [(_engine_away, "container-never-started", 2), (_key_unset, "provider-unconfigured", 1)],
)
def test_f6_jobs_that_cannot_run_end_within_bounds_and_pause_their_trigger(
    bench: Bench,
    tmp_path: Path,
    logs: Logs,
    engine: docker.DockerClient,
    monkeypatch: pytest.MonkeyPatch,
    arrange: Callable[[pytest.MonkeyPatch, Path], None],
    reason: str,
    attempts: int,
) -> None:
    image = program_image(engine, tmp_path, "#!/bin/sh\nexit 0\n")
    folder = make_repository(tmp_path / "site").path
    arrange(monkeypatch, tmp_path)
    _attempt_for_real(bench, tmp_path, image)
    bench.client.set("pi:budget:2026-01-02", 3)
    before = {str(name) for name in bench.client.scan_iter("pi:*")}
    for number in range(JOBS):
        one = job_of(f"local-{number}", folder).model_copy(update={"breaker": NAME})
        assert bench.store.submit(one, queue=QUEUE).status == "submitted"
    sweeper, deliveries = Sweeper(bench.store, lambda _: None, bench.recorder), 0
    for number in range(JOBS):
        # Whoever is queued already runs, paused or not.
        while not bench.row(f"local-{number}").state.terminal:
            bench.deliver(f"local-{number}")
            deliveries += 1
        sweeper()
    assert deliveries == attempts * JOBS
    found = [bench.records.find(f"local-{number}") for number in range(JOBS)]
    assert {(one.reason, one.budget_reserved, str(one.charged)) for one in found if one} == {(reason, False, "{}")}
    assert {bench.row(f"local-{number}").state for number in range(JOBS)} <= {JobState.FAILED, JobState.COMPLETED}
    # Counters, leases, gates and the engine are as before.
    assert bench.client.get("pi:budget:2026-01-02") == "3"
    kept = {"pi:trigger", "pi:triggers", "pi:job", "pi:jobs:failed", "pi:queues"}
    left = {str(name) for name in bench.client.scan_iter("pi:*")} - before
    assert {name for name in left if not any(name == one or name.startswith(f"{one}:") for one in kept)} == {"pi:swept"}
    assert (bench.leases.all(), bench.door.inside, list(bench.client.scan_iter("pi:job:lock:*"))) == ([], [], [])
    assert engine.containers.list(all=True, filters={"ancestor": image}) == []
    [told] = named(logs, "trigger_paused")
    assert (told["trigger"], told["runs"], told["jobId"], told["reason"]) == (NAME, 5, "local-4", reason)
    again = job_of("local-99", folder).model_copy(update={"breaker": NAME})
    assert bench.store.submit(again, queue=QUEUE, heed_pause=True).status == "trigger-paused"
    engine.images.remove(image)


def _attempt_for_real(bench: Bench, folder: Path, image: str) -> None:
    """Let the next attempts be the product's, with no key of any provider."""
    settings = settings_of(
        {
            "PI_JOB_IMAGE": image,
            "PI_LOGS_DIR": str(folder / "logs"),
            "PI_STATE_DIR": str(folder / "s"),
            "PI_JOBS_DIR": str(folder / "jobs"),
            "PI_AUTH_FROM_PI": "0",
        }
    )
    cases = bench.cases
    bench.deliverer.attempt = Attempt(
        settings,
        Engine.connect,
        cases.finish,
        LIMITS,
        SystemClock(),
        {},
        marked=cases.marked,
        spend=cases.spend,
        book=cases.book,
        records=bench.records,
    )

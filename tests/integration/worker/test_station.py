"""Everything of a worker but Celery's own loop, with a real server and a real engine."""

import os
import secrets
import signal
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import docker
import pytest
from celery.worker import state as celery_state
from redis.exceptions import ConnectionError as Unreachable

from pidispatch.box.engine import Engine
from pidispatch.config.settings import Settings
from pidispatch.jobs.rows import Acquired, JobState
from pidispatch.jobs.store import JobStore
from pidispatch.runs.index import index_path
from pidispatch.runs.records import RecordStore
from pidispatch.server.address import Address
from pidispatch.server.client import connect
from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.values.limits import Limits
from pidispatch.values.reason import AbortReason
from pidispatch.worker import station as module
from pidispatch.worker.app import build_app
from pidispatch.worker.delivery import End
from pidispatch.worker.station import Station, station_of
from pidispatch.worker.ticker import Ticker
from pidispatch.workspace.locks import engine_lock
from tests.support.ends import job_of
from tests.support.server import OwnServer
from tests.unit.runs.history import record
from tests.unit.runs.indexed import rows_in

PASSWORD = "a-marked-password-of-24-characters"
LIMITS = Limits(sweep_rest_s=0)
Logs = list[dict[str, object]]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    """A server that asks for a password."""
    with OwnServer("valkey", tmp_path_factory.mktemp("guarded"), tcp=True, password=PASSWORD) as server:
        yield server


@pytest.fixture
def engine_id(monkeypatch: pytest.MonkeyPatch, engine: docker.DockerClient) -> Iterator[str]:
    """An id of this test's own, so that workers of other tests may serve the same engine."""
    own = f"t-{secrets.token_hex(8)}"
    facts = Engine.facts
    monkeypatch.setattr(Engine, "facts", lambda self: facts(self).model_copy(update={"id": own}))
    assert engine.ping()
    yield own
    # The lock of an engine that there never was.
    Path(f"/run/lock/pi-dispatch-{own}.lock").unlink(missing_ok=True)


class Place:
    """A deployment of a test's own."""

    def __init__(self, folder: Path, url: str | None) -> None:
        given = {
            "PI_STATE_DIR": str(folder / "s"),
            "PI_JOBS_DIR": str(folder / "jobs"),
            "PI_LOGS_DIR": str(folder / "logs"),
            "PI_KEY_PREFIX": f"t{secrets.token_hex(4)}:",
            "PI_WORKER_NAME": "build-1",
            "PI_MAX_TOKENS": "5000",
            "PI_MONTHLY_CAP": "400",
            **({"VALKEY_URL": url, "VALKEY_PASSWORD": PASSWORD} if url else {}),
        }
        self.settings = Settings.model_validate(given)
        self.app, _ = build_app(self.settings, LIMITS)
        self.station = Station(self.app, self.settings, LIMITS)

    def opened(self) -> Station:
        """Its station, which consumes nothing."""
        self.station.open()
        return self.station


@pytest.fixture
def place(guarded: OwnServer, tmp_path: Path, engine_id: str) -> Iterator[Place]:
    """On the server with the password."""
    place = Place(tmp_path, guarded.url)
    yield place
    if station_of(place.app) is not None:
        place.station.close()
    place.app.close()
    engine_lock(engine_id).release()


@pytest.fixture
def should_stop() -> Iterator[dict[str, Any]]:
    """What Celery's main thread is told."""
    yield vars(celery_state)
    vars(celery_state)["should_stop"] = None


def named(logs: Logs, event: str) -> list[dict[str, object]]:
    return [one for one in logs if one["event"] == event]


def test_from_its_opening_to_its_end(place: Place, engine_id: str, logs: Logs) -> None:
    assert station_of(place.app) is None
    station = place.opened()
    assert station_of(place.app) is station
    with pytest.raises(ConfigError) as caught:
        engine_lock(engine_id)
    assert caught.value.cause == "engine-taken"
    deployment = (place.settings.state_dir / "deployment").read_text().strip()
    assert station.store.open(deployment) == station.deployment == deployment
    station.ready()
    assert [(one.name, one.fields["slots"], one.fields["engine"]) for one in station.store.workers()] == [
        ("build-1", "3", engine_id)
    ]
    started = named(logs, "worker_started")[0]
    bounds = {name: started[name] for name in ("concurrency", "maxTurns", "maxTokens", "dailyCap", "egress")}
    assert bounds == {"concurrency": 3, "maxTurns": 30, "maxTokens": 5000, "dailyCap": 25, "egress": True}
    assert started["queue"] == ["pi-jobs", "pi-jobs@build-1"]
    [short] = named(logs, "retention_short")
    assert (short["days"], short["needed"]) == (30, 32)
    assert PASSWORD not in str(logs)
    station.close()
    assert station_of(place.app) is None
    with closing(connect(Address.of(place.settings))) as client:
        assert JobStore(client, place.settings.key_prefix, LIMITS).workers() == ()


def test_its_index_has_the_records_that_were_there_and_those_it_makes(place: Place) -> None:
    logs = place.settings.logs_dir
    RecordStore(logs).prepare()
    RecordStore(logs).write(record("old"))
    station = place.opened()
    assert [row["file"] for row in rows_in(index_path(place.settings.state_dir))["files"]] == ["old.json"]
    assert station.record(record("new")) is True
    rows = rows_in(index_path(place.settings.state_dir))
    assert [row["file"] for row in rows["files"]] == ["new.json", "old.json"]
    station.close()
    # What was open is one file again.
    assert sorted(path.name for path in place.settings.state_dir.glob("index.sqlite*")) == ["index.sqlite"]


@pytest.mark.parametrize(
    ("key", "value", "cause"), [("schema", "99", "schema-newer"), ("deployment", "f" * 16, "deployment-differs")]
)
def test_a_store_that_is_not_for_it_is_refused_and_nothing_is_held(
    key: str, value: str, cause: str, place: Place, engine_id: str
) -> None:
    place.settings.state_dir.mkdir(mode=0o700)
    (place.settings.state_dir / "deployment").write_text("0" * 16 + "\n")
    (place.settings.state_dir / "deployment").chmod(0o600)
    with closing(connect(Address.of(place.settings))) as client:
        client.mset({f"{place.settings.key_prefix}{key}": value, f"{place.settings.key_prefix}schema": "1"})
        client.set(f"{place.settings.key_prefix}{key}", value)
    with pytest.raises(ConfigError) as caught:
        place.station.open()
    assert (caught.value.exit_code, caught.value.cause) == (2, cause)
    assert station_of(place.app) is None
    engine_lock(engine_id).release()


def test_a_waiting_job_is_cancelled_with_a_record_and_a_running_one_goes_on(place: Place, logs: Logs) -> None:
    station = place.opened()
    for job_id in ("local-1", "local-2"):
        station.store.submit(job_of(job_id), queue="pi-jobs")
    assert isinstance(station.store.acquire("local-2", 0, "other#engine#1"), Acquired)
    for job_id in ("local-1", "local-1", "local-2", "local-9"):
        station.orders.cancel_waiting(job_id)
    states = {one: row.state for one in ("local-1", "local-2") if (row := station.store.row(one)) is not None}
    assert states == {"local-1": JobState.CANCELLED, "local-2": JobState.ACTIVE}
    assert station.store.cancel_requested(["local-2"]) == set()
    assert [one["jobId"] for one in named(logs, "job_cancelled")] == ["local-1"]
    assert (place.settings.logs_dir / "local-1.json").is_file()


def test_a_row_that_cannot_be_read_is_cancelled_by_nobody(place: Place, logs: Logs) -> None:
    station = place.opened()
    station.store.submit(job_of("local-1"), queue="pi-jobs")
    station.server.client.hset(f"{place.settings.key_prefix}job:local-1", "data", "{}")
    station.orders.cancel_waiting("local-1")
    assert [one["cause"] for one in named(logs, "revoke_unstored")] == ["row-unreadable"]


def test_told_to_stop_it_begins_nothing_more_and_ends_what_runs(place: Place) -> None:
    station = place.opened()
    station.store.submit(job_of("local-1"), queue="pi-jobs")
    acquired = station.store.acquire("local-1", 0, "build-1#engine#1")
    assert isinstance(acquired, Acquired)
    with station.leases.hold(acquired.lease) as held:
        station.stop_running()
        assert held.abort.reason is AbortReason.SHUTDOWN
    assert station.deliver("local-1", 0).end is End.GIVEN_BACK


def test_it_sends_itself_a_tick(place: Place) -> None:
    station = place.opened()
    station._send_tick()
    assert station.server.client.llen(f"{place.settings.key_prefix}pi-jobs@build-1") == 1


def test_what_ends_it_tells_celery_the_exit_code(place: Place, should_stop: dict[str, Any], logs: Logs) -> None:
    station = place.opened()
    station._give_up()
    assert should_stop["should_stop"] == 1
    station._taken(ConfigError("another worker serves it", "engine-taken"))
    assert should_stop["should_stop"] == 2
    assert [one["cause"] for one in named(logs, "engine_taken")] == ["engine-taken"]


def test_a_server_that_is_away_ends_nothing_of_it(place: Place, guarded: OwnServer, logs: Logs) -> None:
    station = place.opened()
    assert station._answers() is True
    guarded.stop()
    try:
        assert station._answers() is False
        station.ready()
        station.orders.cancel_waiting("local-1")
        with pytest.raises(InfraError):
            station._send_tick()
        station.close()
    finally:
        guarded.start()
    assert (len(named(logs, "beat_failed")), len(named(logs, "revoke_unstored"))) == (1, 1)
    assert station_of(place.app) is None


def test_a_ticket_lies_in_its_queue_under_the_prefix(place: Place) -> None:
    station = place.opened()
    ticket = station.store.submit(job_of("local-1"), queue="pi-jobs").ticket
    assert ticket is not None
    station.publish(ticket)
    assert station.server.client.llen(f"{place.settings.key_prefix}pi-jobs") == 1


def test_our_own_server_is_started_begun_anew_and_ended(engine_id: str, logs: Logs) -> None:
    # Short, because the path of a unix socket is bounded.
    with tempfile.TemporaryDirectory(prefix="pi-s-", dir="/tmp") as folder:
        place = Place(Path(folder), None)
        station = place.opened()
        assert (station.server.embedded, station._answers()) == (True, True)
        os.kill(station.server.facts.pid, signal.SIGKILL)

        def act() -> NoReturn:
            raise InfraError("away", "store-unreachable")

        with pytest.raises(InfraError):
            station._ensuring(act)()
        assert station._answers() is True
        assert len(named(logs, "server_started")) == 2
        socket = place.settings.state_dir / "server" / "valkey.sock"
        station.close()
        with closing(connect(Address(scheme="unix", socket=socket))) as client, pytest.raises(Unreachable):
            client.ping()
        place.app.close()
    engine_lock(engine_id).release()


def test_its_threads_are_those_that_keep_its_promises(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[str] = []

    class Noted(Ticker):
        def start(self) -> None:
            began.append(self._name)

    monkeypatch.setattr(module, "Ticker", Noted)
    place.opened()
    assert began == ["renew", "watch", "sweep", "tick", "pauses", "beat", "comments", "retention"]


def test_a_worker_whose_own_queue_is_paused_expects_to_hear_nothing(place: Place, logs: Logs) -> None:
    station = place.opened()
    assert station._listens()
    station.store.pause(["pi-jobs@another", "pi-jobs"])
    station.pauses.look()
    assert station._listens()
    station.store.pause(["pi-jobs@build-1"])
    station.pauses.look()
    assert not station._listens()
    assert [one["queues"] for one in named(logs, "queues_paused")] == [["pi-jobs"], ["pi-jobs@build-1"]]


def test_a_pause_that_stood_before_holds_from_the_first_moment(place: Place) -> None:
    JobStore(connect(Address.of(place.settings)), place.settings.key_prefix, LIMITS).pause(["*"])
    station = place.opened()
    assert station.pauses.holds("pi-jobs")
    assert not station._listens()

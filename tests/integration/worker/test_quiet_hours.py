"""Quiet hours in a worker: a real server, a real file and its watcher, and no engine: to wait a job needs none."""

import io
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pidispatch.cli.snapshot import Snapshot, as_document
from pidispatch.cli.status_view import rendered
from pidispatch.config.clock import SystemClock
from pidispatch.config.settings import Settings
from pidispatch.gates.folder import FolderMutex
from pidispatch.gates.host import HostSlots
from pidispatch.gates.pause import PauseWindows
from pidispatch.jobs.rows import JobState
from pidispatch.server.client import check_server
from pidispatch.values.errors import ConfigError
from pidispatch.values.limits import Limits
from pidispatch.worker.app import build_app
from pidispatch.worker.station import Station, station_of
from tests.support.ends import job_of
from tests.support.heard import Heard, listening
from tests.support.server import OwnServer

LIMITS = Limits(edit_debounce_ms=5, file_look_s=3600)


def hours(before: int, after: int) -> str:
    """A file whose one window lasts from so many hours before now till so many after."""
    now = SystemClock().now()
    begin, end = now - timedelta(hours=before), now + timedelta(hours=after)
    return json.dumps({"windows": [{"scope": "*", "from": f"{begin:%H:%M}", "to": f"{end:%H:%M}"}]})


class Place:
    """A worker that consumes nothing, with a file of quiet hours."""

    def __init__(self, folder: Path, server: OwnServer, *, armed: bool = True) -> None:
        self.file = folder / "pause-windows.json"
        self.state = folder / "state"
        given = {
            "PI_STATE_DIR": str(self.state),
            "PI_JOBS_DIR": str(folder / "jobs"),
            "PI_LOGS_DIR": str(folder / "logs"),
            "PI_WORKER_NAME": "build-1",
            "VALKEY_URL": server.url,
            **({"PI_PAUSE_WINDOWS_FILE": str(self.file)} if armed else {}),
        }
        settings = Settings.model_validate(given)
        self.app, _ = build_app(settings, LIMITS)
        self.station = Station(self.app, settings, LIMITS)

    def save(self, text: str) -> None:
        """Edit the file as most editors do."""
        new = self.file.with_name("new")
        new.write_text(text)
        new.replace(self.file)

    def deliver(self, job_id: str) -> tuple[JobState, str | None]:
        """Hand a job in and deliver its ticket; where it stands then, and why."""
        self.station.store.submit(job_of(job_id), queue="pi-jobs")
        self.station.deliver(job_id, 0)
        row = self.station.store.row(job_id)
        assert row is not None
        held = {job.job_id: job.why for job in self.station.store.overview(9).held}
        return row.state, held.get(job_id)

    def status(self) -> tuple[dict[str, Any], str]:
        """What `pi-dispatch status` prints, as JSON and for a person."""
        store, server = self.station.store, self.station.server
        facts = check_server(server.client, server.address)
        seen = Snapshot("here", facts, store.overview(9), store.workers())
        out = io.StringIO()
        console = Console(file=out)
        console.print(rendered(seen, console))
        return as_document(seen), out.getvalue()


@pytest.fixture
def heard() -> Iterator[Heard]:
    with listening() as heard:
        yield heard


@pytest.fixture
def place(server: OwnServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    place = Place(tmp_path, server)
    yield place
    if station_of(place.app) is not None:
        place.station.server.client.flushall()
        place.station.close()
    place.app.close()


def files_told(place: Place) -> list[str]:
    """The files of which the worker says that it refused an edit."""
    [worker] = place.status()[0]["workers"]
    found: list[str] = worker["files"]
    return found


@pytest.mark.example(
    "ch8 F11", "an edit of the quiet hours that cannot be used leaves the old ones in force, and says so"
)
def test_a_file_that_is_broken_live_leaves_the_old_set_in_force_and_status_says_so(place: Place, heard: Heard) -> None:
    place.save(hours(1, 1))
    place.station.open()
    told = threading.Event()
    place.station.files._files[0].on_edit.append(told.set)
    heard.wait("pause_windows_watching")
    place.station.beat()
    assert files_told(place) == []
    assert place.deliver("local-1") == (JobState.DEFERRED, "quiet-hours")

    place.save('{"windows": [{"scope": "*"}]}')
    assert told.wait(20)
    assert 'window at index 0, field "from": is missing' in heard.wait("pause_windows_reload_invalid")["reason"]
    assert place.deliver("local-2") == (JobState.DEFERRED, "quiet-hours")
    assert files_told(place) == ["pause_windows"]
    assert "worker build-1 refuses the last edit of its pause-windows file" in place.status()[1]

    told.clear()
    place.save(hours(3, -2))
    assert told.wait(20)
    assert heard.wait("pause_windows_reloaded")["count"] == 1
    assert files_told(place) == []
    # Let in now, and refused by the ladder, as its folder is not there.
    assert place.deliver("local-3") == (JobState.COMPLETED, None)


@pytest.mark.parametrize("text", [None, "{", '{"windows": [{"scope": "*"}]}'], ids=["missing", "broken", "invalid"])
def test_a_worker_does_not_start_on_a_file_that_it_cannot_use(place: Place, text: str | None) -> None:
    if text is not None:
        place.save(text)
    with pytest.raises(ConfigError) as caught:
        place.station.open()
    assert (caught.value.cause, caught.value.exit_code) == ("operator-file", 2)
    assert str(place.file) in caught.value.message
    # Before anything was begun.
    assert station_of(place.app) is None
    assert not place.state.exists()


def test_the_gate_is_the_first_and_without_a_file_there_is_none(
    place: Place, server: OwnServer, tmp_path: Path
) -> None:
    place.save('{"windows": []}')
    place.station.open()
    assert [type(gate) for gate in gates(place)] == [PauseWindows, HostSlots, FolderMutex]
    place.station.close()
    other = Place(tmp_path, server, armed=False)
    before = set(threading.enumerate())
    other.station.open()
    assert [type(gate) for gate in gates(other)] == [HostSlots, FolderMutex]
    assert not any(thread.name.startswith("pi-watch-") for thread in set(threading.enumerate()) - before)
    other.station.close()
    other.app.close()


def gates(place: Place) -> tuple[object, ...]:
    return tuple(place.station.deliver._gates._gates)


def test_it_watches_no_more_once_it_has_ended(place: Place, heard: Heard) -> None:
    place.save('{"windows": []}')
    place.station.open()
    heard.wait("pause_windows_watching")
    place.station.close()
    assert not any(thread.name.startswith("pi-watch-pause") for thread in threading.enumerate())


def test_an_edit_while_the_server_is_away_ends_nothing(place: Place, server: OwnServer, heard: Heard) -> None:
    place.save('{"windows": []}')
    place.station.open()
    heard.wait("pause_windows_watching")
    server.stop()
    try:
        place.save("{")
        assert heard.wait("beat_failed")["cause"]
        assert place.station.files.faulty() == ["pause_windows"]
    finally:
        server.start()
    place.station.close()

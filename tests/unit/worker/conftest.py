"""The application of a worker as it is made, without a server: nothing here connects to one."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery

from pidispatch.config.settings import Settings
from pidispatch.values.record import RunRecord
from pidispatch.worker.app import build_app
from pidispatch.worker.delivery import Delivery, End
from pidispatch.worker.held import Held
from pidispatch.worker.lifecycle import Lifecycle


@dataclass
class FakeStation:
    """A station, as far as tasks, signals and control commands see it."""

    #: What the next ticket comes to.
    delivery: Delivery = field(default_factory=lambda: Delivery("local-1", End.RETURNED))
    taken: list[tuple[str, int]] = field(default_factory=list)
    recorded: list[RunRecord] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    held: dict[str, Held] = field(default_factory=dict)
    ticks: int = 0
    ended: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Everything that it is asked for by name."""
        self.liveness = SimpleNamespace(heard=self._heard)
        self.leases = self.held
        self.record = SimpleNamespace(ended=lambda record, *_: self.recorded.append(record))
        self.orders = SimpleNamespace(cancel_waiting=self.cancelled.append, end_running=self.ended.append)

    def deliver(self, job_id: str, gen: int) -> Delivery:
        """Take note of the ticket."""
        self.taken.append((job_id, gen))
        return self.delivery

    def _heard(self) -> None:
        self.ticks += 1


@dataclass
class Application:
    """The application and the life of its process."""

    app: Celery
    lifecycle: Lifecycle
    settings: Settings
    station: FakeStation

    def task(self, name: str) -> Any:
        """One of its tasks."""
        return self.app.tasks[name]


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    """One with a station that only notes what it is told."""
    settings = Settings.model_validate(
        {
            "PI_STATE_DIR": str(tmp_path / "state"),
            "PI_LOGS_DIR": str(tmp_path / "logs"),
            "PI_WORKER_NAME": "build-1",
            # Nothing listens there, and nothing is asked.
            "VALKEY_URL": "redis://127.0.0.1:1/0",
        }
    )
    app, lifecycle = build_app(settings)
    station = FakeStation()
    vars(app)["pi_station"] = station
    yield Application(app, lifecycle, settings, station)
    vars(app).pop("pi_station", None)
    app.close()

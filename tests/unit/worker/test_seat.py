"""The place at the engine: taken once, cleared once, given up at the end, and never shared."""

import os
import secrets
from pathlib import Path
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from pidispatch.box.engine import Engine
from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.worker.owner import Owner
from pidispatch.worker.seat import Seat
from pidispatch.workspace.locks import engine_lock


class Facts:
    def __init__(self, engine_id: str) -> None:
        self.id = engine_id


class OneEngine:
    """An engine, as far as its seat needs it; it can be away, or fail while it is cleared."""

    def __init__(self) -> None:
        self.id = secrets.token_hex(8)
        self.away = self.unclear = False
        #: Times that something is left there.
        self.resists = 0
        self.connected = self.cleared = self.closed = 0
        self.refusals: list[ConfigError] = []

    def connect(self) -> Engine:
        if self.away:
            raise InfraError("nobody answers", "container-never-started")
        self.connected += 1
        return cast(Engine, self)

    def facts(self) -> Any:
        return Facts(self.id)

    def close(self) -> None:
        self.closed += 1

    def clear(self, _: Engine) -> bool:
        if self.unclear:
            raise InfraError("it does not list them", "container-never-started")
        self.cleared += 1
        return self.cleared > self.resists

    def seat(self) -> Seat:
        return Seat(self.connect, self.clear, self.refusals.append)


@pytest.fixture
def one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> OneEngine:
    monkeypatch.setattr("pidispatch.workspace.locks._engine_folders", lambda: (tmp_path,))
    return OneEngine()


def test_what_resists_is_cleared_again_before_the_next_job(one: OneEngine) -> None:
    one.resists = 2
    seat = one.seat()
    seat.sit_down()
    for _ in range(4):
        seat.engine()
    assert one.cleared == 3


def test_it_is_connected_locked_and_cleared_once(one: OneEngine) -> None:
    seat = one.seat()
    assert seat.engine_id == ""
    seat.sit_down()
    assert seat.engine() is seat.engine()
    assert (one.connected, one.cleared, seat.engine_id) == (1, 1, one.id)
    with pytest.raises(ConfigError) as caught:
        engine_lock(one.id)
    assert caught.value.cause == "engine-taken"
    seat.leave()
    seat.leave()
    assert one.closed == 1
    engine_lock(one.id).release()


def test_an_engine_that_is_away_at_the_start_is_cleared_before_its_first_use(one: OneEngine) -> None:
    seat = one.seat()
    one.away = True
    with capture_logs() as logs:
        seat.sit_down()
    assert logs == [{"event": "reaper_skipped", "log_level": "warning", "cause": "container-never-started"}]
    with pytest.raises(InfraError):
        seat.engine()
    one.away = False
    seat.engine()
    assert (one.connected, one.cleared) == (1, 1)
    seat.leave()


def test_an_engine_that_could_not_be_cleared_is_not_used(one: OneEngine) -> None:
    seat = one.seat()
    one.unclear = True
    seat.sit_down()
    with pytest.raises(InfraError):
        seat.engine()
    one.unclear = False
    seat.engine()
    assert one.cleared == 1
    seat.leave()


def test_one_that_another_worker_has_is_refused_by_the_name_of_the_lock(one: OneEngine, tmp_path: Path) -> None:
    first, second = one.seat(), one.seat()
    first.sit_down()
    with pytest.raises(ConfigError, match="another worker serves this container engine: it holds ") as caught:
        second.sit_down()
    assert os.fspath(tmp_path / f"pi-dispatch-{one.id}.lock") in caught.value.message
    assert (one.cleared, one.refusals) == (1, [])
    second.leave()
    first.leave()


def test_one_that_another_worker_took_meanwhile_ends_this_worker_and_fails_the_job(one: OneEngine) -> None:
    late, first = one.seat(), one.seat()
    one.away = True
    late.sit_down()
    one.away = False
    first.sit_down()
    with pytest.raises(InfraError) as caught:
        late.engine()
    assert (caught.value.cause, [error.cause for error in one.refusals]) == ("engine-taken", ["engine-taken"])
    assert one.cleared == 1
    late.leave()
    first.leave()


def test_an_owner_is_new_for_every_delivery_and_names_worker_and_engine(one: OneEngine) -> None:
    seat = one.seat()
    owner = Owner("build-1", seat)
    assert owner().startswith("build-1##")
    seat.sit_down()
    names = {owner(), owner()}
    assert len(names) == 2
    assert all(name.startswith(f"build-1#{one.id}#") for name in names)
    seat.leave()

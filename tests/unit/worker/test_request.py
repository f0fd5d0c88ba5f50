"""What `terminate` and `revoke` mean here, as Flower and `celery control` send them."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from celery.worker import state as worker_state
from celery.worker.control import Panel

from pidispatch.jobs.rows import Lease
from pidispatch.worker.control import override_revoke
from pidispatch.worker.held import Held
from pidispatch.worker.request import JobRequest
from tests.unit.worker.conftest import Application


def held(job_id: str = "local-1") -> Held:
    return Held(Lease(job_id=job_id, owner="w#e#n", gen=0, attempt=1))


def request(app: Any, job_id: str = "local-1") -> JobRequest:
    # Without the message that the consumer made it of.
    made: Any = JobRequest.__new__(JobRequest)
    made._app, made.id = app, job_id
    return cast(JobRequest, made)


def test_terminate_is_the_stations_to_carry_out(application: Application) -> None:
    request(application.app).terminate(pool=None, signal="TERM")
    assert application.station.ended == ["local-1"]


def test_a_job_that_a_worker_leaves_behind_is_ended_by_its_own_way_out(application: Application) -> None:
    request(application.app).cancel(pool=None)
    assert application.station.ended == []


def test_without_a_station_there_is_nothing_to_end(application: Application) -> None:
    vars(application.app)["pi_station"] = None
    request(application.app).terminate(pool=None)
    request(None).terminate(pool=None)
    assert application.station.ended == []


@pytest.fixture
def panel(application: Application, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(worker_state, "revoked", type(worker_state.revoked)())
    return SimpleNamespace(app=application.app, consumer=None)


@pytest.mark.parametrize(
    ("ids", "cancelled"), [("local-1", ["local-1"]), (["local-1", "local-2"], ["local-1", "local-2"]), ([], [])]
)
def test_revoke_is_heard_by_the_store_and_by_celery(
    application: Application, panel: Any, ids: Any, cancelled: list[str]
) -> None:
    answer = Panel.data["revoke"](panel, ids)
    assert application.station.cancelled == cancelled
    assert sorted(worker_state.revoked) == cancelled
    assert "revoked" in str(answer) or "ok" in str(answer)


def test_revoke_with_terminate_ends_what_runs_though_celery_has_forgotten_it(
    application: Application, panel: Any
) -> None:
    Panel.data["revoke"](panel, ["local-1"], terminate=True)
    assert (application.station.cancelled, application.station.ended) == (["local-1"], ["local-1"])


def test_revoke_without_a_station_is_celerys_own(application: Application, panel: Any) -> None:
    vars(application.app)["pi_station"] = None
    Panel.data["revoke"](panel, "local-1")
    assert sorted(worker_state.revoked) == ["local-1"]


def test_it_is_put_in_place_once() -> None:
    before = Panel.data["revoke"]
    override_revoke()
    assert Panel.data["revoke"] is before

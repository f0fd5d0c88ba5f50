"""What a ticket's task does with each end of its delivery, and what the signals of its end set going."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery.exceptions import Reject, Retry
from celery.signals import task_failure, task_postrun, task_retry, task_revoked, task_success

from pidispatch.jobs.producer import GEN, TASK
from pidispatch.values.outcome import Completed, InfraFailed
from pidispatch.values.reason import Reason
from pidispatch.worker.current import deliveries
from pidispatch.worker.delivery import Delivery, End
from pidispatch.worker.task import JobFailed
from pidispatch.worker.tick import TICK
from tests.support.ends import record_of
from tests.unit.worker.conftest import Application

SHOWN = "(local-1, local site tidy)"
DONE = record_of("local-1", Completed())
FAILED = record_of("local-1", InfraFailed(reason=Reason.INFRA, cause="exit-1"))


@contextmanager
def requested(task: Any, **request: Any) -> Iterator[None]:
    """As Celery calls it, for one ticket."""
    task.push_request(id="local-1", called_directly=False, **request)
    try:
        yield
    finally:
        task.pop_request()
        deliveries.close()


def run(application: Application, headers: dict[str, str] | None = None) -> Any:
    task = application.task(TASK)
    shown = {"argsrepr": SHOWN, "delivery_info": {"routing_key": "pi-jobs@build-1"}}
    with requested(task, headers=headers, **shown):
        return task.run("local-1")


@pytest.mark.parametrize(
    ("headers", "gen"),
    [({GEN: "3"}, 3), ({GEN: "-1"}, -1), ({GEN: "x"}, -1), ({}, -1), (None, -1)],
)
def test_a_ticket_is_delivered_with_its_generation(
    application: Application, headers: dict[str, str] | None, gen: int
) -> None:
    application.station.delivery = Delivery("local-1", End.RETURNED, DONE)
    assert run(application, headers) == "completed"
    assert application.station.taken == [("local-1", gen)]


def test_a_ticket_without_a_say_ends_well(application: Application) -> None:
    application.station.delivery = Delivery("local-1", End.IGNORED)
    assert run(application) == "ignored"


def test_the_last_failed_attempt_fails_the_task_in_fixed_words(application: Application) -> None:
    application.station.delivery = Delivery("local-1", End.FAILED, FAILED)
    with pytest.raises(JobFailed, match=r"^failed infra$"):
        run(application)


def test_a_ticket_of_a_worker_that_stops_goes_back(application: Application) -> None:
    application.station.delivery = Delivery("local-1", End.GIVEN_BACK)
    with pytest.raises(Reject) as caught:
        run(application)
    assert vars(caught.value)["requeue"] is True


def retried(application: Application, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What Celery's retry is asked for."""
    asked: dict[str, Any] = {}

    def retry(**options: Any) -> Exception:
        asked.update(options)
        return Retry()

    monkeypatch.setattr(application.task(TASK), "retry", retry)
    with pytest.raises(Retry):
        run(application)
    return asked


def test_the_next_ticket_has_its_generation_instant_queue_and_a_safe_label(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    application.station.delivery = Delivery(
        "local-1", End.AGAIN, gen=4, delay_ms=60_000, queue="pi-jobs@build-1", label="local site tidy"
    )
    before = datetime.now(UTC)
    asked = retried(application, monkeypatch)
    # However often it was put off before.
    assert application.task(TASK).max_retries is None
    assert timedelta(seconds=59) < asked.pop("eta") - before < timedelta(seconds=90)
    assert asked.pop("queue").name == "pi-jobs@build-1"
    assert asked == {
        "headers": {GEN: "4"},
        "argsrepr": SHOWN,
        "kwargsrepr": "{}",
    }


def test_a_ticket_that_nobody_could_look_at_comes_again_as_it_was(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    application.station.delivery = Delivery("local-1", End.UNDECIDED, gen=2, delay_ms=3000)
    asked = retried(application, monkeypatch)
    assert asked.pop("queue").name == "pi-jobs@build-1"
    assert asked == {
        "countdown": 3.0,
        "headers": {GEN: "2"},
        "argsrepr": SHOWN,
        "kwargsrepr": "{}",
    }


def test_a_tick_is_heard(application: Application) -> None:
    application.task(TICK).run()
    assert application.station.ticks == 1
    assert application.task(TICK).send_events is False


def _success(task: Any) -> None:
    task_success.send(sender=task, result="completed")


def _retry(task: Any) -> None:
    task_retry.send(sender=task, request=task.request, reason=Retry(), einfo=None)


def _failure(task: Any) -> None:
    task_failure.send(sender=task, task_id=task.request.id, exception=JobFailed())


@pytest.mark.parametrize("ended", [_success, _retry, _failure])
def test_the_record_is_written_before_anything_is_given_back(
    application: Application, ended: Callable[[Any], None]
) -> None:
    released: list[int] = []
    task = application.task(TASK)
    delivery = Delivery("local-1", End.RETURNED, DONE, release=lambda: released.append(len(told)))
    told = application.station.recorded
    with requested(task):
        deliveries.open(delivery)
        ended(task)
        assert (told, released) == ([DONE], [])
        task_postrun.send(sender=task, task_id="local-1", task=task)
        task_postrun.send(sender=task, task_id="local-1", task=task)
    assert released == [1]


@pytest.mark.parametrize("ended", [_success, _retry, _failure])
def test_a_delivery_without_a_record_writes_none(application: Application, ended: Callable[[Any], None]) -> None:
    task = application.task(TASK)
    with requested(task):
        ended(task)
        deliveries.open(Delivery("local-1", End.AGAIN))
        ended(task)
    with requested(task):
        # The thread is at another job's.
        deliveries.open(Delivery("local-2", End.RETURNED, record_of("local-2", Completed())))
        ended(task)
    assert application.station.recorded == []


def test_a_ticket_that_celery_dropped_as_revoked_cancels_its_job(application: Application) -> None:
    task = application.task(TASK)
    with requested(task):
        task_revoked.send(sender=task, request=task.request, terminated=False, signum=None, expired=False)
        task_revoked.send(sender=task, request=None, terminated=False, signum=None, expired=False)
    assert application.station.cancelled == ["local-1"]


def test_tasks_of_another_application_are_none_of_ours(application: Application) -> None:
    other = type("Other", (), {"app": None, "request": type("Request", (), {"id": "local-1"})})()
    deliveries.open(Delivery("local-1", End.RETURNED, DONE))
    for sender in (other, None):
        task_success.send(sender=sender)
        task_retry.send(sender=sender, request=other.request)
        task_failure.send(sender=sender, task_id="local-1")
        task_revoked.send(sender=sender, request=other.request)
        task_postrun.send(sender=sender)
    assert deliveries.close() is not None
    assert (application.station.recorded, application.station.cancelled) == ([], [])


def test_after_its_end_the_worker_writes_nothing(application: Application) -> None:
    vars(application.app)["pi_station"] = None
    task = application.task(TASK)
    with requested(task):
        deliveries.open(Delivery("local-1", End.RETURNED, DONE))
        _success(task)
        task_revoked.send(sender=task, request=task.request)
    assert application.station.recorded == []

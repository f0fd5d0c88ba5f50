"""What a ticket carries, and how the whole Celery configuration comes together."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from pidispatch.config.settings import Settings
from pidispatch.jobs.celery_defaults import DEFAULTS, FIXED
from pidispatch.jobs.producer import configuration, own_queue, producer, publish, queue, safe_representation
from pidispatch.jobs.rows import Ticket
from pidispatch.server.address import Address
from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.values.limits import Limits

TICKET = Ticket(job_id="local-1", gen=3, queue="pi-jobs@build-1", label="local site tidy\x1b")
NOWHERE = "redis://127.0.0.1:1/0"


def settings(folder: Path, **more: str) -> Settings:
    return Settings.model_validate({"PI_STATE_DIR": str(folder), "PI_WORKER_NAME": "build-1", **more})


def made(folder: Path, url: str = NOWHERE, **more: str) -> dict[str, Any]:
    own = settings(folder, VALKEY_URL=url, **more)
    return configuration(own, Address.of(own), Limits())


def test_everything_that_is_fixed_is_in_force_whatever_the_file_says(tmp_path: Path) -> None:
    (tmp_path / "celeryconfig.py").write_text("worker_send_task_events = False\ntask_acks_late = True\n")
    found = made(tmp_path)
    ours = {"broker_url", "task_queues", "worker_concurrency"}
    assert {name: found[name] for name in FIXED if name not in ours} == {
        name: value for name, value in FIXED.items() if name not in ours
    }
    assert found["broker_url"] == NOWHERE
    assert {name: found[name] for name in DEFAULTS} == {**DEFAULTS, "worker_send_task_events": False}


def test_options_of_the_connection_are_merged_key_by_key(tmp_path: Path) -> None:
    (tmp_path / "celeryconfig.py").write_text('broker_transport_options = {"socket_connect_timeout": 9, "x": 1}\n')
    options = made(tmp_path, PI_KEY_PREFIX="mine:")["broker_transport_options"]
    assert options == {
        "global_keyprefix": "mine:",
        "visibility_timeout": 120.0,
        "unacked_restore_interval": 10,
        "unacked_restore_throttle": 1,
        "unacked_mutex_expire": 30,
        "socket_keepalive": True,
        "health_check_interval": 30,
        "socket_connect_timeout": 9,
        "socket_timeout": 30.0,
        "x": 1,
    }


def test_a_sentinel_is_told_which_server(tmp_path: Path) -> None:
    found = made(tmp_path, "sentinel://127.0.0.1:1,127.0.0.1:2/0?master=queue")
    assert found["broker_transport_options"]["master_name"] == "queue"


@pytest.mark.parametrize(("jobs", "threads"), [("3", 12), ("10", 12), ("40", 42)])
def test_the_pool_is_larger_than_the_machine_has_slots(jobs: str, threads: int, tmp_path: Path) -> None:
    assert made(tmp_path, PI_CONCURRENCY=jobs)["worker_concurrency"] == threads


def test_a_worker_takes_from_the_shared_queue_and_from_its_own(tmp_path: Path) -> None:
    assert [one.name for one in made(tmp_path)["task_queues"]] == ["pi-jobs", "pi-jobs@build-1"]
    assert own_queue(settings(tmp_path)) == "pi-jobs@build-1"


def test_a_variable_of_celerys_is_refused_for_whoever_submits_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELERY_BROKER_URL", "redis://elsewhere/0")
    with pytest.raises(ConfigError, match=r"^CELERY_BROKER_URL cannot be set"):
        made(tmp_path)


def in_memory(folder: Path) -> Celery:
    """An application whose tickets stay in this process."""
    own = settings(folder)
    app = producer(own, Address.of(own))
    app.conf.update(broker_url="memory://")
    return app


def test_a_ticket_carries_an_id_a_generation_and_a_safe_label_alone(tmp_path: Path) -> None:
    app = in_memory(tmp_path)
    eta = datetime(2030, 1, 1, tzinfo=UTC)
    publish(app, TICKET, eta)
    with app.connection_for_read() as connection, connection.SimpleQueue(queue("pi-jobs@build-1")) as waiting:
        message = waiting.get(block=False)
        message.ack()
    args, kwargs, _ = json.loads(message.body or "")
    assert (args, kwargs) == (["local-1"], {})
    told = {name: message.headers[name] for name in ("task", "id", "gen", "argsrepr", "kwargsrepr", "eta")}
    assert told == {
        "task": "pidispatch.job",
        "id": "local-1",
        "gen": "3",
        "argsrepr": r"(local-1, local site tidy\u{001B})",
        "kwargsrepr": "{}",
        "eta": eta.isoformat(),
    }
    app.close()


def test_a_ticket_that_cannot_be_published_leaves_an_accepted_job(tmp_path: Path) -> None:
    own = settings(tmp_path, VALKEY_URL=NOWHERE)
    app = producer(own, Address.of(own))
    with pytest.raises(InfraError, match=r"^the job is accepted and its ticket could not be published \(") as caught:
        publish(app, TICKET)
    assert caught.value.cause == "ticket-unpublished"
    app.close()


def test_a_representation_is_one_line() -> None:
    assert safe_representation("local-1", "a\nb") == {"argsrepr": r"(local-1, a\u{000A}b)", "kwargsrepr": "{}"}

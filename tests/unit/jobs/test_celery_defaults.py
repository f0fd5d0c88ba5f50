"""An operator's own Celery settings: found by path alone, merged where nothing hangs on them, refused by name else."""

from pathlib import Path
from typing import Any

import pytest
from celery.app.defaults import SETTING_KEYS

from pidispatch.jobs.celery_defaults import DEFAULTS, FIXED, operator_settings, refuse_environment, transport_options
from pidispatch.values.errors import ConfigError
from pidispatch.values.limits import Limits

#: For every fixed setting a value that somebody might want.
OTHERS = {
    "task_acks_late": False,
    "task_acks_on_failure_or_timeout": False,
    "task_reject_on_worker_lost": True,
    "worker_prefetch_multiplier": 4,
    "worker_disable_prefetch": False,
    "worker_pool": "prefork",
    "task_ignore_result": False,
    "result_backend": "redis://127.0.0.1/1",
    "worker_cancel_long_running_tasks_on_connection_loss": True,
    "task_serializer": "pickle",
    "accept_content": ["json", "pickle"],
    "timezone": "Europe/Berlin",
    "enable_utc": False,
    "task_default_queue": "celery",
    "task_create_missing_queues": True,
    "task_always_eager": True,
    "broker_connection_retry": False,
    "broker_connection_retry_on_startup": False,
    "broker_connection_max_retries": 5,
    "broker_url": "redis://127.0.0.1/1",
    "broker_read_url": "redis://127.0.0.1/1",
    "broker_write_url": "redis://127.0.0.1/1",
    "broker_use_ssl": True,
    "broker_transport": "memory",
    "broker_host": "h",
    "broker_port": 1,
    "broker_user": "u",
    "broker_password": "p",
    "broker_vhost": "1",
    "task_queues": [],
    "task_routes": {},
    "worker_concurrency": 4,
    "task_protocol": 1,
    "task_annotations": {"*": {"acks_late": False}},
    "task_default_priority": 3,
    "task_queue_max_priority": 9,
    "imports": ("mine",),
    "include": ("mine",),
    "worker_consumer": "mine:Consumer",
    "task_time_limit": 60,
    "task_soft_time_limit": 60,
    "worker_eta_task_limit": 10,
}
OPTIONS = {"visibility_timeout": 43200, "unacked_key": "mine", "global_keyprefix": "other:", "master_name": "m"}


def read(folder: Path, text: str) -> dict[str, Any]:
    path = folder / "celeryconfig.py"
    path.write_text(text)
    return operator_settings(path, folder / "state")


def refused(folder: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(folder, text)
    assert (caught.value.exit_code, caught.value.cause) == (2, "celery-config")
    assert caught.value.message.startswith(str(folder / "celeryconfig.py"))
    return caught.value.message


def test_every_setting_that_is_named_is_one_of_celerys() -> None:
    assert set(FIXED) | set(DEFAULTS) <= set(SETTING_KEYS)
    assert not set(FIXED) & set(DEFAULTS)
    assert set(OTHERS) == set(FIXED)


@pytest.mark.parametrize("name", FIXED)
def test_a_fixed_setting_is_refused_by_file_and_name(name: str, tmp_path: Path) -> None:
    message = refused(tmp_path, f"{name} = {OTHERS[name]!r}\n")
    assert f": {name} is fixed: pi-dispatch's promises hang on it. Take it out of the file" in message


@pytest.mark.parametrize("name", FIXED)
def test_a_fixed_setting_as_it_is_may_stand_there(name: str, tmp_path: Path) -> None:
    assert read(tmp_path, f"{name} = {FIXED[name]!r}\n") == {}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_fixed_option_of_the_connection_is_refused(name: str, tmp_path: Path) -> None:
    message = refused(tmp_path, f"broker_transport_options = {{{name!r}: {OPTIONS[name]!r}}}\n")
    assert f"broker_transport_options[{name!r}] is fixed" in message


def test_options_of_the_connection_are_a_dict(tmp_path: Path) -> None:
    assert "broker_transport_options must be a dict" in refused(tmp_path, "broker_transport_options = 5\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("worker_prefetch_multiplyer = 1\n", "worker_prefetch_multiplyer is no setting of Celery's"),
        ("CELERY_ACKS_LATE = False\n", "CELERY_ACKS_LATE is not read: settings are written in small letters"),
        ("BROKER_URL = 'redis://h'\n", "BROKER_URL is not read"),
        ("TASK_ACKS_LATE = False\n", "TASK_ACKS_LATE is not read"),
        ("class worker_pool: pass\n", "worker_pool is fixed"),
        ("import json as include\n", "include is fixed"),
    ],
)
def test_what_would_have_no_effect_is_refused(text: str, told: str, tmp_path: Path) -> None:
    assert told in refused(tmp_path, text)


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    message = refused(tmp_path, "task_acks_late = False\nworker_pool = 'solo'\nmine = 1\n")
    assert message.count("is fixed") == 2
    assert message.endswith("mine is no setting of Celery's. Take them out of the file")


def test_what_nothing_hangs_on_is_merged(tmp_path: Path) -> None:
    text = (
        '"""Mine."""\nimport json\nfrom os import path\n_SECONDS = 5\nPOOLS = {"a": 1}\n'
        "\n\ndef helper():\n    return 5\n\n"
        "worker_send_task_events = False\nevent_queue_expires = helper()\n"
        'broker_transport_options = {"socket_connect_timeout": _SECONDS}\n'
    )
    assert read(tmp_path, text) == {
        "worker_send_task_events": False,
        "event_queue_expires": 5,
        "broker_transport_options": {"socket_connect_timeout": 5},
    }


@pytest.mark.parametrize("text", ["raise ValueError('one\\x1b')\n", "def\n", "import sys\nsys.exit(3)\n"])
def test_a_file_that_cannot_be_run_is_refused(text: str, tmp_path: Path) -> None:
    assert " cannot be run (" in refused(tmp_path, text)


def test_the_file_of_the_state_folder_is_taken_where_none_is_named(tmp_path: Path) -> None:
    assert operator_settings(None, tmp_path) == {}
    (tmp_path / "celeryconfig.py").write_text("worker_send_task_events = False\n")
    assert operator_settings(None, tmp_path) == {"worker_send_task_events": False}
    named = tmp_path / "named.py"
    named.write_text("task_send_sent_event = False\n")
    assert operator_settings(named, tmp_path) == {"task_send_sent_event": False}


def test_one_of_the_current_folder_is_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "celeryconfig.py").write_text("raise SystemExit(7)\n")
    monkeypatch.chdir(tmp_path)
    assert operator_settings(None, tmp_path / "state") == {}


@pytest.mark.parametrize(
    "name", ["CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL", "CELERY_RESULT_BACKEND"]
)
def test_a_variable_that_names_another_server_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_environment()
    monkeypatch.setenv(name, "redis://:s3cret@elsewhere/0")
    with pytest.raises(ConfigError, match=f"^{name} cannot be set") as caught:
        refuse_environment()
    assert caught.value.message.endswith(f"Name the server with VALKEY_URL, and: unset {name}")
    assert "s3cret" not in caught.value.message


def test_the_broker_looks_for_what_to_give_back_four_times_a_timeout_but_not_all_the_time() -> None:
    looks = [transport_options("pi:", Limits(visibility_s=s))["unacked_restore_interval"] for s in (2, 20, 120)]
    assert looks == [1, 5, 10]

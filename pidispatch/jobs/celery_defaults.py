"""The Celery settings of this house, each with its reason, and how an operator's own file is merged over them.

What each setting does: https://docs.celeryq.dev/en/stable/userguide/configuration.html
"""

import os
import runpy
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from pidispatch.values.errors import ConfigError
from pidispatch.values.limits import Limits

#: The queue that every worker consumes beside its own, `pi-jobs@<name>`.
SHARED_QUEUE: Final = "pi-jobs"
#: The file that is taken where PI_CELERY_CONFIG names none.
STATE_FILE: Final = "celeryconfig.py"

#: Settings that promises hang on. A file that sets one of them is refused.
FIXED: Final[dict[str, Any]] = {
    # A ticket is given up only when its job's end is stored and recorded.
    "task_acks_late": True,
    # The store, not the broker, decides whether a failed job comes again.
    "task_acks_on_failure_or_timeout": True,
    "task_reject_on_worker_lost": False,
    # What one worker holds, no idle one can run.
    "worker_prefetch_multiplier": 1,
    "worker_disable_prefetch": True,
    # A job is a thread that waits for a container. Slots and folders are counted in one process.
    "worker_pool": "threads",
    # Records are ours; Celery's results would only repeat them.
    "task_ignore_result": True,
    "result_backend": None,
    # A container that runs goes on while the server is away.
    "worker_cancel_long_running_tasks_on_connection_loss": False,
    # Tickets carry an id and a number; nothing else may be decoded.
    "task_serializer": "json",
    "accept_content": ["json"],
    # Instants of tickets are in UTC.
    "timezone": "UTC",
    "enable_utc": True,
    "task_default_queue": SHARED_QUEUE,
    # A queue that nobody named is a mistake.
    "task_create_missing_queues": False,
    # Run in place, a job would escape the queue and every promise with it.
    "task_always_eager": False,
    # A worker that has given up is of no use to anyone: the default ends after 100 tries.
    "broker_connection_retry": True,
    "broker_connection_retry_on_startup": True,
    "broker_connection_max_retries": None,
    # The server is named by VALKEY_URL, for everything alike.
    "broker_url": None,
    "broker_read_url": None,
    "broker_write_url": None,
    "broker_use_ssl": None,
    "broker_transport": None,
    "broker_host": None,
    "broker_port": None,
    "broker_user": None,
    "broker_password": None,
    "broker_vhost": None,
    # Which queues there are, and which job goes where, is decided in `jobs/route.py`.
    "task_queues": None,
    "task_routes": None,
    # PI_CONCURRENCY bounds the machine; the pool is only made large enough.
    "worker_concurrency": None,
    # Headers carry the generation, and what is shown in the place of a ticket's arguments.
    "task_protocol": 2,
    # One task's settings could otherwise be any of these.
    "task_annotations": None,
    # Each priority is a list of its own, which nothing that counts tickets would find.
    "task_default_priority": None,
    "task_queue_max_priority": None,
    # A worker runs jobs and nothing else. Celery looks for these in the current folder first.
    "imports": (),
    "include": (),
    # The consumer's own steps renew what it holds, and bound what it fetches.
    "worker_consumer": "celery.worker.consumer:Consumer",
    # A limit that kills a thread's task would leave its container behind.
    "task_time_limit": None,
    "task_soft_time_limit": None,
    # Once reached, new work would wait behind held jobs.
    "worker_eta_task_limit": None,
}
#: Settings that an operator may change.
DEFAULTS: Final[dict[str, Any]] = {
    # Flower and `celery events` live on these.
    "task_track_started": True,
    "task_send_sent_event": True,
    "worker_send_task_events": True,
    # The log is ours.
    "worker_hijack_root_logger": False,
    "worker_redirect_stdouts": False,
}
#: Options of the connection that promises hang on.
_FIXED_OPTIONS: Final = frozenset(
    {
        "visibility_timeout",
        "unacked_restore_interval",
        "unacked_restore_throttle",
        "unacked_mutex_expire",
        "global_keyprefix",
        "unacked_key",
        "unacked_index_key",
        "unacked_mutex_key",
        "socket_timeout",
        "master_name",
        "sentinel_kwargs",
    }
)
_OPTIONS: Final = "broker_transport_options"
#: Variables that Celery reads itself, before any setting.
_ELSEWHERE: Final = (
    "CELERY_BROKER_URL",
    "CELERY_BROKER_READ_URL",
    "CELERY_BROKER_WRITE_URL",
    "CELERY_RESULT_BACKEND",
)


def transport_options(prefix: str, limits: Limits) -> dict[str, Any]:
    """Options of the connection to the server; every key kombu makes begins with `prefix`."""
    return {
        "global_keyprefix": prefix,
        # Short, because what is held is renewed: a dead worker's tickets come back within it.
        "visibility_timeout": limits.visibility_s,
        # By default a look for them comes only every 100 s.
        "unacked_restore_interval": min(10, max(1, int(limits.visibility_s / 4))),
        "unacked_restore_throttle": 1,
        # A worker that is killed during such a look keeps all others from looking for so long, by default 5 minutes.
        "unacked_mutex_expire": max(1, int(limits.visibility_s / 4)),
        "socket_keepalive": True,
        "health_check_interval": 30,
        "socket_connect_timeout": 5,
        # Without it a worker whose connection was dropped in silence would wait for ever.
        "socket_timeout": limits.broker_answer_s,
    }


def operator_settings(named: Path | None, state_dir: Path) -> dict[str, Any]:
    """What the operator's own file sets, to be merged over the defaults. Raises `ConfigError`.

    The file is found by its path alone and never looked for in the current folder, which may be a repository that an
    agent writes.
    """
    path = named or state_dir / STATE_FILE
    if named is None and not path.is_file():
        return {}
    try:
        found = runpy.run_path(str(path))
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"{path} cannot be run ({type(error).__name__}: {error}). Mend it, or name another with PI_CELERY_CONFIG",
            "celery-config",
        ) from None
    return checked({name: value for name, value in found.items() if _is_entry(name, value)}, path)


def _is_entry(name: str, value: object) -> bool:
    """Whether it is meant as a setting: not a constant, an import or a function that the file needs for itself."""
    if name in _known() or _in_capitals(name):
        return True
    return name.islower() and not name.startswith("_") and not isinstance(value, ModuleType) and not callable(value)


def _in_capitals(name: str) -> bool:
    """Whether it is a setting as Celery's older versions spelt it, which nothing reads here."""
    return name.isupper() and (name.startswith("CELERY") or name.lower() in _known())


def checked(found: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """`found` where it may be merged. Raises `ConfigError` naming each entry that may not, and why."""
    faults = [
        f"{name} is fixed: pi-dispatch's promises hang on it"
        for name, value in found.items()
        if name in FIXED and value != FIXED[name]
    ]
    options = found.get(_OPTIONS, {})
    if not isinstance(options, Mapping):
        faults.append(f"{_OPTIONS} must be a dict")
    else:
        faults += [f"{_OPTIONS}[{name!r}] is fixed" for name in options if name in _FIXED_OPTIONS]
    for name in sorted(set(found) - _known()):
        in_capitals = f"{name} is not read: settings are written in small letters"
        faults.append(in_capitals if _in_capitals(name) else f"{name} is no setting of Celery's")
    if faults:
        raise ConfigError(
            f"{path}: {'; '.join(faults)}. Take {'it' if len(faults) == 1 else 'them'} out of the file",
            "celery-config",
        )
    return {name: value for name, value in found.items() if name not in FIXED}


def refuse_environment() -> None:
    """Raise `ConfigError` where a variable of Celery's own would lead it to another server than the store's."""
    if found := [name for name in _ELSEWHERE if os.environ.get(name)]:
        raise ConfigError(
            f"{', '.join(found)} cannot be set, nor --broker or --result-backend be given: Celery would use another "
            f"server than the jobs are on. Name the server with VALKEY_URL, and: unset {' '.join(found)}",
            "celery-config",
        )


def _known() -> frozenset[str]:
    # Imported here: whoever only reads the defaults needs no Celery.
    from pidispatch.jobs.producer import known_settings

    return known_settings()

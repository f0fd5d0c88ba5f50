"""What a worker is not started with: options of `celery worker` and settings that its promises cannot live with.

What the options do: https://docs.celeryq.dev/en/stable/reference/cli.html#celery-worker
"""

from collections.abc import Mapping
from typing import Any, Final

import click
from celery.concurrency import get_implementation
from click.core import ParameterSource

from pidispatch.values.errors import ConfigError

_COUNTED: Final = (
    "slots and folders are counted in this one process, whose pool is made large enough by itself; the number of jobs "
    "at a time is PI_CONCURRENCY"
)
_LIMIT: Final = "a thread that is ended from outside would leave its container behind; each run has a limit of its own"
_BOTH: Final = (
    "a worker takes from the shared queue and from its own; PI_WORKER_NAME says which folders' jobs come to this one"
)
#: Name of the option's value -> the option, and why it is refused.
_REFUSED: Final[dict[str, tuple[str, str]]] = {
    "autoscale": ("--autoscale", _COUNTED),
    "time_limit": ("--time-limit", _LIMIT),
    "soft_time_limit": ("--soft-time-limit", _LIMIT),
    "max_tasks_per_child": ("--max-tasks-per-child", _COUNTED),
    "max_memory_per_child": ("--max-memory-per-child", _COUNTED),
    "queues": ("--queues", _BOTH),
    "exclude_queues": ("--exclude-queues", _BOTH),
    "include": ("--include", "a worker runs jobs and nothing else, and modules are looked for in the current folder"),
    "beat": ("--beat", "nothing of pi-dispatch's is scheduled by Celery"),
    "purge": ("--purge", "it would throw away tickets whose jobs stand; end a job with pi-dispatch cancel"),
}
_THREADS: Final = "celery.concurrency.thread"


def refuse_options(options: Mapping[str, Any], pool_size: int) -> None:
    """Raise `ConfigError` (cause `worker-option`) where an option of the command line cannot be taken.

    `options` are those that Celery hands to its worker; `pool_size` is the concurrency that it fills in itself.
    """
    faults = [f"{option} cannot be given: {why}" for name, (option, why) in _REFUSED.items() if options.get(name)]
    if options.get("concurrency") not in (None, 0, pool_size) or _typed("concurrency"):
        faults.append(f"--concurrency cannot be given: {_COUNTED}")
    if options.get("prefetch_multiplier") not in (None, 1):
        faults.append("--prefetch-multiplier cannot be given: what one worker holds, no idle one can run")
    if faults:
        raise ConfigError("\n".join(faults), "worker-option")


def _typed(name: str) -> bool:
    """Whether the user gave the option, also with the value that it has anyway."""
    context = click.get_current_context(silent=True)
    given = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
    return context is not None and context.get_parameter_source(name) in given


def refuse_pool(pool: Any) -> None:
    """Raise `ConfigError` (cause `worker-pool`) for another pool than threads; `pool` is its class or its name."""
    module = get_implementation(pool).__module__
    if module != _THREADS:
        raise ConfigError(
            f"the pool {module.rpartition('.')[2]!r} cannot serve: slots and folders are counted in one process, and a "
            "job is a thread that waits for a container. Leave out --pool",
            "worker-pool",
        )


def refuse_changed(fixed: Mapping[str, Any], conf: Any) -> None:
    """Raise `ConfigError` (cause `worker-option`) where a setting of `fixed` was changed since it was read.

    Celery takes settings from its command line too, as `celery worker -- task.acks_late=0`.
    """
    changed = sorted(name for name, value in fixed.items() if getattr(conf, name) != value)
    if changed:
        raise ConfigError(
            f"{', '.join(changed)} cannot be set on the command line: pi-dispatch's promises hang on it",
            "worker-option",
        )

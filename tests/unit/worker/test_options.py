"""Options and settings that a worker is not started with."""

from types import SimpleNamespace
from typing import Any

import click
import pytest
from celery.concurrency import get_implementation

from pidispatch.values.errors import ConfigError
from pidispatch.worker.options import refuse_changed, refuse_options, refuse_pool

SIZE = 12


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"concurrency": 4}, "--concurrency"),
        ({"autoscale": (3, 1)}, "--autoscale"),
        ({"time_limit": 5.0}, "--time-limit"),
        ({"soft_time_limit": 5.0}, "--soft-time-limit"),
        ({"max_tasks_per_child": 1}, "--max-tasks-per-child"),
        ({"max_memory_per_child": 1}, "--max-memory-per-child"),
        ({"queues": ["pi-jobs"]}, "--queues"),
        ({"exclude_queues": ["pi-jobs"]}, "--exclude-queues"),
        ({"include": ["mine"]}, "--include"),
        ({"beat": True}, "--beat"),
        ({"purge": True}, "--purge"),
        ({"prefetch_multiplier": 4}, "--prefetch-multiplier"),
    ],
)
def test_an_option_that_bends_a_promise_is_refused_by_its_name(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{named} cannot be given: ") as caught:
        refuse_options(options, SIZE)
    assert (caught.value.exit_code, caught.value.cause) == (2, "worker-option")


def test_the_number_of_jobs_is_set_elsewhere() -> None:
    with pytest.raises(ConfigError, match="PI_CONCURRENCY"):
        refuse_options({"concurrency": 4}, SIZE)


def test_all_of_them_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        refuse_options({"autoscale": (3, 1), "purge": True}, SIZE)
    assert [line.partition(" ")[0] for line in caught.value.message.splitlines()] == ["--autoscale", "--purge"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"concurrency": SIZE, "prefetch_multiplier": 1, "queues": (), "purge": False, "autoscale": None},
        {"concurrency": 0, "loglevel": "INFO", "without_gossip": True, "statedb": "x"},
    ],
)
def test_what_celery_fills_in_itself_is_taken(options: dict[str, Any]) -> None:
    refuse_options(options, SIZE)


def test_a_number_of_threads_is_refused_also_where_it_is_the_one_there_is() -> None:
    @click.command()
    @click.option("--concurrency", type=int)
    def worker(concurrency: int | None) -> None:
        refuse_options({"concurrency": concurrency or SIZE}, SIZE)

    worker.main([], standalone_mode=False)
    with pytest.raises(ConfigError, match=r"^--concurrency"):
        worker.main(["--concurrency", str(SIZE)], standalone_mode=False)


@pytest.mark.parametrize("pool", ["threads", get_implementation("threads")])
def test_the_threads_pool_serves(pool: Any) -> None:
    refuse_pool(pool)


@pytest.mark.parametrize("pool", ["solo", "prefork", type("Pool", (), {"__module__": "celery.concurrency.gevent"})])
def test_another_pool_does_not(pool: Any) -> None:
    name = pool if isinstance(pool, str) else "gevent"
    with pytest.raises(ConfigError, match=f"^the pool '{name}' cannot serve: slots and folders") as caught:
        refuse_pool(pool)
    assert (caught.value.exit_code, caught.value.cause) == (2, "worker-pool")


def test_a_fixed_setting_stays_as_it_was_read() -> None:
    fixed = {"task_acks_late": True, "worker_pool": "threads"}
    refuse_changed(fixed, SimpleNamespace(task_acks_late=True, worker_pool="threads"))
    with pytest.raises(ConfigError, match=r"^task_acks_late cannot be set on the command line") as caught:
        refuse_changed(fixed, SimpleNamespace(task_acks_late=False, worker_pool="threads"))
    assert caught.value.cause == "worker-option"

"""What is only looked at: progress, told ends, workers."""

from pidispatch.values.limits import Limits
from tests.integration.jobs.world import PREFIX, World
from tests.support.server import until


def test_progress_is_the_last_that_was_told_and_is_forgotten_after_an_hour(world: World) -> None:
    assert world.store.read_progress("local-1") is None
    world.store.progress("local-1", 1, 100)
    world.store.progress("local-1", 2, 250)
    assert world.store.read_progress("local-1") == (2, 250)
    assert 3_590_000 < world.client.pttl(f"{PREFIX}job:progress:local-1") <= 3_600_000
    world.client.delete(f"{PREFIX}job:progress:local-1")


def test_an_end_is_told_to_the_one_who_waits(world: World) -> None:
    assert world.store.told("local-1") is None
    world.store.tell("local-1", {"result": {"diff": "ü"}, "recordError": None})
    assert world.store.told("local-1") == {"result": {"diff": "ü"}, "recordError": None}
    assert 3_590_000 < world.client.pttl(f"{PREFIX}job:told:local-1") <= 3_600_000


def test_workers_are_those_that_spoke_lately(world: World) -> None:
    assert world.store.workers() == ()
    world.store.beat("b", {"slots": 3, "queues": "pi-jobs"})
    world.store.beat("a", {"slots": 1})
    world.store.beat("b", {"slots": 2})
    first, second = world.store.workers()
    assert (first.name, first.fields) == ("a", {"name": "a", "slots": "1"})
    assert (second.name, second.fields) == ("b", {"name": "b", "slots": "2"})
    assert all(0 <= one.age_ms < 10_000 for one in (first, second))
    world.store.leave("a")
    assert [one.name for one in world.store.workers()] == ["b"]


def test_a_worker_that_says_nothing_is_not_shown(world: World) -> None:
    world.limits = Limits(worker_seen_s=0.05)
    world.store.beat("a", {})
    assert all(one.age_ms <= 50 for one in world.store.workers())
    until(lambda: not world.store.workers(), "the worker to be forgotten")

"""What is only looked at: progress, told ends, workers."""

from pidispatch.jobs.endings import Telling
from pidispatch.jobs.rows import Answer, Deferred
from pidispatch.values.limits import Limits
from pidispatch.values.record import Result
from tests.integration.jobs.world import BROKEN, DONE, NOW, PREFIX, World, record
from tests.support.server import until


def test_progress_is_the_last_that_was_told_and_is_forgotten_after_an_hour(world: World) -> None:
    assert world.store.read_progress("local-1") is None
    world.store.progress("local-1", 1, 100)
    world.store.progress("local-1", 2, 250)
    assert world.store.read_progress("local-1") == (2, 250)
    assert 3_590_000 < world.client.pttl(f"{PREFIX}job:progress:local-1") <= 3_600_000
    world.client.delete(f"{PREFIX}job:progress:local-1")


def telling(diff: str = "ü") -> Telling:
    result = Result.begin(NOW, "anthropic", "m").ending(DONE).model_copy(update={"diff": diff})
    return Telling(result=result, record="/logs/local-1.json")


def told_diff(world: World) -> object:
    told = world.store.told("local-1")
    return None if told is None else told["result"]["diff"]


def test_an_end_is_told_to_the_one_who_waits_in_the_step_that_stores_it(world: World) -> None:
    lease = world.active()
    assert world.store.told("local-1") is None
    assert world.store.finish(lease, record(), telling()) is Answer.WON
    assert (told_diff(world), (world.store.told("local-1") or {})["record"]) == ("ü", "/logs/local-1.json")
    assert 3_590_000 < world.client.pttl(f"{PREFIX}job:told:local-1") <= 3_600_000


def test_so_is_an_attempt_that_another_one_follows(world: World) -> None:
    lease = world.active()
    assert isinstance(world.store.fail(lease, record(outcome=BROKEN), telling("a"), never_started=False), Deferred)
    assert told_diff(world) == "a"


def test_whose_job_it_is_not_any_more_tells_nothing(world: World) -> None:
    lease = world.active()
    stale = lease.model_copy(update={"owner": "w#engine#another"})
    assert world.store.finish(stale, record(), telling()) is Answer.STALE
    assert world.store.fail(stale, record(outcome=BROKEN), telling(), never_started=False) is Answer.STALE
    assert world.store.told("local-1") is None


def test_of_a_job_whose_row_is_gone_it_is_told_too(world: World) -> None:
    lease = world.active()
    world.client.flushall()
    assert world.store.finish(lease, record(), telling("run")) is Answer.UNKNOWN
    assert told_diff(world) == "run"
    world.client.flushall()
    assert world.store.fail(lease, record(outcome=BROKEN), telling("x"), never_started=False) is Answer.UNKNOWN
    assert told_diff(world) == "x"


def test_letters_that_are_none_keep_no_end_from_being_stored(world: World) -> None:
    lease = world.active()
    assert world.store.finish(lease, record(), telling("\udcff")) is Answer.WON
    assert world.store.told("local-1") is None


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

"""The queue at one moment, as it is looked at: counts, and the few jobs that say most."""

from datetime import UTC, datetime

from pidispatch.jobs.overview import JobSeen
from pidispatch.jobs.pausing import EVERY
from pidispatch.jobs.rows import Deferred
from tests.integration.jobs.world import BROKEN, PREFIX, QUEUE, World, record

OTHER = "pi-jobs@build-1"


def at(milliseconds: int | None) -> datetime:
    """An instant of the store's clock."""
    assert milliseconds is not None
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def test_of_an_empty_store(world: World) -> None:
    seen = world.store.overview(10)
    assert (seen.active, seen.deferred, seen.failed, seen.unrecorded) == (0, 0, 0, 0)
    assert (seen.queues, seen.running, seen.held, seen.oldest, seen.all_paused_since) == ((), (), (), None, None)


def test_a_job_is_seen_by_its_label_wherever_it_stands(world: World) -> None:
    world.submit("local-waits")
    running = world.active("local-runs", queue=OTHER)
    world.store.spend(running)
    world.store.progress("local-runs", 3, 700)
    sleeping = world.active("local-sleeps")
    told = world.store.defer(sleeping, 60_000, "host-busy")
    assert isinstance(told, Deferred)
    seen = world.store.overview(10)
    assert [(queue.name, queue.waiting, queue.first) for queue in seen.queues] == [
        (QUEUE, 1, "local-waits"),
        (OTHER, 0, None),
    ]
    row = world.row("local-runs")
    assert seen.running == (
        JobSeen(
            job_id="local-runs",
            label="local site tidy",
            queue=OTHER,
            attempt=1,
            max_attempts=2,
            created=at(row.created_ms),
            worker="w",
            since=at(row.acquired_ms),
            spending=True,
            turns=3,
            tokens=700,
        ),
    )
    (held,) = seen.held
    assert (held.job_id, held.why, held.until, held.worker) == ("local-sleeps", "host-busy", at(told.due_ms), None)
    assert seen.oldest is not None
    assert seen.oldest.job_id == "local-waits"
    assert "nightly" not in seen.model_dump_json()
    assert "/srv" not in seen.model_dump_json()


def test_the_oldest_is_the_one_that_was_handed_in_first_of_all_queues(world: World) -> None:
    world.submit("local-1", OTHER)
    world.later(10).submit("local-2", QUEUE)
    seen = world.store.overview(10)
    assert seen.oldest is not None
    assert seen.oldest.job_id == "local-1"


def test_counts_are_of_all_and_jobs_of_the_first(world: World) -> None:
    for number in range(5):
        lease = world.later(1).active(f"local-{number}")
        assert isinstance(world.store.defer(lease, 60_000, "scope-busy"), Deferred)
    for number in range(5, 8):
        world.later(1).active(f"local-{number}")
    seen = world.store.overview(2)
    assert (seen.deferred, [one.job_id for one in seen.held]) == (5, ["local-0", "local-1"])
    assert (seen.active, [one.job_id for one in seen.running]) == (3, ["local-5", "local-6"])


def test_ends_are_counted(world: World) -> None:
    lease = world.active("local-1", max_attempts=1)
    assert world.store.fail(lease, record("local-1", BROKEN), never_started=False) == "won"
    seen = world.store.overview(10)
    assert (seen.failed, seen.unrecorded) == (1, 1)
    world.store.recorded("local-1", 1)
    assert world.store.overview(10).unrecorded == 0


def test_what_is_paused(world: World) -> None:
    world.submit("local-1")
    world.store.pause([OTHER])
    seen = world.store.overview(10)
    assert [(queue.name, queue.paused_since is not None) for queue in seen.queues] == [(QUEUE, False), (OTHER, True)]
    world.store.pause([EVERY])
    assert world.store.overview(10).all_paused_since == world.store.paused()[EVERY]


def test_a_job_that_ended_between_two_questions_is_left_out(world: World) -> None:
    world.submit("local-1")
    world.active("local-2")
    world.client.delete(f"{PREFIX}job:local-1", f"{PREFIX}job:local-2")
    seen = world.store.overview(10)
    assert (seen.running, seen.oldest, seen.active) == ((), None, 1)
    # The world's own check compares indexes and rows.
    world.client.flushdb()

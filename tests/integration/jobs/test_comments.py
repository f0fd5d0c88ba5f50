"""What waits to be said on an item: noted once for a job, taken by one worker at a time, remembered when it is said."""

import json
import threading
from typing import Any

import pytest

from pidispatch.jobs.comments import DueRemark, Remark
from pidispatch.values.errors import InfraError
from pidispatch.values.forge import JobKind
from pidispatch.values.limits import Limits
from tests.integration.jobs.world import NOW, PREFIX, World

DAY_MS = 86_400_000
ONE = Remark(
    kind=JobKind.GITHUB,
    repo="acme/web",
    target="issue",
    number=7,
    text="what is said\n\n<!-- pi-dispatch gh-1 -->",
    marker="<!-- pi-dispatch gh-1 -->",
    since=NOW,
)
LOCK = f"{PREFIX}comment:lock:gh-1"


def taken(world: World, job_id: str = "gh-1", worker: str = "build-1") -> DueRemark:
    """A comment that is due and that nobody has."""
    assert world.store.remarks_due() == [job_id]
    due = world.store.take_remark(job_id, worker)
    assert due is not None
    return due


def given_up(world: World) -> World:
    """The lease of whoever had it has run out."""
    assert 0 < int(str(world.client.pttl(LOCK))) <= 60_000
    world.client.delete(LOCK)
    return world


def test_what_is_noted_is_due_at_once_and_gone_when_it_is_said(world: World) -> None:
    assert world.store.remarks_due() == []
    assert world.store.remark("gh-1", ONE) is True
    due = taken(world)
    assert due == DueRemark("gh-1", ONE, 0, 0)
    world.store.close_remark(due)
    assert world.store.remarks_due() == []
    assert world.store.take_remark("gh-1", "build-2") is None
    assert "what is said" not in json.dumps(world.raw())


def test_a_job_is_spoken_of_once_however_often_its_record_is_written(world: World) -> None:
    assert world.store.remark("gh-1", ONE) is True
    assert world.store.remark("gh-1", ONE.model_copy(update={"text": "another text"})) is False
    due = taken(world)
    assert due.remark == ONE
    world.store.close_remark(due)
    given_up(world)
    assert world.store.remark("gh-1", ONE) is False
    assert world.store.remarks_due() == ["gh-1"]
    # Whoever takes it finds that it is said, and the word that it is due is gone.
    assert world.store.take_remark("gh-1", "build-1") is None
    assert world.store.remarks_due() == []


def test_that_it_is_said_is_remembered_as_long_as_the_row(world: World) -> None:
    world.store.remark("gh-1", ONE)
    key = f"{PREFIX}comment:gh-1"
    assert 30 * DAY_MS < int(str(world.client.pttl(key))) <= 31 * DAY_MS
    due = taken(world)
    world.client.persist(key)
    world.store.close_remark(due)
    assert 30 * DAY_MS < int(str(world.client.pttl(key))) <= 31 * DAY_MS


def test_one_worker_has_it_until_its_lease_runs_out(world: World) -> None:
    world.store.remark("gh-1", ONE)
    assert taken(world).tries == 0
    assert world.store.remarks_due() == ["gh-1"]
    assert world.store.take_remark("gh-1", "build-2") is None
    given_up(world).later(90)
    again = taken(world, worker="build-2")
    assert (again.remark, again.tries) == (ONE, 0)
    assert abs(again.age_ms - 90_000) < 9_000


def test_of_many_that_ask_at_once_one_gets_it(world: World) -> None:
    world.store.remark("gh-1", ONE)
    store, gate, got = world.store, threading.Barrier(6), []

    def ask(name: str) -> None:
        gate.wait()
        got.append(store.take_remark("gh-1", name))

    threads = [threading.Thread(target=ask, args=(f"build-{number}",)) for number in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert [one.remark for one in got if one is not None] == [ONE]


def test_one_that_could_not_be_posted_comes_again_at_its_time_and_its_age_is_known(world: World) -> None:
    world.store.remark("gh-1", ONE)
    world.store.postpone_remark(taken(world), 60_000)
    given_up(world)
    assert world.later(50).store.remarks_due() == []
    again = taken(world.later(20))
    assert again.tries == 1
    assert abs(again.age_ms - 70_000) < 9_000
    world.store.postpone_remark(again, 120_000)
    given_up(world)
    last = taken(world.later(130))
    assert last.tries == 2
    assert abs(last.age_ms - 200_000) < 9_000


def test_the_longest_due_come_first_and_not_all_at_once(world: World) -> None:
    world.limits = Limits(sweep_batch=2)
    for number in (1, 2, 3):
        world.store.remark(f"gh-{number}", ONE)
    first = world.store.take_remark("gh-1", "build-1")
    assert first is not None
    world.store.postpone_remark(first, 5)
    assert world.later(10).store.remarks_due() == ["gh-2", "gh-3"]


def test_one_of_a_later_version_is_left_to_a_worker_of_that(world: World) -> None:
    world.store.remark("gh-1", ONE)
    key = f"{PREFIX}comment:gh-1"
    later = {**ONE.model_dump(mode="json"), "colour": "red"}
    world.client.hset(key, "remark", json.dumps(later))
    assert world.store.take_remark("gh-1", "build-1") is None
    given_up(world)
    assert world.store.remarks_due() == []
    assert world.later(3601).store.remarks_due() == ["gh-1"]
    assert json.loads(str(world.client.hget(key, "remark"))) == later


def test_one_whose_key_is_gone_is_forgotten(world: World) -> None:
    world.store.remark("gh-1", ONE)
    world.client.delete(f"{PREFIX}comment:gh-1")
    assert world.store.take_remark("gh-1", "build-1") is None
    assert world.store.remarks_due() == []


def test_a_server_that_refuses_is_a_fault_of_the_surroundings(world: World) -> None:
    world.client.set(f"{PREFIX}comments:due", "no set")
    asked: list[Any] = [lambda: world.store.remark("gh-1", ONE), world.store.remarks_due]
    for ask in asked:
        with pytest.raises(InfraError, match="refused a command"):
            ask()

"""The log of deliveries: what stays of an event, what became of it, and which forges are heard."""

import json
from datetime import datetime
from typing import Any

import pytest

from pidispatch.jobs.delivered import Delivery
from pidispatch.jobs.deliveries import Source
from pidispatch.values.epoch import from_ms
from pidispatch.values.errors import InfraError
from pidispatch.values.forge import JobKind
from pidispatch.values.limits import Limits
from tests.integration.jobs.world import PREFIX, QUEUE, World, record
from tests.support.oneshots import fired_by, rule

ONE = Delivery(id="1111", event="issues", action="closed", target="acme/web#40", trigger=0)
DAY_S = 86_400


def now(world: World) -> datetime:
    """The server's own clock, by which entries are known."""
    seconds: Any = world.client.time()
    return from_ms(seconds[0] * 1000)


def test_what_made_no_job_is_kept_with_its_reason(world: World) -> None:
    dropped = ONE.model_copy(update={"trigger": None, "reason": "no-allowlisted-label"})
    world.store.log_delivery(JobKind.GITHUB, dropped, "dropped")
    [found] = world.store.deliveries(JobKind.GITHUB, 10)
    assert (found.forge, found.delivery, found.verdict, found.job_id) == (JobKind.GITHUB, dropped, "dropped", None)
    assert abs((found.at - now(world)).total_seconds()) < 60
    assert world.store.deliveries(JobKind.GITLAB, 10) == []


def test_a_job_and_what_stands_in_its_place_are_logged_with_it(world: World) -> None:
    entry = rule()
    first, second = fired_by(entry, job_id="gh-1", oneshot=None), fired_by(entry, job_id="gh-2", oneshot=None)
    for job in (first, first, second):
        world.store.submit(job, queue=QUEUE, dedup_key="acme/web#40:closed:deploy", delivery=ONE)
    told = [(one.verdict, one.job_id) for one in world.store.deliveries(JobKind.GITHUB, 10)]
    assert told == [("queued", "gh-1"), ("duplicate", "gh-1"), ("coalesced", "gh-1")]
    assert "a private title" not in json.dumps([one.model_dump(mode="json") for one in _all(world)])


def _all(world: World) -> list[Delivery]:
    return [one.delivery for one in world.store.deliveries(JobKind.GITHUB, 10)]


def test_of_a_paused_trigger_the_pause_is_the_reason(world: World) -> None:
    world.client.set(f"{PREFIX}trigger:paused:b", "{}")
    job = fired_by(rule(), breaker="b")
    assert world.store.submit(job, queue=QUEUE, heed_pause=True, delivery=ONE).status == "trigger-paused"
    [found] = world.store.deliveries(JobKind.GITHUB, 10)
    assert (found.verdict, found.delivery.reason, found.job_id) == ("dropped", "trigger-paused", None)


def test_a_rule_that_is_spent_logs_nothing_as_another_may_take_the_event(world: World) -> None:
    job = fired_by(rule())
    assert world.store.submit(job, queue=QUEUE, delivery=ONE).status == "submitted"
    lease = world.take(job.id).lease
    world.store.finish(lease, record(job.id))
    later = fired_by(rule(), job_id="gh-2")
    assert world.store.submit(later, queue=QUEUE, delivery=ONE).status == "spent"
    assert [one.verdict for one in world.store.deliveries(JobKind.GITHUB, 10)] == ["queued"]


def test_the_log_is_bounded_and_read_on_from_where_one_stopped(world: World) -> None:
    world.limits = Limits(deliveries=5)
    for number in range(8):
        world.store.log_delivery(JobKind.GITHUB, ONE.model_copy(update={"id": str(number)}), "dropped")
    found = world.store.deliveries(JobKind.GITHUB, 100)
    assert [one.delivery.id for one in found] == ["3", "4", "5", "6", "7"]
    assert [one.delivery.id for one in world.store.deliveries(JobKind.GITHUB, 2)] == ["6", "7"]
    assert [one.delivery.id for one in world.store.deliveries(JobKind.GITHUB, 100, found[2].entry)] == ["6", "7"]
    assert world.store.deliveries(JobKind.GITHUB, 100, found[-1].entry) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"delivery": "{", "verdict": "dropped"},
        {"delivery": "[]", "verdict": "dropped"},
        {"delivery": '{"event": "issues"}', "verdict": "dropped"},
        {"delivery": '{"id": "1", "event": "issues"}'},
    ],
)
def test_an_entry_that_cannot_be_read_is_left_out(world: World, fields: dict[str, str]) -> None:
    world.client.xadd(f"{PREFIX}deliveries:github", fields)  # type: ignore[arg-type]
    world.store.log_delivery(JobKind.GITHUB, ONE, "retry")
    assert [one.verdict for one in world.store.deliveries(JobKind.GITHUB, 10)] == ["retry"]


def test_an_entry_of_a_later_version_is_read_as_far_as_it_is_known(world: World) -> None:
    later = {**json.loads(ONE.stored()), "urgency": "high"}
    world.client.xadd(f"{PREFIX}deliveries:github", {"delivery": json.dumps(later), "verdict": "postponed", "job": ""})
    [found] = world.store.deliveries(JobKind.GITHUB, 10)
    assert (found.delivery, found.verdict) == (ONE, "postponed")


def test_who_is_heard_since_when_and_what_came_last(world: World) -> None:
    assert world.store.sources() == []
    world.store.hear([])
    assert world.store.sources() == []
    world.store.hear([JobKind.GITHUB, JobKind.AZURE])
    begun = {one.forge: one for one in world.store.sources()}
    assert set(begun) == {JobKind.GITHUB, JobKind.AZURE}
    assert all(one.last is None for one in begun.values())
    world.store.hear([JobKind.GITHUB])
    world.store.log_delivery(JobKind.GITHUB, ONE, "dropped")
    [github, azure] = sorted(world.store.sources(), key=lambda one: one.forge, reverse=True)
    assert github.since == begun[JobKind.GITHUB].since, "said again, it is heard since then all the same"
    assert github.last is not None
    assert abs((github.last - now(world)).total_seconds()) < 60
    assert azure == Source(forge=JobKind.AZURE, since=begun[JobKind.AZURE].since)
    assert not github.faulty
    world.store.hear([JobKind.GITHUB], faulty=True)
    assert [one.faulty for one in world.store.sources() if one.forge is JobKind.GITHUB] == [True]
    # What came from a forge that nobody hears any more is no source.
    world.store.log_delivery(JobKind.GITLAB, ONE, "dropped")
    assert len(world.store.sources()) == 2
    assert 0 < int(str(world.client.pttl(f"{PREFIX}source:github"))) <= 14 * DAY_S * 1000


def test_a_server_that_refuses_is_a_fault_of_the_surroundings(world: World) -> None:
    world.client.set(f"{PREFIX}deliveries:github", "no stream")
    for ask in (
        lambda: world.store.log_delivery(JobKind.GITHUB, ONE, "dropped"),
        lambda: world.store.deliveries(JobKind.GITHUB, 1),
        world.store.sources,
    ):
        with pytest.raises(InfraError, match="refused a command"):
            ask()

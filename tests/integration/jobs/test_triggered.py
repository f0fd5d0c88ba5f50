"""What the store remembers of triggers: the mark of a rule that fires once, and pauses after runs for nothing."""

import threading
from typing import Any

import pytest

from pidispatch.jobs.charges import Ask, Counter, Ledger, Reserved, TurnedAway
from pidispatch.jobs.rows import Answer, Deferred, JobState, Submitted
from pidispatch.jobs.triggered import Spent, TriggerPaused
from pidispatch.values.change import Change
from pidispatch.values.epoch import from_ms
from pidispatch.values.job import ForgeJob, Job
from pidispatch.values.outcome import Completed, InfraFailed, Outcome, Refused
from pidispatch.values.reason import Reason
from pidispatch.values.record import Result, RunRecord
from tests.integration.jobs.world import BROKEN, CANCELLED, NOW, PREFIX, QUEUE, World, job
from tests.support.oneshots import fired_by, identity, rule

RUNS = 3
NAME = "nightly"
CHANGE = Change(changed=True, commits=0, head=None, files=(), dirty_before=False)
REFUSED = Refused(reason=Reason.UNPROTECTED_BRANCH)


class Breaking(World):
    """A world with a trigger whose jobs can be run to their end."""

    def ended(self, number: int, outcome: Outcome, changed: bool | None = None, breaker: str | None = NAME) -> None:
        """One job of the trigger, run to this end."""
        one = job(f"local-{number}").model_copy(update={"breaker": breaker})
        assert self.store.submit(one, queue=QUEUE, max_attempts=1).status == "submitted"
        lease = self.take(one.id).lease
        self.store.spend(lease)
        told = record_of(one, outcome, changed)
        if told.outcome == "failed":
            assert self.store.fail(lease, told, never_started=False) is Answer.WON
        else:
            assert self.store.finish(lease, told) is Answer.WON

    def counted(self) -> str | None:
        """Runs for nothing, one after the other."""
        found: Any = self.client.get(f"{PREFIX}trigger:runs:{NAME}")
        return None if found is None else str(found)


def record_of(one: Job, outcome: Outcome, changed: bool | None = None, attempt: int = 1) -> RunRecord:
    change = None if changed is None else CHANGE.model_copy(update={"changed": changed})
    result = Result.begin(NOW, "anthropic", "m").ending(outcome).model_copy(update={"change": change})
    return RunRecord.of(one, result, "host", attempt)


@pytest.fixture
def breaking(world: World) -> Breaking:
    """The same store; three runs for nothing pause a trigger."""
    return Breaking(world.client, breaker_runs=RUNS)


# Pauses.


@pytest.mark.parametrize(
    ("outcome", "changed", "reason"),
    [
        (Completed(), False, ""),
        (Refused(reason=Reason.PROVIDER_UNCONFIGURED), None, "provider-unconfigured"),
        (BROKEN, None, "infra"),
    ],
)
def test_the_third_run_for_nothing_pauses_and_is_named(
    breaking: Breaking, outcome: Outcome, changed: bool | None, reason: str
) -> None:
    for number in (1, 2):
        breaking.ended(number, outcome, changed)
        assert (breaking.store.paused_triggers(), breaking.store.tripped()) == ({}, [])
    breaking.ended(3, outcome, changed)
    told = breaking.store.paused_triggers()
    assert set(told) == {NAME}
    assert told[NAME] == TriggerPaused(
        at=told[NAME].at_ms, runs=3, job_id="local-3", reason=reason, label="local site tidy"
    )
    assert abs(told[NAME].at_ms - breaking.now_ms) < 5_000
    assert told[NAME].at == from_ms(told[NAME].at_ms)
    assert breaking.store.tripped() == [NAME]
    assert breaking.store.tripped() == []


def test_a_run_that_changed_something_begins_the_count_anew(breaking: Breaking) -> None:
    for number in range(1, 8):
        breaking.ended(number, Completed(), number % 3 == 0)
    assert breaking.counted() == "1"
    assert breaking.store.paused_triggers() == {}


def test_ends_that_say_nothing_change_no_count(breaking: Breaking) -> None:
    breaking.ended(1, Completed(), False)
    neutral: tuple[Outcome, ...] = (CANCELLED, Refused(reason=Reason.OVER_BUDGET), Completed())
    for number, outcome in enumerate(neutral, 2):
        breaking.ended(number, outcome)
    assert breaking.counted() == "1"


def test_a_job_that_no_trigger_made_counts_for_none(breaking: Breaking) -> None:
    for number in range(1, 6):
        breaking.ended(number, BROKEN, breaker=None)
    assert not list(breaking.client.scan_iter(f"{PREFIX}trigger*"))


def test_a_failed_attempt_that_another_one_follows_is_no_end(breaking: Breaking) -> None:
    one = job().model_copy(update={"breaker": NAME})
    breaking.store.submit(one, queue=QUEUE, max_attempts=2)
    lease = breaking.take().lease
    assert isinstance(breaking.store.fail(lease, record_of(one, BROKEN), never_started=False), Deferred)
    assert breaking.counted() is None
    lease = breaking.later(61).take().lease
    breaking.store.fail(lease, record_of(one, BROKEN, attempt=2), never_started=False)
    assert breaking.counted() == "1"


def test_jobs_that_are_lost_with_their_worker_count(breaking: Breaking) -> None:
    for number in range(RUNS):
        one = job(f"local-{number}").model_copy(update={"breaker": NAME})
        breaking.store.submit(one, queue=QUEUE)
        breaking.store.spend(breaking.take(one.id).lease)
        breaking.later(61).store.sweep(rest=False)
    assert breaking.store.paused_triggers()[NAME].reason == "worker-lost"


def test_what_a_settling_finds_counts_as_it_ended(breaking: Breaking) -> None:
    for number, changed in enumerate((False, True, False)):
        one = job(f"local-{number}").model_copy(update={"breaker": NAME})
        breaking.store.submit(one, queue=QUEUE)
        breaking.store.spend(breaking.take(one.id).lease)
        settled = breaking.store.settle(one.id, 1, record_of(one, Completed(), changed), spent=True)
        assert settled.status == "won"
    assert breaking.counted() == "1"


def test_a_pause_stands_until_it_is_taken_away_and_jobs_go_on_to_end(breaking: Breaking) -> None:
    for number in range(1, 6):
        breaking.ended(number, BROKEN)
    assert breaking.store.paused_triggers()[NAME].job_id == "local-3"
    assert breaking.store.tripped() == [NAME]
    breaking.ended(6, Completed(), True)
    assert set(breaking.store.paused_triggers()) == {NAME}
    assert breaking.store.rearm(breaker=NAME) == (False, True)
    assert breaking.store.rearm(breaker=NAME) == (False, False)
    assert breaking.store.paused_triggers() == {}
    breaking.later(1)
    for number in (7, 8):
        breaking.ended(number, BROKEN)
    assert breaking.store.paused_triggers() == {}
    breaking.ended(9, BROKEN)
    assert (set(breaking.store.paused_triggers()), breaking.store.tripped()) == ({NAME}, [NAME])


def test_a_trigger_that_is_resumed_begins_to_count_anew(breaking: Breaking) -> None:
    breaking.ended(1, BROKEN)
    assert breaking.store.rearm(breaker=NAME) == (False, False)
    assert breaking.counted() is None


def test_jobs_that_were_handed_in_before_a_pause_was_lifted_do_not_pause_it_again(breaking: Breaking) -> None:
    waiting = [job(f"old-{number}").model_copy(update={"breaker": NAME}) for number in range(RUNS)]
    for one in waiting:
        breaking.store.submit(one, queue=QUEUE, max_attempts=1)
    for number in range(RUNS):
        breaking.ended(number, BROKEN)
    breaking.later(1).store.rearm(breaker=NAME)
    for one in waiting:
        breaking.store.fail(breaking.take(one.id).lease, record_of(one, BROKEN), never_started=False)
    assert breaking.store.paused_triggers() == {}
    for number in range(RUNS):
        breaking.later(1)
        breaking.ended(10 + number, BROKEN)
    assert set(breaking.store.paused_triggers()) == {NAME}


def test_who_heeds_a_pause_makes_no_job_of_it_and_who_does_not_makes_one(breaking: Breaking) -> None:
    for number in range(1, 4):
        breaking.ended(number, BROKEN)
    one = job("local-9").model_copy(update={"breaker": NAME})
    answer = breaking.store.submit(one, queue=QUEUE, heed_pause=True)
    assert answer == Submitted(status="trigger-paused", job_id="")
    assert breaking.store.row("local-9") is None
    other = one.model_copy(update={"breaker": "other"})
    assert breaking.store.submit(other, queue=QUEUE, heed_pause=True).status == "submitted"
    assert breaking.store.submit(one.model_copy(update={"id": "local-8"}), queue=QUEUE).status == "submitted"
    # A job that stands already stands, whatever became of its trigger.
    assert breaking.store.submit(other, queue=QUEUE, heed_pause=True).status == "duplicate"


def test_without_a_bound_nothing_is_counted(breaking: Breaking) -> None:
    breaking.breaker_runs = 0
    for number in range(1, 6):
        breaking.ended(number, BROKEN)
    assert (breaking.counted(), breaking.store.paused_triggers(), breaking.store.tripped()) == (None, {}, [])


def test_a_count_stands_for_400_days_after_the_last_run(breaking: Breaking) -> None:
    breaking.ended(1, BROKEN)
    left: Any = breaking.client.pttl(f"{PREFIX}trigger:runs:{NAME}")
    assert 399 * 86_400_000 < left <= 400 * 86_400_000
    breaking.later(1)
    breaking.ended(2, BROKEN)
    again: Any = breaking.client.pttl(f"{PREFIX}trigger:runs:{NAME}")
    assert again > 399 * 86_400_000


def test_runs_that_end_at_once_trip_once(breaking: Breaking) -> None:
    leases = []
    for number in range(8):
        one = job(f"local-{number}").model_copy(update={"breaker": NAME})
        breaking.store.submit(one, queue=QUEUE, max_attempts=1)
        leases.append((breaking.take(one.id).lease, one))
    store, gate = breaking.store, threading.Barrier(len(leases))

    def end(lease: Any, one: Job) -> None:
        gate.wait()
        assert store.fail(lease, record_of(one, BROKEN), never_started=False) is Answer.WON

    threads = [threading.Thread(target=end, args=each) for each in leases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert breaking.store.tripped() == [NAME]
    assert breaking.counted() == "8"
    assert breaking.store.paused_triggers()[NAME].runs == 3


@pytest.mark.parametrize("text", ["", "{", "[]", '{"runs": 1}'])
def test_a_note_that_nobody_reads_is_left_out(breaking: Breaking, text: str) -> None:
    breaking.client.sadd(f"{PREFIX}triggers:paused", "odd")
    breaking.client.set(f"{PREFIX}trigger:paused:odd", text)
    breaking.client.set(f"{PREFIX}oneshot:odd", text)
    assert (breaking.store.paused_triggers(), breaking.store.spent(["odd"])) == ({}, {})


def test_a_note_of_a_later_version_is_read(breaking: Breaking) -> None:
    breaking.client.set(f"{PREFIX}oneshot:odd", '{"at": 1, "jobId": "gh-1", "more": 1}')
    assert breaking.store.spent(["odd"]) == {"odd": Spent(at=1, job_id="gh-1")}


# Rules that fire once.

ENTRY = rule()
RULE = identity(ENTRY)


def closing(world: World, job_id: str = "gh-1", **more: Any) -> tuple[ForgeJob, str]:
    """A job of the rule, handed in; and what became of it."""
    one = fired_by(ENTRY, job_id=job_id, **more)
    return one, world.store.submit(one, queue=QUEUE).status


def test_nothing_is_spent_before_a_job_spends_or_has_a_record(world: World) -> None:
    closing(world)
    lease = world.take("gh-1").lease
    assert world.store.spent([RULE]) == {}
    world.store.defer(lease, 5000, "host-busy")
    assert world.store.spent([RULE]) == {}
    assert world.store.spent([]) == {}


@pytest.mark.example(
    "ch1 E6", "any record of a job spends its rule in the store: completed, refused, failed, cancelled"
)
@pytest.mark.parametrize("how", ["completed", "refused", "failed for good", "failed, to be tried again", "cancelled"])
def test_every_record_spends_the_rule_and_the_first_job_keeps_it(world: World, how: str) -> None:
    one, _ = closing(world)
    other, _ = closing(world, "gh-2")
    if how == "cancelled":
        assert world.store.cancel("gh-1", record_of(one, CANCELLED)).changed
    else:
        lease = world.take("gh-1").lease
        if how == "completed":
            world.store.finish(lease, record_of(one, Completed(), True))
        elif how == "refused":
            world.store.finish(lease, record_of(one, REFUSED))
        else:
            failure = InfraFailed(reason=Reason.WORKER_LOST) if how == "failed for good" else BROKEN
            told = world.store.fail(lease, record_of(one, failure), never_started=False)
            assert isinstance(told, Deferred) is (how != "failed for good")
    found = world.store.spent([RULE, "another"])
    assert set(found) == {RULE}
    assert found[RULE].job_id == "gh-1"
    assert abs(found[RULE].at_ms - world.now_ms) < 5_000
    world.store.finish(world.later(1).take("gh-2").lease, record_of(other, REFUSED))
    assert world.store.spent([RULE]) == found
    assert world.client.pttl(f"{PREFIX}oneshot:{RULE}") == -1


def test_of_two_jobs_that_were_let_in_the_first_to_spend_keeps_the_rule(world: World) -> None:
    closing(world)
    closing(world, "gh-2")
    first, second = world.take("gh-1").lease, world.take("gh-2").lease
    ask = Ask(ledgers=(Ledger(counters=(Counter(window="day", key="budget:d", ttl_ms=1000, cap=5),)),))
    assert world.store.spend(second, ask) == Reserved(charged={"budget:d": 1})
    assert world.store.spent([RULE])[RULE].job_id == "gh-2"
    told = world.store.spend(first, ask)
    assert told == TurnedAway(kind="once", ledger=-1, window="", amount=0, cap=0)
    # Asked again, because the answer was lost: the same, of both, and nothing is counted.
    assert world.store.spend(first, ask) == told
    assert world.store.spend(second, ask) == Reserved(charged={"budget:d": 1})
    assert world.client.get(f"{PREFIX}budget:d") == "1"
    assert world.row("gh-1").spend_ms is None


def test_the_next_attempt_of_the_job_that_claimed_the_rule_is_let_in(world: World) -> None:
    one, _ = closing(world)
    lease = world.take("gh-1").lease
    world.store.spend(lease)
    assert isinstance(world.store.fail(lease, record_of(one, BROKEN), never_started=False), Deferred)
    assert world.store.spend(world.later(61).take("gh-1").lease) == Reserved()


@pytest.mark.parametrize("mark", ["{", "7", '{"at": 1}', '{"jobId": 7}'])
def test_a_mark_that_says_nothing_certain_lets_the_job_spend(world: World, mark: str) -> None:
    closing(world)
    world.client.set(f"{PREFIX}oneshot:{RULE}", mark)
    assert world.store.spend(world.take("gh-1").lease) == Reserved()


def test_a_job_lost_with_its_worker_spends_the_rule(world: World) -> None:
    closing(world)
    world.store.spend(world.take("gh-1").lease)
    world.later(61).store.sweep(rest=False)
    assert world.store.spent([RULE])[RULE].job_id == "gh-1"


def test_a_spent_rule_makes_no_more_jobs_until_it_is_armed_again(world: World) -> None:
    one, status = closing(world)
    assert status == "submitted"
    world.store.finish(world.take("gh-1").lease, record_of(one, REFUSED))
    assert closing(world)[1] == "duplicate"
    assert closing(world, "gh-2")[1] == "spent"
    assert world.store.row("gh-2") is None
    assert world.store.rearm(oneshot=RULE) == (True, False)
    assert world.store.rearm(oneshot=RULE) == (False, False)
    assert closing(world, "gh-2")[1] == "submitted"


def test_another_rule_is_another_ones_business(world: World) -> None:
    one, _ = closing(world)
    world.store.finish(world.take("gh-1").lease, record_of(one, REFUSED))
    other = fired_by(rule(41), job_id="gh-2")
    assert world.store.submit(other, queue=QUEUE).status == "submitted"


def test_a_repetition_that_an_operator_asked_for_neither_asks_nor_spends(world: World) -> None:
    one, _ = closing(world)
    world.store.finish(world.take("gh-1").lease, record_of(one, REFUSED))
    again, status = closing(world, "retry-1", retry_of="gh-1")
    assert status == "submitted"
    world.store.rearm(oneshot=RULE)
    world.store.finish(world.take("retry-1").lease, record_of(again, REFUSED))
    assert world.store.spent([RULE]) == {}


def test_a_rule_that_is_armed_again_fires_at_once(world: World) -> None:
    entry = rule()
    first = fired_by(entry, job_id="gh-1")
    key = "acme/web#40:closed:deploy"
    world.store.submit(first, queue=QUEUE, dedup_key=key)
    world.store.finish(world.take("gh-1").lease, record_of(first, REFUSED))
    assert world.store.rearm(oneshot=str(first.oneshot)) == (True, False)
    again = fired_by(entry, job_id="gh-2")
    assert world.store.submit(again, queue=QUEUE, dedup_key=key).status == "submitted"
    # A key that another job took meanwhile is that one's.
    world.store.finish(world.take("gh-2").lease, record_of(again, REFUSED))
    world.client.set(f"{PREFIX}dedup:{key}", "gh-3")
    world.store.rearm(oneshot=str(first.oneshot))
    assert world.client.get(f"{PREFIX}dedup:{key}") == "gh-3"


def test_a_rule_without_a_key_is_armed_again_too(world: World) -> None:
    one, _ = closing(world)
    world.store.finish(world.take("gh-1").lease, record_of(one, REFUSED))
    assert world.store.rearm(oneshot=RULE) == (True, False)


def test_one_delivery_is_one_wish_also_where_its_rule_was_given_replicas_since(world: World) -> None:
    single = fired_by(rule(), job_id="gh-d", oneshot=None)
    first, second = (single.model_copy(update={"id": f"gh-d-r{n}", "replica": n, "replicas": 2}) for n in (1, 2))
    trigger = single.trigger.model_copy(update={"delivery_id": "d"})
    single, first, second = (one.model_copy(update={"trigger": trigger}) for one in (single, first, second))
    assert world.store.submit(single, queue=QUEUE).status == "submitted"
    for one in (first, second):
        told = world.store.submit(one, queue=QUEUE)
        assert (told.status, told.job_id) == ("duplicate", "gh-d")
    world.client.delete(f"{PREFIX}job:gh-d", f"{PREFIX}jobs:queued:{QUEUE}")
    assert [world.store.submit(one, queue=QUEUE).status for one in (first, second)] == ["submitted", "submitted"]
    told = world.store.submit(single, queue=QUEUE)
    assert (told.status, told.job_id) == ("duplicate", "gh-d-r1")


def test_a_mark_and_a_pause_are_taken_away_each_by_its_name(world: World) -> None:
    world.client.set(f"{PREFIX}oneshot:a", "{}")
    world.client.set(f"{PREFIX}trigger:paused:a", "{}")
    world.client.sadd(f"{PREFIX}triggers:paused", "a")
    assert world.store.rearm() == (False, False)
    assert world.store.rearm(oneshot="a", breaker="a") == (True, True)
    assert list(world.client.scan_iter(f"{PREFIX}*")) == [f"{PREFIX}trigger:resumed:a"]


def test_the_record_of_a_lost_or_cancelled_job_of_a_forge_says_what_fired_it(world: World) -> None:
    one, _ = closing(world, replica=2, replicas=3)
    world.store.spend(world.take("gh-1").lease)
    world.later(61).store.sweep(rest=False)
    found = world.record("gh-1")
    assert world.state("gh-1") is JobState.FAILED
    assert (found.target, found.flow, found.trigger_type, found.trigger_index) == ("acme/web#40", "deploy", "issue", 0)
    assert (found.replica, found.replicas) == (2, 3)
    assert one.target.title not in found.model_dump_json()

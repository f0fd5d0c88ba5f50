"""Any sequence of anything that can happen to jobs, on a real server, against the plain model.

The store's clock is the model's: the one line of the scripts that asks the server for the time is given the answer,
so that how busy the machine is decides nothing and each sequence can be repeated.
"""

import json
from pathlib import Path
from typing import Any, ClassVar

import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pidispatch.jobs.charges import Reserved
from pidispatch.jobs.lost import record_of
from pidispatch.jobs.pausing import EVERY
from pidispatch.jobs.rows import Acquired, Answer, Deferred, Ignored, Lease, Paused, Ticket, ending_state
from pidispatch.jobs.scripts import SCRIPTS, source
from pidispatch.jobs.store import JobStore
from pidispatch.values.limits import Limits
from pidispatch.values.record import RunRecord
from tests.integration.jobs.model import TERMINAL, Model
from tests.integration.jobs.world import BROKEN, CANCELLED, DONE, PREFIX, QUEUE, World, job, record
from tests.support.server import OwnServer

LIMITS = Limits(
    # These alone are counted by the server itself.
    cancel_request_s=600,
    cancel_ack_s=600,
)
DELAY_MS = 5000
IDS = tuple(f"local-{number}" for number in range(8))
SECONDS = st.sampled_from((1, 10, 62, 130, 302, 602))
ANY = st.integers(0, 1000)
WORK = st.sampled_from(("stay", "stay", "fail", "fail", "defer", "finish", "die"))
RARELY = st.sampled_from((False, False, False, False, True))
OUTCOMES = st.sampled_from((DONE, BROKEN, CANCELLED))


ASKED = "time[1] * 1000 + math.floor(time[2] / 1000) + bounds.offset"
assert all(source(name).count(ASKED) == 1 for name in SCRIPTS)
FROZEN = {name: source(name).replace(ASKED, "bounds.offset") for name in SCRIPTS}


class Frozen(JobStore):
    """A store whose offset is the time itself."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(client, PREFIX, LIMITS)
        self._registered = {name: client.register_script(text) for name, text in FROZEN.items()}

    def at(self, now_ms: int) -> "Frozen":
        """The store at this time."""
        self._bounds = json.dumps({**json.loads(self._bounds), "offset": now_ms})
        return self


class Jobs(RuleBasedStateMachine):
    """The store beside the model, tickets in flight, and every lease that was ever given."""

    client: ClassVar[redis.Redis]
    frozen: ClassVar[Frozen]

    @initialize()
    def begin(self) -> None:
        self.client.flushdb()
        self.world = World(self.client, LIMITS)
        self.model = Model(LIMITS)
        #: Tickets in the queue's list, and those that a worker or the transport holds.
        self.listed: list[Ticket] = []
        self.held: list[Ticket] = []
        self.leases: list[Lease] = []
        self.acquired: set[tuple[str, int]] = set()
        self.spent: set[tuple[str, int]] = set()
        self.ended: set[tuple[str, int]] = set()
        for job_id in IDS[:3]:
            self._submit(job_id, None, 2, lost=1)

    @property
    def store(self) -> JobStore:
        """The store, with the model's clock, a second after the call before: no two stamps are the same."""
        self.model.now += 1000
        return self.frozen.at(self.model.now)

    # What is asked for, and the way of tickets.

    @rule(again=RARELY, key=st.sampled_from((None, None, "k")), attempts=st.integers(1, 3), lost=ANY)
    def submit(self, again: bool, key: str | None, attempts: int, lost: int) -> None:
        fresh = [job_id for job_id in IDS if job_id not in self.model.jobs]
        self._submit(IDS[lost % len(IDS)] if again or not fresh else fresh[0], key, attempts, lost)

    def _submit(self, job_id: str, key: str | None, attempts: int, lost: int) -> None:
        told = self.store.submit(job(job_id), queue=QUEUE, max_attempts=attempts, dedup_key=key)
        assert (told.status, told.job_id) == self.model.submit(job_id, attempts, key)
        if told.ticket is not None and lost % 4:
            self._publish(told.ticket)

    @precondition(lambda self: self.held or self.listed)
    @rule(which=ANY, what=st.sampled_from(("fetch", "give back", "duplicate", "lose")))
    def carry(self, which: int, what: str) -> None:
        """The transport hands a ticket out, takes it back, doubles it, or loses it."""
        if what == "fetch" and self.listed:
            self.held.append(self._unlist(which))
        elif what == "give back" and self.held:
            self._publish(self.held.pop(which % len(self.held)))
        elif what == "duplicate":
            self._publish((self.held + self.listed)[which % len(self.held + self.listed)])
        elif what == "lose":
            self._drop(which)

    @precondition(lambda self: self.held or self.listed)
    @rule(which=ANY, copied=st.booleans())
    def deliver(self, which: int, copied: bool) -> None:
        every = self.held + self.listed
        ticket = every[which % len(every)] if copied else self._drop(which)
        self._deliver(ticket)

    @precondition(lambda self: self.held or self.listed)
    @rule(which=ANY, spent=st.booleans(), asked=RARELY, what=WORK, lost=ANY)
    def work(self, which: int, spent: bool, asked: bool, what: str, lost: int) -> None:
        """A worker takes a ticket and goes on for a while as it should; somebody may ask for a cancel meanwhile."""
        lease = self._deliver(self._drop(which))
        if lease is None:
            return
        if spent:
            self._spend(lease)
        if asked:
            self._cancel(lease.job_id)
        if what == "fail":
            self._fail(lease, not spent, lost)
        elif what == "defer":
            self._defer(lease, lost)
        elif what == "finish":
            self._finish(lease, record(lease.job_id, DONE, lease.attempt))
        elif what == "die":
            self._settle(lease.job_id, lease.attempt, DONE if lost % 2 else None, spent=spent and lost % 3 == 0)

    @rule(seconds=SECONDS)
    def later(self, seconds: int) -> None:
        self.model.now += seconds * 1000

    # What holders of leases do, also those that lost them.

    @precondition(lambda self: self.leases)
    @rule(which=ANY, crashed=st.booleans())
    def renew(self, which: int, crashed: bool) -> None:
        if crashed:
            self.leases.pop(which % len(self.leases))
        told = self.store.renew(self.leases)
        # Of several leases of one job the last one's answer is the one that is told.
        assert told == {lease.job_id: Answer(self.model.renew(lease)) for lease in self.leases}

    @precondition(lambda self: self.leases)
    @rule(which=ANY, what=st.sampled_from(("spend", "spend", "defer", "finish", "fail")), outcome=OUTCOMES, lost=ANY)
    def move(self, which: int, what: str, outcome: Any, lost: int) -> None:
        lease = self.leases[which % len(self.leases)]
        if what == "spend":
            self._spend(lease)
        elif what == "defer":
            self._defer(lease, lost)
        elif what == "finish":
            self._finish(lease, record(lease.job_id, outcome, lease.attempt))
        else:
            self._fail(lease, bool(lost % 2), lost)

    # What others do to a job.

    @precondition(lambda self: self.model.jobs)
    @rule(which=ANY, what=st.sampled_from(("cancel", "cancel an active one", "acknowledge", "withdraw")))
    def cancel(self, which: int, what: str) -> None:
        job_id = self._job(which)
        wanted = self.model.jobs[job_id]
        if what == "acknowledge":
            self._acknowledge()
        elif what == "withdraw":
            assert self.store.withdraw_cancel(job_id) is wanted.asked
            wanted.asked = False
        elif what == "cancel" or wanted.state == "active":
            self._cancel(job_id)

    @precondition(lambda self: self.model.jobs)
    @rule(which=ANY, other=st.integers(0, 3), outcome=st.none() | OUTCOMES, spent=st.booleans())
    def settle(self, which: int, other: int, outcome: Any, spent: bool) -> None:
        job_id = self._job(which, of=("active", *TERMINAL))
        self._settle(job_id, self.model.jobs[job_id].attempt + (other == 1), outcome, spent=spent)

    @precondition(lambda self: self.model.jobs)
    @rule(which=ANY, attempt=st.integers(1, 2))
    def recorded(self, which: int, attempt: int) -> None:
        job_id = self._job(which)
        assert self.store.recorded(job_id, attempt) == self.model.recorded(job_id, attempt)

    @rule(on=RARELY, every=st.booleans())
    def switch(self, on: bool, every: bool) -> None:
        """Somebody pauses the queue, or more often resumes it."""
        queue = EVERY if every else QUEUE
        if on:
            self.store.pause([queue])
        else:
            self.store.resume([EVERY, QUEUE])
        self.model.paused = on
        assert bool(self.store.paused()) is on

    @rule(lost=st.booleans())
    def sweep(self, lost: bool) -> None:
        self._sweep(lost=lost)

    # What must hold after every step.

    @invariant()
    def the_rows_are_those_of_the_model(self) -> None:
        for job_id, wanted in self.model.jobs.items():
            row = self.frozen.row(job_id)
            assert row is not None
            found = (row.state, row.gen, row.attempt, row.lost, row.spend_ms is not None, row.owner, row.reason)
            assert found == (
                wanted.state,
                wanted.gen,
                wanted.attempt,
                wanted.lost,
                wanted.spent,
                wanted.owner,
                wanted.reason,
            )
            assert row.due_ms == wanted.due
            assert row.recorded is (None if wanted.record_attempt is None else wanted.owed is None)
            assert row.record_attempt == wanted.record_attempt
            told = record_of(row)
            assert (told is None) is (wanted.record_attempt is None)
            assert told is None or told.attempt == wanted.record_attempt
            assert row.state not in TERMINAL or told is not None

    @invariant()
    def the_indexes_are_those_of_a_full_scan(self) -> None:
        self.world.check()
        assert self.client.llen(PREFIX + QUEUE) == len(self.listed)

    def teardown(self) -> None:
        """Whatever happened: once the workers do their work, every accepted job ends."""
        if not hasattr(self, "model"):
            return
        self.leases.clear()
        self.store.resume([EVERY, QUEUE])
        self.model.paused = False
        for _ in range(12):
            self.model.now += 302_000
            self._sweep(lost=False)
            while self.held or self.listed:
                ticket = self.held.pop() if self.held else self._unlist(0)
                lease = self._deliver(ticket)
                if lease is not None:
                    self._finish(lease, record(lease.job_id, DONE, lease.attempt))
            if all(one.state in TERMINAL for one in self.model.jobs.values()):
                break
        self.the_rows_are_those_of_the_model()
        self.world.check()
        assert {one.state for one in self.model.jobs.values()} <= set(TERMINAL)

    # Parts of these.

    def _publish(self, ticket: Ticket) -> None:
        self.listed.append(ticket)
        self.world.publish(ticket)

    def _unlist(self, which: int) -> Ticket:
        # What lies in the list is of no account to the store, but its length is.
        self.client.rpop(PREFIX + QUEUE)
        return self.listed.pop(which % len(self.listed))

    def _drop(self, which: int) -> Ticket:
        at = which % (len(self.held) + len(self.listed))
        return self.held.pop(at) if at < len(self.held) else self._unlist(at - len(self.held))

    def _job(self, which: int, of: tuple[str, ...] = ()) -> str:
        """A job, of these states where there is one."""
        every = sorted(self.model.jobs)
        found = [job_id for job_id in every if self.model.jobs[job_id].state in of] or every
        return found[which % len(found)]

    def _acknowledge(self) -> None:
        asked = {job_id for job_id, one in self.model.jobs.items() if one.asked}
        assert self.store.cancel_requested(list(self.model.jobs)) == asked
        for job_id in asked:
            self.store.acknowledge_cancel(job_id, "w")
            self.model.jobs[job_id].asked, self.model.jobs[job_id].answered = False, True

    def _cancel(self, job_id: str) -> None:
        # Its one who asks may have looked before the last attempt ended.
        seen = max(1, self.model.jobs[job_id].attempt - (len(self.ended) % 2))
        told = record(job_id, CANCELLED, seen, spent=False)
        answer = self.store.cancel(job_id, told)
        assert (answer.status, answer.changed) == self.model.cancel(job_id, told.attempt, str(told.reason))

    def _settle(self, job_id: str, attempt: int, outcome: Any, *, spent: bool) -> None:
        told = None if outcome is None else record(job_id, outcome, attempt)
        settled = self.store.settle(job_id, attempt, told, spent=spent)
        end = None if told is None else (ending_state(told).value, told.reason)
        assert settled.status == self.model.settle(job_id, attempt, end, spent=spent)
        if settled.status == "unspent":
            # Its container never started, whatever was noted.
            self.spent.discard((job_id, attempt))
        if settled.ticket is not None:
            self._publish(settled.ticket)

    def _spend(self, lease: Lease) -> None:
        told = self.store.spend(lease)
        if isinstance(told, Reserved):
            told = Answer.WON if told.known else Answer.UNKNOWN
        assert told == self.model.spend(lease)
        if told is Answer.WON:
            self.spent.add((lease.job_id, lease.attempt))

    def _defer(self, lease: Lease, lost: int) -> None:
        self._slept(lease, self.store.defer(lease, DELAY_MS, "host-busy"), self.model.defer(lease, DELAY_MS), lost)

    def _fail(self, lease: Lease, never_started: bool, lost: int) -> None:
        told = record(lease.job_id, BROKEN, lease.attempt)
        answer = self.store.fail(lease, told, never_started=never_started)
        self._slept(lease, answer, self.model.fail(lease, str(told.reason), never_started=never_started), lost)
        if isinstance(answer, Deferred) or answer is Answer.WON:
            self._once(lease)

    def _deliver(self, ticket: Ticket) -> Lease | None:
        owner = self.world.owner()
        answer = self.store.acquire(ticket.job_id, ticket.gen, owner)
        wanted = self.model.acquire(ticket.job_id, ticket.gen, owner)
        if isinstance(answer, Ignored):
            assert answer.state == wanted
            return None
        if isinstance(answer, Paused):
            assert (wanted, answer.delay_ms) == ("paused", LIMITS.paused_recheck_ms)
            self.held.append(answer.ticket)
            return None
        assert isinstance(answer, Acquired)
        assert wanted == "acquired"
        lease = answer.lease
        assert (ticket.job_id, ticket.gen) not in self.acquired, "acquired twice in one generation"
        assert (ticket.job_id, lease.attempt) not in self.spent, "taken again after it spent"
        self.acquired.add((ticket.job_id, ticket.gen))
        self.leases.append(lease)
        return lease

    def _finish(self, lease: Lease, told: RunRecord) -> None:
        answer = self.store.finish(lease, told)
        assert answer == self.model.finish(lease, ending_state(told).value, told.reason)
        if answer is Answer.WON:
            self._once(lease)

    def _once(self, lease: Lease) -> None:
        assert (lease.job_id, lease.attempt) not in self.ended, "one attempt ended twice"
        self.ended.add((lease.job_id, lease.attempt))

    def _slept(self, lease: Lease, answer: Deferred | Answer, wanted: str, lost: int) -> None:
        if not isinstance(answer, Deferred):
            assert answer == wanted
            return
        assert wanted == "deferred"
        assert answer.gen == lease.gen + 1
        if lost % 4:
            self.held.append(Ticket(job_id=lease.job_id, gen=answer.gen, queue=QUEUE, label="local site tidy"))

    def _sweep(self, *, lost: bool) -> None:
        swept = self.store.sweep(rest=False)
        self.model.wake_oversleepers()
        unclaimed = self.model.unclaimed()
        missing = sum(one.state == "queued" for one in self.model.jobs.values()) - len(self.listed)
        published = {ticket.job_id for ticket in swept.publish}
        assert len(swept.publish) == len(published) == max(0, min(missing, len(unclaimed)))
        assert published <= unclaimed
        ages = {job_id: self.model.jobs[job_id].published for job_id in unclaimed}
        assert all(ages[one] <= ages[other] for one in published for other in unclaimed - published)
        for job_id in published:
            self.model.jobs[job_id].published = self.model.now
        gone, requeued = self.model.sweep_leases()
        assert (set(swept.lost), {ticket.job_id for ticket in swept.requeued}) == (gone, requeued)
        assert set(swept.unrecorded) == self.model.sweep_records()
        for ticket in (*swept.requeued, *swept.publish):
            assert ticket.gen == self.model.jobs[ticket.job_id].gen
            if not lost:
                self._publish(ticket)


MACHINE = settings(
    max_examples=130,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)


def test_whatever_happens_the_store_does_what_the_model_does(tmp_path: Path) -> None:
    with OwnServer("valkey", tmp_path, "--appendfsync", "no") as server:
        Jobs.client = server.client()
        Jobs.frozen = Frozen(Jobs.client)
        try:
            run_state_machine_as_test(Jobs, settings=MACHINE)
        finally:
            Jobs.client.close()

"""Any interleaving of runs that are counted, refused, given back, lost and asked for twice: no cap is ever passed."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from pidispatch.jobs.charges import Reserved, TurnedAway
from pidispatch.jobs.rows import Acquired, JobState, Lease
from pidispatch.money.budget import Budget
from pidispatch.values.outcome import Aborted, InfraFailed, Outcome, Refused
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.record import RunRecord
from tests.integration.jobs.world import BROKEN, DONE, PREFIX, World, record
from tests.support.server import content
from tests.support.settings import settings_of

CAPS = {"PI_DAILY_CAP": "3", "PI_WEEKLY_CAP": "5", "PI_MONTHLY_CAP": "6", "PI_DAILY_TOKEN_CAP": "100"}
BUDGET = Budget(settings_of(CAPS))
SOFT = Budget(settings_of({**CAPS, "PI_SOFT_HOLD_PCT": "70"}))
START = datetime(2026, 5, 30, 23, 59, tzinfo=UTC)
NEVER = InfraFailed(reason=Reason.CONTAINER_NEVER_STARTED)
STOPPED = Aborted(reason=Reason.WORKER_ABORT, cause=AbortReason.JOB_TIMEOUT)
ANY = st.integers(0, 1000)


class Money(RuleBasedStateMachine):
    """Jobs in hands, what they were told, and what every attempt that ended stays counted for."""

    client: ClassVar[redis.Redis]

    @initialize()
    def begin(self) -> None:
        """Nothing is there yet."""
        self.client.flushdb()
        self.world = World(self.client)
        self.now = START
        self.jobs = 0
        #: Attempts that were admitted and are not over.
        self.running: dict[str, Lease] = {}
        #: What ended attempts stay counted for.
        self.kept: Counter[str] = Counter()
        #: Runs whose container was let start, by the key of a window.
        self.started: Counter[str] = Counter()

    @rule(soft=st.booleans(), asked=st.integers(1, 3))
    def start(self, soft: bool, asked: int) -> None:
        """A new job is taken and asks, more than once where answers get lost."""
        self.jobs += 1
        self._ask(self.world.active(f"local-{self.jobs}"), soft, asked)

    @rule(soft=st.booleans(), which=ANY)
    def start_anew(self, soft: bool, which: int) -> None:
        """A job that sleeps or waits again is taken up."""
        waiting = [f"local-{n}" for n in range(1, self.jobs + 1) if self._waits(f"local-{n}")]
        if waiting:
            job_id = waiting[which % len(waiting)]
            taken = self.world.store.acquire(job_id, self.world.row(job_id).gen, self.world.owner())
            if isinstance(taken, Acquired):
                self._ask(taken.lease, soft, 1)

    def _waits(self, job_id: str) -> bool:
        row = self.world.store.row(job_id)
        return row is not None and row.state in (JobState.QUEUED, JobState.DEFERRED)

    def _ask(self, lease: Lease, soft: bool, asked: int) -> None:
        ask = (SOFT if soft else BUDGET).ask(self.now)
        answers = [self.world.store.spend(lease, ask) for _ in range(asked)]
        assert all(answer == answers[0] for answer in answers)
        answer = answers[0]
        assert isinstance(answer, Reserved | TurnedAway)
        if isinstance(answer, Reserved):
            self.running[lease.job_id] = lease
            self.started.update(answer.charged)
        else:
            reason = {"over": Reason.OVER_BUDGET, "soft": Reason.SOFT_HOLD, "tokens": Reason.DAILY_TOKEN_CAP}
            self._end(lease, Refused(reason=reason[answer.kind]), answer.charged)

    @rule(
        which=ANY, tokens=st.integers(0, 80), outcome=st.sampled_from((DONE, STOPPED, BROKEN)), said=st.integers(1, 2)
    )
    def ran(self, which: int, tokens: int, outcome: Outcome, said: int) -> None:
        """A container ran, used tokens, and ended one way or another."""
        if (lease := self._pop(which)) is None:
            return
        booked = BUDGET.tokens(self.now, tokens)
        for _ in range(said if booked else 0):
            assert booked is not None
            self.world.store.book(lease, *booked)
        self._end(lease, outcome, self.world.row(lease.job_id).charged)

    @rule(which=ANY)
    def never_started(self, which: int) -> None:
        """The engine made no container: no trace is left."""
        if (lease := self._pop(which)) is not None:
            self._uncount(lease)
            self._end(lease, NEVER, {})

    @rule(which=ANY)
    def put_back(self, which: int) -> None:
        """The worker stops before the container."""
        if (lease := self._pop(which)) is not None:
            self._uncount(lease)
            self.world.store.defer(lease, 0, "worker-stopped", never_started=True)

    @rule(which=ANY)
    def settled_unspent(self, which: int) -> None:
        """The worker was killed between its count and its container, which its next start can tell."""
        if (lease := self._pop(which)) is not None:
            self._uncount(lease)
            self.world.store.settle(lease.job_id, lease.attempt, None, spent=False)

    @rule()
    def all_are_killed(self) -> None:
        """Every worker is gone, and a sweep finds its jobs: whatever was counted may have run."""
        held, self.running = self.running, {}
        self.world.later(200).store.sweep(rest=False)
        for job_id in held:
            row = self.world.row(job_id)
            assert row.state is JobState.FAILED
            lost = self.world.record(job_id)
            assert lost.charged == row.charged
            self.kept.update(lost.charged)

    @rule(hours=st.sampled_from((1, 13, 24, 200)))
    def later(self, hours: int) -> None:
        """Another day, week or month begins."""
        self.now += timedelta(hours=hours)

    def _pop(self, which: int) -> Lease | None:
        if not self.running:
            return None
        return self.running.pop(sorted(self.running)[which % len(self.running)])

    def _uncount(self, lease: Lease) -> None:
        self.started.subtract(self.world.row(lease.job_id).charged)

    def _end(self, lease: Lease, outcome: Outcome, charged: dict[str, int]) -> None:
        ended: RunRecord = record(lease.job_id, outcome, lease.attempt).model_copy(update={"charged": charged})
        if isinstance(outcome, InfraFailed):
            self.world.store.fail(lease, ended, never_started=outcome == NEVER)
        else:
            self.world.store.finish(lease, ended)
        self.kept.update(charged)

    @invariant()
    def counters_are_the_sum_of_what_is_charged(self) -> None:
        """Of ended attempts by their records, of running ones by their rows."""
        if not hasattr(self, "world"):
            return
        expected = Counter(self.kept)
        for job_id in self.running:
            expected.update(self.world.row(job_id).charged)
        found = {
            str(name).removeprefix(PREFIX): int(content(self.client, str(name)))
            for name in self.client.scan_iter(f"{PREFIX}budget:*")
        }
        assert {name: amount for name, amount in found.items() if amount} == {
            name: amount for name, amount in expected.items() if amount
        }

    @invariant()
    def no_cap_is_passed(self) -> None:
        """More runs were never let start in a window than its cap says."""
        if not hasattr(self, "world"):
            return
        for key, runs in self.started.items():
            kind = key.split(":")[1]
            assert runs <= {"w": 5, "m": 6}.get(kind, 3), key


def test_no_interleaving_passes_a_cap_or_loses_a_count(client: redis.Redis) -> None:
    """On each kind of server."""
    Money.client = client
    run_state_machine_as_test(
        Money,
        settings=settings(
            max_examples=60,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
        ),
    )

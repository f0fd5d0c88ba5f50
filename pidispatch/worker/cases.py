"""The jobs in hand, and what the attempt at one of them asks and tells: its mark, its count, its use, its end."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from pidispatch.config.log import log
from pidispatch.jobs.charges import TurnedAway
from pidispatch.jobs.rows import Acquired, Answer, Lease
from pidispatch.jobs.store import JobStore, RowUnreadable
from pidispatch.money.budget import Budget
from pidispatch.runs.oneshot import spent
from pidispatch.runs.seams import LeaseLost
from pidispatch.triggers.disarm import Mark
from pidispatch.values.errors import InfraError
from pidispatch.values.job import ForgeJob, Job
from pidispatch.values.outcome import Refused
from pidispatch.values.record import EarlierAttempt, Result, RunRecord
from pidispatch.worker.ending import Ended, Ending, Told
from pidispatch.worker.held import Held

T = TypeVar("T")


@dataclass
class Case:
    """One job in hand and how it ended so far."""

    acquired: Acquired
    held: Held
    ended: Ended | None = None
    #: Whether it was counted, and what for; where nothing ran, that is given back.
    counted: bool = False
    charged: dict[str, int] = field(default_factory=dict)

    @property
    def earlier(self) -> tuple[EarlierAttempt, ...]:
        """The attempts before this one."""
        previous = self.acquired.previous
        return previous.as_earlier if previous is not None else ()


class Cases:
    """What is asked of the store for jobs that are attempted, each question once more where its answer was lost."""

    def __init__(self, store: JobStore, budget: Budget, ending: Ending) -> None:
        self._store = store
        self._budget = budget
        self._ending = ending
        self._open: dict[str, Case] = {}

    @contextmanager
    def attempted(self, case: Case) -> Iterator[None]:
        """Hear what the attempt at this job calls back meanwhile."""
        self._open[case.acquired.job.id] = case
        try:
            yield
        finally:
            del self._open[case.acquired.job.id]

    def marked(self, job: ForgeJob) -> Mark | None:
        """The store's mark of the rule that fired `job`; `None` without one. Raises `InfraError` for no answer."""
        return mark_in(self._store, job)

    def spend(self, job: Job, now: datetime) -> tuple[dict[str, int], Refused | None]:
        """Count the attempt, and stamp that from here on it may be paid for: what it was counted for, and a refusal.

        Raises `LeaseLost`, and `InfraError` for no answer.
        """
        case = self._open[job.id]
        found = once_more(lambda: self._store.spend(case.held.lease, self._budget.ask(now)))
        if isinstance(found, Answer):
            raise LeaseLost
        if not found.known:
            # Its row is gone with the server's data. The record file keeps it from being paid for again.
            log().warning("spend_unknown", jobId=job.id)
        case.counted, case.charged = True, dict(found.charged)
        return found.charged, self._refusal(job, found, now) if isinstance(found, TurnedAway) else None

    def _refusal(self, job: Job, found: TurnedAway, now: datetime) -> Refused:
        if found.kind != "once":
            return self._budget.refusal(job.id, found, now)
        assert isinstance(job, ForgeJob), "no other comes of a rule that fires once"
        return spent(job, mark_in(self._store, job) or Mark())

    def book(self, job: Job, now: datetime, tokens: int) -> dict[str, int]:
        """Count the tokens of a run that was counted at `now`; what was added. Raises `InfraError` for no answer."""
        if (asked := self._budget.tokens(now, tokens)) is None:
            return {}
        key, ttl_ms, amount = asked
        case = self._open[job.id]
        answer = once_more(lambda: self._store.book(case.held.lease, key, ttl_ms, amount))
        if answer is not Answer.WON:
            log().error("token_spend_error", jobId=job.id, cause=str(answer))
            return {}
        case.charged[key] = amount
        return {key: amount}

    def finish(self, job: Job, result: Result) -> None:
        """Store how the attempt ended. Raises `InfraError` where that has to wait for the next start."""
        case = self._open[job.id]
        case.ended = self.end(case, result)

    def end(self, case: Case, result: Result) -> Ended:
        """The same for one that no attempt calls back for."""
        cancelled = case.held.decide()
        return self._ending.tell(case.held.lease, case.acquired.job, result, case.earlier, cancelled=cancelled)

    def repeat(self, lease: Lease, record: RunRecord) -> Told:
        """Store an end that is on record already."""
        return self._ending.repeat(lease, record)


def mark_in(store: JobStore, job: ForgeJob) -> Mark | None:
    """The mark that `store` has of the rule that fired `job`; `None` without one. Raises `InfraError`."""
    rule = job.oneshot
    if rule is None:
        return None
    spent = once_more(lambda: store.spent([rule])).get(rule)
    return None if spent is None else Mark(spent.at.isoformat().replace("+00:00", "Z"), spent.job_id)


def once_more(ask: Callable[[], T]) -> T:
    """What the store answers; asked again where the answer was lost, which changes nothing there."""
    try:
        return ask()
    except RowUnreadable:
        raise
    except InfraError:
        return ask()

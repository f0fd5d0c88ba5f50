"""What becomes of an authentic event, however it was heard of: the gate, the forge where it must be asked, the store.

A webhook is told it as an answer, the poller goes by it.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

from pidispatch.config.log import log
from pidispatch.forges.protocol import Account, Answer, ForgeModule
from pidispatch.receiver.asking import delivery_of, jobs_of
from pidispatch.receiver.desk import Desk, Handed
from pidispatch.receiver.lanes import Busy, Lane, asked_of
from pidispatch.triggers.matching import Ask, Fired, decide
from pidispatch.triggers.rules import Rules
from pidispatch.values.clock import Clock
from pidispatch.values.event import Authority, Drop, Event, Identity

#: The reason where the store did not take the jobs.
ENQUEUE_FAILED: Final = "enqueue-failed"


class Outcome(NamedTuple):
    """What became of an event."""

    #: `queued`, `duplicate`, `coalesced`, `dropped`, or `retry`: it is not decided, and may be handed in again.
    verdict: str
    #: Why nothing came of it, or not yet.
    reason: str = ""
    #: The job that stands for it.
    job_id: str = ""
    #: Where the forge will not be asked more for now: until when.
    resets: datetime | None = None


class Deciding:
    """Decides on the events of one forge. The rules are those of the moment, whatever is edited meanwhile."""

    def __init__(
        self,
        module: ForgeModule,
        account: Account,
        me: Identity,
        rules: Callable[[], Rules],
        desk: Desk,
        lookups: Lane,
        clock: Clock,
    ) -> None:
        self._kind = module.row.kind
        self._lookup_failed = module.lookup_failed
        self._account = account
        self._me = me
        self._rules = rules
        self._desk = desk
        self._lookups = lookups
        self._clock = clock

    async def __call__(self, event: Event, until: float) -> Outcome:
        """What becomes of an event, decided by the instant `until` of the monotonic clock."""
        rules, spent = self._rules(), set[int]()
        authority: Authority | None = None
        while True:
            found = decide(event, rules, self._me, authority, spent=spent)
            if isinstance(found, Drop):
                return self._dropped(event, found)
            if isinstance(found, Ask):
                answer = await self._asked(event, until)
                if answer.authority is Authority.UNKNOWN:
                    return self._undecided(event, answer)
                authority = answer.authority
                continue
            handed = await self._desk.hand_in(jobs_of(event, found), self._left(until))
            if handed.status != "spent":
                return self._handed(event, found, handed)
            # Another rule may take what this one, which fires once, does no more.
            spent.add(found.rule.index)

    async def _asked(self, event: Event, until: float) -> Answer:
        try:
            return await asked_of(self._lookups, lambda: self._account.authority(event), self._left(until))
        except Busy:
            return Answer(Authority.UNKNOWN, "busy")
        except TimeoutError:
            return Answer(Authority.UNKNOWN, "timed-out")

    def _left(self, until: float) -> float:
        return max(0.0, until - self._clock.monotonic())

    def _undecided(self, event: Event, answer: Answer) -> Outcome:
        log().warning("lookup_failed", forge=self._kind, delivery=event.delivery, reason=answer.reason)
        self._desk.note(self._kind, delivery_of(event, reason=self._lookup_failed), "retry")
        return Outcome("retry", self._lookup_failed, resets=answer.resets)

    def _dropped(self, event: Event, drop: Drop) -> Outcome:
        log().info("dropped", delivery=event.delivery, reason=drop.value)
        self._desk.note(self._kind, delivery_of(event, reason=drop.value), "dropped")
        return Outcome("dropped", drop.value)

    def _handed(self, event: Event, fired: Fired, handed: Handed) -> Outcome:
        if handed.status == "failed":
            log().error("enqueue_failed", delivery=event.delivery, cause=handed.cause)
            self._desk.note(self._kind, delivery_of(event, trigger=fired.rule.index, reason=ENQUEUE_FAILED), "retry")
            return Outcome("retry", ENQUEUE_FAILED)
        if handed.status == "trigger-paused":
            # The store's own log tells of it already.
            log().info("dropped", delivery=event.delivery, reason=Drop.TRIGGER_PAUSED.value)
            return Outcome("dropped", Drop.TRIGGER_PAUSED.value)
        if handed.status == "coalesced":
            log().info("coalesced", delivery=event.delivery, repo=event.repo, jobId=handed.job_id)
            return Outcome("coalesced", job_id=handed.job_id)
        if handed.status == "duplicate":
            log().info("redelivered", delivery=event.delivery, repo=event.repo, jobId=handed.job_id)
            return Outcome("duplicate", job_id=handed.job_id)
        run, target = fired.rule.run, event.target
        log().info(
            "enqueued",
            delivery=event.delivery,
            repo=event.repo,
            target=target.number if target is not None else None,
            flow=fired.flow if run.command is None else None,
            replicas=handed.new,
        )
        return Outcome("queued", job_id=handed.job_id)

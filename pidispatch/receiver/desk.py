"""Where jobs are handed in: the store takes them, the forge is answered, and their tickets are published.

Once the store has a job it will be run, so the answer does not wait for the ticket. One that could not be published is
published by a worker's sweep (docs/explanation/queue.md).
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final, NamedTuple

from pidispatch.config.log import log
from pidispatch.config.settings import Settings
from pidispatch.jobs.delivered import Delivery
from pidispatch.jobs.route import route
from pidispatch.jobs.rows import JobState, Submission, Submitted, Ticket
from pidispatch.jobs.store import JobStore
from pidispatch.receiver.asking import Asked
from pidispatch.receiver.lanes import Batches, Lane, Promise
from pidispatch.receiver.sparing import Sparing
from pidispatch.values.errors import InfraError
from pidispatch.values.forge import JobKind

#: Threads that hand in, the events that one of them hands in together, and the most that waits for them. Two: one
#: waits for the store while the other publishes.
_THREADS: Final = 2
_TOGETHER: Final = 16
_WAITING: Final = 256
#: Entries of the log of deliveries that wait to be written.
_NOTES: Final = 1_000
#: What is told of several jobs for one event: the word that says most.
_ORDER: Final = ("spent", "submitted", "coalesced", "duplicate", "trigger-paused")


class Handed(NamedTuple):
    """What became of the jobs for one event."""

    #: As `Submitted.status`, or `failed`: the store did not take all of them.
    status: str
    #: The job that the status is about.
    job_id: str = ""
    #: Why it failed.
    cause: str | None = None
    #: How many jobs are new.
    new: int = 0


class _Wish(NamedTuple):
    """The jobs for one event, and who waits for what becomes of them."""

    asked: Sequence[Asked]
    promise: Promise[Handed]


class Desk:
    """The way to the store. `publish` and `ensure` may raise `InfraError`; the latter starts a server that is ours."""

    def __init__(
        self,
        store: JobStore,
        publish: Callable[[Sequence[Ticket]], None],
        settings: Settings,
        ensure: Callable[[], None],
        threads: int = _THREADS,
        waiting: int = _WAITING,
    ) -> None:
        self._store = store
        self._publish = publish
        self._settings = settings
        self._ensure = ensure
        # What comes at the same time goes to the store together: one round trip, one write to its disk.
        self._lane = Batches("hand-in", threads, waiting, self._hand_in, _TOGETHER)
        # Apart from the other, so that deliveries without a job never stand in the way of one with.
        self._notes = Lane("note", 1, _NOTES)
        self._sparing = Sparing()

    async def hand_in(self, asked: Sequence[Asked], within_s: float) -> Handed:
        """Hand in the jobs for one event; a second time for the same delivery makes up for what the first lacks.

        `failed` after so many seconds, where they may have been handed in all the same.
        """
        promise: Promise[Handed] = Promise()
        if not self._lane.offer(_Wish(asked, promise)):
            return Handed("failed", cause="busy")
        try:
            return await promise.within(within_s)
        except TimeoutError:
            return Handed("failed", cause="timed-out")

    def note(self, forge: JobKind, delivery: Delivery, verdict: str) -> None:
        """Have the log of deliveries tell of one that made no job; nothing hangs on it."""
        if not self._notes.offer(lambda: self._note(forge, delivery, verdict)) and self._sparing("notes"):
            log().warning("delivery_unlogged", cause="busy")

    def close(self, within_s: float) -> None:
        """End, with all done that was begun, or after that time."""
        if not self._lane.close(within_s):
            log().warning("hand_in_unfinished")
        self._notes.close(within_s)

    def _hand_in(self, wishes: list[_Wish]) -> None:
        # One that nobody waits for any more is sent again.
        wanted = [wish for wish in wishes if wish.promise.wanted]
        if not wanted:
            return
        try:
            answers = self._store.submit_all([self._submission(one) for wish in wanted for one in wish.asked])
        except InfraError as error:
            for wish in wanted:
                wish.promise.keep(Handed("failed", cause=error.cause))
            self._start_again()
        except Exception as error:
            if len(wanted) == 1:
                wanted[0].promise.fail(error)
                return
            # What cannot be handed in must not keep the others from it.
            for wish in wanted:
                self._hand_in([wish])
        else:
            found = iter(answers)
            for wish in wanted:
                wish.promise.keep(_handed(list(islice(found, len(wish.asked)))))
            self._announce([one for one in answers if not isinstance(one, InfraError)])

    def _submission(self, one: Asked) -> Submission:
        queue = route(one.job, self._settings)
        return Submission(one.job, queue, dedup_key=one.key, heed_pause=True, delivery=one.delivery)

    def _announce(self, found: Sequence[Submitted]) -> None:
        """Publish the tickets of new jobs, then of those that wait and whose ticket may never have been published.

        Never raises: the jobs are accepted.
        """
        self._publish_all([one.ticket for one in found if one.ticket is not None])
        for one in found:
            if one.status == "duplicate":
                self._announce_again(one.job_id)

    def _announce_again(self, job_id: str) -> None:
        try:
            row = self._store.row(job_id)
        except InfraError as error:
            log().warning("ticket_unpublished", jobIds=[job_id], cause=error.cause)
            return
        if row is not None and row.state is JobState.QUEUED:
            self._publish_all([row.ticket])

    def _publish_all(self, tickets: list[Ticket]) -> None:
        try:
            if tickets:
                self._publish(tickets)
        except Exception as error:
            cause = error.cause if isinstance(error, InfraError) else type(error).__name__
            log().warning("ticket_unpublished", jobIds=[ticket.job_id for ticket in tickets], cause=cause)

    def _start_again(self) -> None:
        try:
            self._ensure()
        except InfraError as error:
            log().warning("server_unavailable", cause=error.cause)

    def _note(self, forge: JobKind, delivery: Delivery, verdict: str) -> None:
        try:
            self._store.log_delivery(forge, delivery, verdict)
        except InfraError as error:
            if self._sparing(error.cause or ""):
                log().warning("delivery_unlogged", cause=error.cause)


def _handed(found: Sequence[Submitted | InfraError]) -> Handed:
    """What is told of the jobs for one event."""
    done = []
    for one in found:
        if isinstance(one, InfraError):
            return Handed("failed", cause=one.cause)
        done.append(one)
    told = min(done, key=lambda one: _ORDER.index(one.status))
    return Handed(told.status, told.job_id, new=sum(one.status == "submitted" for one in done))

"""Starts the jobs of schedules. Every worker with a triggers file has one, and any number of them is harmless.

An occurrence is handed in first and noted afterwards. Whoever is killed in between leaves it to the next look, of this
scheduler or of another, and the store takes its job once (docs/how-to/schedules.md).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from pidispatch.config.log import log
from pidispatch.config.settings import Settings
from pidispatch.jobs.route import route
from pidispatch.jobs.rows import Ticket
from pidispatch.jobs.store import JobStore
from pidispatch.triggers.entry import CronTrigger
from pidispatch.triggers.occurrences import Occurrence, Planned, edited, job_of, look, planned
from pidispatch.values.clock import Clock
from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits

#: An entry of the file with its place there.
Placed = tuple[int, CronTrigger]


@dataclass(frozen=True)
class _Known:
    """The file as the last look saw it."""

    entries: Sequence[Placed]
    schedules: tuple[Planned, ...]


class Scheduler:
    """Looks what falls due, again and again; for one thread. `entries` is asked at each look, and may change."""

    def __init__(
        self,
        entries: Callable[[], Sequence[Placed]],
        zone: ZoneInfo,
        store: JobStore,
        publish: Callable[[Ticket], None],
        settings: Settings,
        limits: Limits,
        clock: Clock,
    ) -> None:
        self._entries = entries
        self._zone = zone
        self._store = store
        self._publish = publish
        self._settings = settings
        self._limits = limits
        self._clock = clock
        self._known: _Known | None = None
        self._ahead: frozenset[str] = frozenset()
        self._torn: frozenset[str] = frozenset()
        self._paused: frozenset[str] = frozenset()

    def __call__(self) -> None:
        """One look. Raises `InfraError` where the store does not answer: the next look does it again."""
        entries = self._entries()
        known = self._known
        # By their values: the mark of a rule that has fired is an edit of the file, and says nothing of its schedules.
        if known is None or (known.entries is not entries and known.entries != entries):
            known = _Known(entries, planned((one for _, one in entries), self._zone))
        fresh = edited(self._known.schedules, known.schedules) if self._known is not None else frozenset()
        ids = [one.id for one in known.schedules]
        if known is not self._known:
            # Whoever starts a worker or edits the file has seen to it.
            self._store.forget_stalls(ids)
            self._torn = frozenset()
        last = self._store.dealt_with(ids)
        torn = self._torn_down(ids)
        served = [one for one in known.schedules if one.id not in torn]
        found = look(served, last, self._clock.now(), self._limits, fresh=fresh)
        for gone in found.passed:
            log().warning(
                "schedule_missed",
                scheduleId=gone.id,
                first=gone.first.isoformat(),
                latest=gone.latest.isoformat(),
                caughtUp=gone.caught_up,
            )
        self._tell_ahead(frozenset(found.ahead))
        by_id = {one.on.id: (index, one) for index, one in entries}
        for occurrence in found.fire:
            self._fire(by_id[occurrence.id], occurrence)
        self._store.deal_with({one: at for one, at in found.last.items() if last.get(one) != at})
        # Not before everything is told: a look that failed must know what was edited.
        self._known = known

    def _fire(self, placed: Placed, occurrence: Occurrence) -> None:
        index, trigger = placed
        job = job_of(trigger, index, occurrence.job_id)
        # Once: the next occurrence comes by itself.
        submitted = self._store.submit(job, queue=route(job, self._settings), max_attempts=1, heed_pause=True)
        if submitted.status == "trigger-paused":
            self._tell_paused(occurrence.id)
            return
        self._paused -= {occurrence.id}
        log().info("schedule_fired", scheduleId=occurrence.id, jobId=job.id, status=submitted.status)
        if submitted.ticket is not None:
            try:
                self._publish(submitted.ticket)
            except InfraError as error:
                # It is accepted; a sweep publishes the ticket.
                log().warning("ticket_unpublished", jobId=job.id, cause=error.cause)

    def _tell_paused(self, schedule: str) -> None:
        """Log, once for a pause, that what falls due of this schedule passes without a job."""
        if schedule not in self._paused:
            log().warning("schedule_paused", scheduleId=schedule)
            self._paused |= {schedule}

    def _torn_down(self, ids: Sequence[str]) -> frozenset[str]:
        """Schedules that lost one worker after the other: whatever their jobs do there, another one would be next."""
        stalls = self._store.stalls(ids)
        for one in sorted(set(stalls) - self._torn):
            if stalls[one] > self._settings.scheduler_stall_max:
                log().error("scheduler_torn_down", scheduleId=one, stalls=stalls[one])
                self._torn |= {one}
        return self._torn

    def _tell_ahead(self, ahead: frozenset[str]) -> None:
        for one in sorted(ahead - self._ahead):
            log().warning("schedule_ahead", scheduleId=one)
        self._ahead = ahead

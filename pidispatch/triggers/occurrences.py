"""Which occurrences of the schedules are to be run now: one look of a scheduler, decided without clock or store.

Any number of schedulers may look at the same schedules. They share the last occurrence that was dealt with of each
schedule, and an occurrence has one id, under which the store takes a job once. So the one who looks submits first and
moves the last on afterwards, never back: what comes between is done again by the next look, and makes no second job.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

from pidispatch.triggers.cron import Schedule
from pidispatch.triggers.entry import CronTrigger, Missed
from pidispatch.values.epoch import to_ms
from pidispatch.values.job import LocalJob, Matched
from pidispatch.values.limits import Limits


def cron_id(on_id: str, epoch_ms: int) -> str:
    """The id of one occurrence of a schedule, however many schedulers see it fall due."""
    return f"repeat:{on_id}:{epoch_ms}"


@dataclass(frozen=True)
class Planned:
    """A schedule of the file, in the zone of its worker."""

    id: str
    schedule: Schedule
    missed: Missed


@dataclass(frozen=True)
class Occurrence:
    """One instant at which a schedule falls due."""

    id: str
    at: datetime

    @property
    def job_id(self) -> str:
        """The id of its job."""
        return cron_id(self.id, to_ms(self.at))


@dataclass(frozen=True)
class Passed:
    """Occurrences that nobody was there for, from the first to the latest; how many there are is not counted."""

    id: str
    first: datetime
    latest: datetime
    #: Whether the latest is run now.
    caught_up: bool


@dataclass(frozen=True)
class Look:
    """What one look decided."""

    #: To be run, oldest first.
    fire: tuple[Occurrence, ...]
    passed: tuple[Passed, ...]
    #: For each schedule, the instant up to which it is dealt with; to be kept where it is later than what is known.
    last: Mapping[str, datetime]
    #: Schedules that are dealt with beyond now: the clock was set back, and they wait until it is there again.
    ahead: tuple[str, ...]


def planned(triggers: Iterable[CronTrigger], zone: tzinfo) -> tuple[Planned, ...]:
    """The schedules among the entries of a file, read in `zone`."""
    return tuple(
        Planned(one.on.id, Schedule.parse(one.on.pattern, zone), one.on.missed or Missed.SKIP) for one in triggers
    )


def edited(before: Iterable[Planned], after: Iterable[Planned]) -> frozenset[str]:
    """Ids that are new in `after`, or fall due at other instants there than in `before`."""
    known = {one.id: one.schedule for one in before}
    return frozenset(one.id for one in after if known.get(one.id) != one.schedule)


def look(
    schedules: Iterable[Planned],
    last: Mapping[str, datetime | None],
    now: datetime,
    limits: Limits,
    *,
    fresh: Collection[str] = (),
) -> Look:
    """What falls due at the aware instant `now`, by what is known as `last` of each schedule.

    A schedule that was never seen begins now, and so does one of `fresh`, which was put into the file or edited while
    its scheduler ran: nothing that was due before is made up for. An occurrence is on time for `on_time_s`; an older
    one was missed. Where `last` lies after `now`, nothing happens until the clock has passed it.
    """
    fire: list[Occurrence] = []
    passed: list[Passed] = []
    dealt: dict[str, datetime] = {}
    ahead: list[str] = []
    for one in schedules:
        known = last.get(one.id)
        if known is not None and known > now:
            ahead.append(one.id)
            dealt[one.id] = known
        elif known is None or one.id in fresh:
            dealt[one.id] = now
        else:
            late = _late(one, known, now, limits)
            on_time = [Occurrence(one.id, at) for at in one.schedule.due(max(known, _floor(now, limits)), now)]
            if late is not None:
                passed.append(late)
            if late is not None and late.caught_up:
                on_time.insert(0, Occurrence(one.id, late.latest))
            fire += on_time
            dealt[one.id] = max([known, *(each.at for each in on_time), *([late.latest] if late else [])])
    return Look(tuple(sorted(fire, key=lambda each: each.at)), tuple(passed), dealt, tuple(ahead))


def next_due(schedules: Iterable[Planned], now: datetime) -> Occurrence | None:
    """The next occurrence of all schedules after `now`; `None` where there are none."""
    coming = (Occurrence(one.id, one.schedule.next_after(now)) for one in schedules)
    return min(coming, key=lambda each: each.at, default=None)


def job_of(trigger: CronTrigger, index: int, job_id: str) -> LocalJob:
    """The job that the file's entry `index` asks for. What it leaves out is filled in when the job is picked up."""
    run = trigger.run
    return LocalJob(
        id=job_id,
        folder=Path(run.folder),
        task=run.task,
        flow=run.flow,
        provider=run.provider,
        model=run.model,
        max_turns=run.max_turns,
        max_tokens=run.max_tokens,
        image=run.image,
        github=run.github or None,
        breaker=trigger.on.id,
        trigger=Matched(id=trigger.on.id, index=index),
    )


def _floor(now: datetime, limits: Limits) -> datetime:
    """The instant after which what falls due is on time."""
    return now - timedelta(seconds=limits.on_time_s)


def _late(one: Planned, known: datetime, now: datetime, limits: Limits) -> Passed | None:
    """What was missed of a schedule between `known` and the instants that are on time."""
    latest = one.schedule.latest_due(known, _floor(now, limits))
    if latest is None:
        return None
    return Passed(one.id, one.schedule.next_after(known), latest, one.missed is Missed.ONCE)

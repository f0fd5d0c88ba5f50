"""What stands in a triggers file and how each entry stands: for a person, and as `triggers list --json` prints it."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.text import Text

from pidispatch.cli.entries import command_name, fires_on, name_of, runs_what
from pidispatch.cli.heard import is_served
from pidispatch.cli.snapshot import iso, pause_document
from pidispatch.cli.status_view import pause_words
from pidispatch.cli.table import table_of
from pidispatch.config.text import printable
from pidispatch.jobs.rows import JobState, Row
from pidispatch.jobs.triggered import TriggerPaused
from pidispatch.triggers.entry import CronTrigger, ForgeTrigger
from pidispatch.triggers.identity import breaker_of
from pidispatch.values.forge import FORGES

State = Literal["armed", "paused", "spent", "not served", "unknown"]


@dataclass(frozen=True)
class Mark:
    """That a rule has fired, or was disarmed by hand."""

    #: As the file has it; an instant where pi-dispatch wrote it.
    at: str
    job_id: str | None
    #: Where it stands: in the file, or in the store alone.
    by: Literal["file", "store"]


@dataclass(frozen=True)
class Told:
    """One entry. What the server knows is left out (`None`) where it does not answer."""

    index: int
    trigger: CronTrigger | ForgeTrigger
    #: Whether the server answered.
    known: bool
    #: Of a schedule: the next instants, up to when it is dealt with, the job of that instant, and what came of it.
    coming: tuple[datetime, ...] = ()
    last: datetime | None = None
    row: Row | None = None
    changed: bool | None = None
    mark: Mark | None = None
    paused: TriggerPaused | None = None

    @property
    def outcome(self) -> str | None:
        """How its last occurrence went: a state of its job, or the reason it ended with."""
        if self.row is None:
            return None
        return self.row.reason if self.row.state.terminal and self.row.reason else self.row.state.value

    @property
    def served(self) -> bool:
        """Whether this version hears what fires it."""
        return isinstance(self.trigger, CronTrigger) or is_served(self.trigger.run.kind)

    @property
    def state(self) -> State:
        """Whether it can fire, and if not, why: what stands in its way longest; `unknown` without the server's word."""
        if not self.served:
            return "not served"
        if self.mark is not None:
            return "spent"
        if not self.known:
            return "unknown"
        return "armed" if self.paused is None else "paused"


def document(path: Path, zone: ZoneInfo, found: Sequence[Told]) -> dict[str, Any]:
    """What `--json` prints."""
    return {"file": str(path), "tz": zone.key, "triggers": [_entry(one) for one in found]}


def _entry(one: Told) -> dict[str, Any]:
    trigger = one.trigger
    cron = trigger if isinstance(trigger, CronTrigger) else None
    return {
        "id": cron.on.id if cron is not None else None,
        "index": one.index,
        "type": trigger.on.type,
        "kind": trigger.run.kind,
        "when": fires_on(trigger),
        "runs": runs_what(trigger),
        "pattern": cron.on.pattern if cron is not None else None,
        "missed": (cron.on.missed or "skip") if cron is not None else None,
        "folder": str(cron.run.folder) if cron is not None else None,
        "flow": trigger.run.flow,
        "command": command_name(trigger.run),
        "next": [iso(at) for at in one.coming],
        "last": iso(one.last),
        "jobId": None if one.row is None else one.row.id,
        "outcome": one.outcome,
        "changed": one.changed,
        "state": one.state,
        "served": one.served,
        "spent": None if one.mark is None else {"at": one.mark.at, "jobId": one.mark.job_id, "by": one.mark.by},
        "paused": None if one.paused is None else pause_document(one.paused),
    }


def show(console: Console, found: Sequence[Told], zone: ZoneInfo, now: datetime) -> None:
    """All entries: schedules, then rules, then what keeps some of them from firing."""
    schedules = [(one, one.trigger) for one in found if isinstance(one.trigger, CronTrigger)]
    rules = [one for one in found if isinstance(one.trigger, ForgeTrigger)]
    if schedules:
        rows = [[Text(printable(cell)) for cell in _cron(one, cron, zone, now)] for one, cron in schedules]
        console.print(table_of(console, ("ID", "PATTERN", "NEXT", "LAST", "OUTCOME", "FOLDER"), rows, cut=("FOLDER",)))
        console.print(Text(f"in the zone {zone.key}"))
    if rules:
        if schedules:
            console.print()
        rows = [[Text(printable(cell)) for cell in _rule(one)] for one in rules]
        console.print(table_of(console, ("TRIGGER", "ON", "RUNS", "FORGE", "STATE"), rows, cut=("ON", "RUNS")))
    ids = {cron.on.id for _, cron in schedules}
    for line in (line for one in found for line in _in_the_way(one, ids)):
        console.print(Text(line, "yellow"), soft_wrap=True)


def _cron(one: Told, cron: CronTrigger, zone: ZoneInfo, now: datetime) -> tuple[str, ...]:
    outcome = _OUTCOMES.get(one.outcome or "", one.outcome or "-")
    return (
        cron.on.id,
        cron.on.pattern,
        ", ".join(_shown(at, zone, now) for at in one.coming),
        "-" if one.row is None or one.last is None else _shown(one.last, zone, now),
        f"{outcome}, changed nothing" if one.changed is False else outcome,
        str(cron.run.folder),
    )


def _rule(one: Told) -> tuple[str, ...]:
    return str(one.index), fires_on(one.trigger), runs_what(one.trigger), one.trigger.run.kind, one.state


def _in_the_way(one: Told, ids: Collection[str]) -> Iterator[str]:
    """What keeps an entry from firing, and what lets it. `ids` are those of the schedules."""
    name = printable(name_of(one.index, one.trigger))
    if not one.served:
        title = FORGES[one.trigger.run.kind].title
        yield f"{name} cannot fire: this version does not hear {title}"
    if (mark := one.mark) is not None:
        by = f"has fired, with the job {printable(mark.job_id)}" if mark.job_id is not None else "was disarmed by hand"
        where = "" if mark.by == "file" else ", which the server knows and the file does not say"
        yield f"{name} {by} ({printable(mark.at)}){where}; to arm it again: pi-dispatch triggers rearm {one.index}"
    if (paused := one.paused) is not None:
        since = f"{paused.at.astimezone(UTC):%Y-%m-%d %H:%MZ}"
        # Its own name where it is a schedule's, or where its place is one, which would be taken for that schedule.
        by_name = isinstance(one.trigger, CronTrigger) or str(one.index) in ids
        again = breaker_of(one.trigger) if by_name else one.index
        yield f"{name} is PAUSED since {since}: {pause_words(paused)}; to go on: pi-dispatch triggers resume {again}"


#: States that say by themselves how it went.
_OUTCOMES: Final = {JobState.QUEUED.value: "waits", JobState.DEFERRED.value: "is held", JobState.ACTIVE.value: "runs"}


def _shown(at: datetime, zone: ZoneInfo, now: datetime) -> str:
    there = at.astimezone(zone)
    year = "" if there.year == now.astimezone(zone).year else f"{there.year:04}-"
    return f"{year}{there:%m-%d %H:%M:%S}" if there.second else f"{year}{there:%m-%d %H:%M}"

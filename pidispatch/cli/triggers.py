"""`pi-dispatch triggers`: what the triggers file starts, when next, and how it went last."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import click
from rich.text import Text

from pidispatch.cli.at_queue import AtQueue, at_queue
from pidispatch.cli.snapshot import iso
from pidispatch.cli.table import table_of
from pidispatch.cli.view import QuietConsole, error_console, note
from pidispatch.config.operator_file import read_text
from pidispatch.config.settings import load_only
from pidispatch.config.text import printable
from pidispatch.config.zone import schedule_zone
from pidispatch.jobs.rows import JobState, Row
from pidispatch.triggers.entry import CronTrigger
from pidispatch.triggers.file import parse_triggers
from pidispatch.triggers.occurrences import Occurrence, Planned, planned
from pidispatch.values.errors import ConfigError, InfraError

#: Instants that are told of each schedule.
_NEXT: Final = 3


@dataclass(frozen=True)
class Told:
    """One schedule."""

    index: int
    trigger: CronTrigger
    coming: tuple[datetime, ...]
    #: Up to when it is dealt with, and the job of that instant; `None` where the server does not say.
    last: datetime | None
    row: Row | None

    @property
    def outcome(self) -> str | None:
        """How its last occurrence went: a state of its job, or the reason it ended with."""
        if self.row is None:
            return None
        return self.row.reason if self.row.state.terminal and self.row.reason else self.row.state.value


@click.group()
def triggers() -> None:
    """Look at what starts jobs."""


@triggers.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_(as_json: bool) -> int:
    """List the schedules of PI_TRIGGERS_FILE: when each falls due next, and how its last job went.

    Without a server that answers, how it went is left out. Exit code 2: the file is missing or broken.
    """
    settings = load_only(("PI_TRIGGERS_FILE", "PI_TZ"))
    if (path := settings.triggers_file) is None:
        raise ConfigError("no triggers file is named: name one with PI_TRIGGERS_FILE", "operator-file")
    zone = schedule_zone(settings.tz)
    now = datetime.now(UTC)
    found = _told(path, zone, now)
    if as_json:
        click.echo(json.dumps(document(path, zone, found), indent=2))
        return 0
    console = QuietConsole()
    if not found:
        note(console, f"{printable(str(path))} holds no trigger")
        return 0
    rows = [[Text(printable(cell)) for cell in row] for row in _rows(found, zone, now)]
    console.print(table_of(console, ("ID", "PATTERN", "NEXT", "LAST", "OUTCOME", "FOLDER"), rows, cut=("FOLDER",)))
    console.print(Text(f"in the zone {zone.key}"))
    return 0


def document(path: Path, zone: ZoneInfo, found: tuple[Told, ...]) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "file": str(path),
        "tz": zone.key,
        "triggers": [
            {
                "id": one.trigger.on.id,
                "index": one.index,
                "type": one.trigger.on.type,
                "pattern": one.trigger.on.pattern,
                "missed": (one.trigger.on.missed or "skip"),
                "folder": str(one.trigger.run.folder),
                "flow": one.trigger.run.flow,
                "next": [iso(at) for at in one.coming],
                "last": iso(one.last),
                "jobId": None if one.row is None else one.row.id,
                "outcome": one.outcome,
            }
            for one in found
        ],
    }


def _told(path: Path, zone: ZoneInfo, now: datetime) -> tuple[Told, ...]:
    file = parse_triggers(read_text(path), path)
    schedules = planned((one for _, one in file.schedules), zone)
    last: Mapping[str, datetime | None] = {}
    jobs: dict[str, Row | None] = {}
    try:
        with at_queue() as queue:
            last = queue.store.dealt_with([one.id for one in schedules])
            jobs = {one.id: _job_of(queue, one, last[one.id]) for one in schedules}
    except InfraError as error:
        note(error_console(), f"how the last ones went is not known: {printable(error.message)}")
    return tuple(
        Told(index, trigger, tuple(one.schedule.upcoming(now, _NEXT)), last.get(one.id), jobs.get(one.id))
        for (index, trigger), one in zip(file.schedules, schedules, strict=True)
    )


def _job_of(queue: AtQueue, one: Planned, last: datetime | None) -> Row | None:
    """The job of the occurrence that was dealt with last; what is older than its row is on record."""
    return None if last is None else queue.store.row(Occurrence(one.id, last).job_id)


def _rows(found: tuple[Told, ...], zone: ZoneInfo, now: datetime) -> Iterator[tuple[str, ...]]:
    for one in found:
        coming = ", ".join(_shown(at, zone, now) for at in one.coming)
        yield (
            one.trigger.on.id,
            one.trigger.on.pattern,
            coming,
            "-" if one.row is None or one.last is None else _shown(one.last, zone, now),
            _OUTCOMES.get(one.outcome or "", one.outcome or "-"),
            str(one.trigger.run.folder),
        )


#: States that say by themselves how it went.
_OUTCOMES: Final = {JobState.QUEUED.value: "waits", JobState.DEFERRED.value: "is held", JobState.ACTIVE.value: "runs"}


def _shown(at: datetime, zone: ZoneInfo, now: datetime) -> str:
    there = at.astimezone(zone)
    year = "" if there.year == now.astimezone(zone).year else f"{there.year:04}-"
    return f"{year}{there:%m-%d %H:%M:%S}" if there.second else f"{year}{there:%m-%d %H:%M}"

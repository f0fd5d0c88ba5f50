"""`pi-dispatch triggers`: what the triggers file starts and how it went last; what is paused or spent goes on again."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import click

from pidispatch.cli.at_queue import AtQueue, at_queue
from pidispatch.cli.completion import complete_one_shots, complete_triggers
from pidispatch.cli.entries import fires_on, name_of, read_triggers
from pidispatch.cli.snapshot import iso
from pidispatch.cli.status_view import pause_words
from pidispatch.cli.triggers_view import Mark, Told, document, show
from pidispatch.cli.view import QuietConsole, error_console, note
from pidispatch.config.settings import load_only
from pidispatch.config.text import printable
from pidispatch.config.zone import schedule_zone
from pidispatch.jobs.rows import Row
from pidispatch.jobs.store import JobStore
from pidispatch.jobs.triggered import Spent, TriggerPaused
from pidispatch.triggers.entry import CronTrigger, ForgeTrigger, TriggersFile
from pidispatch.triggers.identity import breaker_of, oneshot_of
from pidispatch.triggers.occurrences import Occurrence, Planned, planned
from pidispatch.values.errors import DispatchError, InfraError

#: Instants that are told of each schedule.
_NEXT: Final = 3
#: Entries that are named to one who named none of them.
_NAMED: Final = 10
#: Digits that no place in a file has.
_DIGITS: Final = 10


@click.group()
def triggers() -> None:
    """Look at what starts jobs, and let it start some again."""


@triggers.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_(as_json: bool) -> int:
    """List the entries of the triggers file: when each schedule falls due next and how its last job went; what fires
    each rule, and whether it can: it may be spent, paused, or of a forge that this version does not hear.

    The file is that of PI_TRIGGERS_FILE, else ./triggers.json, which no worker runs schedules of. Without a server that
    answers, what only it knows is left out, and whether an entry is armed is unknown. Exit code 2: the file is missing
    or broken.
    """
    settings = load_only(("PI_TRIGGERS_FILE", "PI_TZ"))
    path, file = read_triggers(settings.triggers_file)
    zone = schedule_zone(settings.tz)
    now = datetime.now(UTC)
    found = _told(file, planned((one for _, one in file.schedules), zone), now)
    if as_json:
        click.echo(json.dumps(document(path, zone, found), indent=2))
        return 0
    console = QuietConsole()
    if settings.triggers_file is None and file.schedules:
        note(error_console(), "PI_TRIGGERS_FILE is not set here: a worker without it runs none of the schedules")
    if found:
        show(console, found, zone, now)
    else:
        note(console, f"{printable(str(path))} holds no trigger")
    return 0


@triggers.command()
@click.argument("entry", metavar="ID|INDEX", shell_complete=complete_triggers)
def resume(entry: str) -> int:
    """Let a paused trigger start jobs again: a schedule by its ID, a rule by its place in the file, from 0.

    A trigger is paused when PI_BREAKER_RUNS runs of it, one after the other, came to nothing. They are forgotten. A
    rule that is no longer in the file is named as `pi-dispatch status` calls it. Exit code 1: there is no such trigger,
    or no server that answers.
    """
    with at_queue() as queue:
        paused = queue.store.paused_triggers()
        breaker, called = _paused_one(entry, paused)
        _, was = queue.store.rearm(breaker=breaker)
    if not was:
        click.echo(f"{called} is not paused")
        return 0
    why = f": {pause_words(paused[breaker])}" if breaker in paused else ""
    click.echo(f"{called} starts jobs again; it was paused{why}")
    return 0


@triggers.command()
@click.argument("index", metavar="INDEX", type=click.IntRange(min=0), shell_complete=complete_one_shots)
def rearm(index: int) -> int:
    """Arm a rule again that fires once and has: by its place in the triggers file, from 0.

    Its mark is taken out of the file (PI_TRIGGERS_FILE, else ./triggers.json) and out of the server. Exit code 1: there
    is no such rule, no server answers, or the file cannot be written.
    """
    path, file = read_triggers()
    trigger = _entry_at(index, file)
    oneshot = oneshot_of(trigger)
    if oneshot is None:
        raise click.ClickException(f"trigger {index} does not fire once, so no mark keeps it from firing")
    assert isinstance(trigger, ForgeTrigger), "a schedule never fires once"
    with at_queue() as queue:
        # The store first: where this ends in between, the mark in the file holds.
        in_store, _ = queue.store.rearm(oneshot=oneshot)
    click.echo("its mark on the server is gone" if in_store else "the server had no mark of it")
    if trigger.mark is None:
        click.echo("the file has no mark of it")
    else:
        _rearm_file(path, index)
        click.echo(f"its mark in {printable(str(path))} is gone")
    click.echo(f"trigger {index} is armed: {printable(fires_on(trigger))}")
    return 0


def _rearm_file(path: Path, index: int) -> None:
    """Take the mark out of the file. Raises `click.ClickException`."""
    from pidispatch.triggers.disarm import rearm as rearm_file

    try:
        rearm_file(path, index)
    except (DispatchError, OSError) as error:
        why = error.message if isinstance(error, DispatchError) else f"{printable(str(path))}: {error.strerror}"
        raise click.ClickException(
            f"trigger {index} is still spent by the file: {printable(why)}. The server's mark is gone: take "
            '"disarmed" out of the entry by hand, or call this again where the file can be written'
        ) from None


def _told(file: TriggersFile, schedules: tuple[Planned, ...], now: datetime) -> tuple[Told, ...]:
    """Every entry. Without a server that answers, what it knows is left out, and that is said."""
    seen = None
    try:
        with at_queue() as queue:
            seen = _seen(queue, file, [one.id for one in schedules])
    except InfraError as error:
        note(
            error_console(),
            f"how the last ones went, and which triggers are paused or spent, is not known: {printable(error.message)}",
        )
    coming = {one.id: tuple(one.schedule.upcoming(now, _NEXT)) for one in schedules}
    return tuple(_entry(index, trigger, coming, seen) for index, trigger in enumerate(file.triggers))


def _entry(
    index: int, trigger: CronTrigger | ForgeTrigger, coming: Mapping[str, tuple[datetime, ...]], seen: "_Seen | None"
) -> Told:
    known, seen = seen is not None, seen or _Seen({}, {}, {}, {}, {})
    paused = seen.paused.get(breaker_of(trigger))
    if isinstance(trigger, ForgeTrigger):
        return Told(index, trigger, known, mark=_mark(trigger, seen.spent), paused=paused)
    name = trigger.on.id
    return Told(
        index,
        trigger,
        known,
        coming=coming[name],
        last=seen.last.get(name),
        row=seen.rows.get(name),
        changed=seen.changed.get(name),
        paused=paused,
    )


def _mark(trigger: ForgeTrigger, spent: Mapping[str, Spent]) -> Mark | None:
    if (mark := trigger.mark) is not None:
        return Mark(mark.at, mark.job_id, "file")
    stored = spent.get(oneshot_of(trigger) or "")
    return None if stored is None else Mark(iso(stored.at) or "", stored.job_id, "store")


class _Seen(NamedTuple):
    """What the server knows: by the id of a schedule, of a pause, and of a mark."""

    last: Mapping[str, datetime | None]
    rows: Mapping[str, Row | None]
    changed: Mapping[str, bool | None]
    paused: Mapping[str, TriggerPaused]
    spent: Mapping[str, Spent]


def _seen(queue: AtQueue, file: TriggersFile, schedules: list[str]) -> _Seen:
    store = queue.store
    last = store.dealt_with(schedules)
    # The job of the occurrence that was dealt with last; what is older than its row is on record.
    rows = {one: None if at is None else _row(store, Occurrence(one, at)) for one, at in last.items()}
    return _Seen(
        last=last,
        rows=rows,
        changed={one: _changed(queue, row) for one, row in rows.items()},
        paused=store.paused_triggers(),
        spent=store.spent([mark for _, one in file.forge_rules if (mark := oneshot_of(one)) is not None]),
    )


def _row(store: JobStore, occurrence: Occurrence) -> Row | None:
    """The row of its job. One that a later version wrote is told and left out, so that it hides no other entry."""
    try:
        return store.row(occurrence.job_id)
    except InfraError as error:
        if error.cause != "row-unreadable":
            raise
        note(error_console(), f"how the last one went is not known: {printable(error.message)}")
        return None


def _changed(queue: AtQueue, row: Row | None) -> bool | None:
    record = None if row is None or not row.state.terminal else queue.store.record_of(row)
    return None if record is None else record.changed


def _paused_one(entry: str, paused: Mapping[str, TriggerPaused]) -> tuple[str, str]:
    """What the runs of a trigger are counted under, and what it is called.

    Names go before places, as an id may look like one, and triggers of the file before those that only a pause knows;
    without a file that can be read the pauses alone are looked into. Raises `click.ClickException`.
    """
    known: tuple[CronTrigger | ForgeTrigger, ...] = ()
    fault = ""
    try:
        known = read_triggers()[1].triggers
    except DispatchError as error:
        fault = f" The triggers file tells no more: {error.message}"
    named = {breaker_of(one): at for at, one in reversed(tuple(enumerate(known)))}
    at = named.get(entry, int(entry) if entry.isascii() and entry.isdigit() and len(entry) < _DIGITS else -1)
    # The id of a schedule that is gone may look like the place of an entry that is there.
    gone = entry in paused and entry not in named
    if 0 <= at < len(known) and not (gone and breaker_of(known[at]) not in paused):
        return breaker_of(known[at]), name_of(at, known[at])
    if entry in paused:
        return entry, f"trigger {printable(entry)}"
    raise click.ClickException(f"there is no trigger {printable(entry)!r}. {_there(known, paused)}{printable(fault)}")


def _entry_at(index: int, file: TriggersFile) -> CronTrigger | ForgeTrigger:
    if index < len(file.triggers):
        return file.triggers[index]
    raise click.ClickException(f"there is no trigger {index}. {_there(file.triggers, {})}")


def _there(known: Sequence[CronTrigger | ForgeTrigger], paused: Mapping[str, TriggerPaused]) -> str:
    """The entries there are, and the paused triggers that none of them is."""
    names = [f"{at} ({one.on.id if isinstance(one, CronTrigger) else fires_on(one)})" for at, one in enumerate(known)]
    names += [name for name in paused if name not in {breaker_of(one) for one in known}]
    if not names:
        return "None is known"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"There are: {', '.join(printable(one) for one in names[:_NAMED])}{more}."

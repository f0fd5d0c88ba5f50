"""`pi-dispatch deliveries`: what became of the last events of each forge; also of those that come."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import click
from rich.console import Console
from rich.text import Text

from pidispatch.cli.at_queue import at_queue
from pidispatch.cli.options import POSITIVE_INT
from pidispatch.cli.snapshot import iso
from pidispatch.cli.streams import reader_is_gone
from pidispatch.cli.table import table_of
from pidispatch.cli.view import QuietConsole, error_console, note
from pidispatch.cli.wait import Pause, signalled
from pidispatch.config.text import printable
from pidispatch.jobs.deliveries import Delivered, Source
from pidispatch.jobs.store import JobStore
from pidispatch.values.errors import InfraError
from pidispatch.values.forge import FORGES, JobKind
from pidispatch.values.limits import Limits

#: Events that are shown to a person who does not say how many.
DEFAULT_ROWS: Final = 50
#: Seconds between two looks of `--follow`.
EVERY_S: Final = 1.0
COLUMNS: Final = ("WHEN", "FORGE", "EVENT", "TARGET", "VERDICT", "WHY/JOB")
#: Widths of all columns but the last, for lines that come one by one.
_WIDTHS: Final = (20, 8, 32, 28, 9)


@click.command()
@click.option("--forge", type=click.Choice([one.value for one in FORGES]), help="Events of one forge alone.")
@click.option("--limit", type=POSITIVE_INT, help=f"Most events to show. Default: {DEFAULT_ROWS}; all with --json.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; with --follow one for each event.")
@click.option("-f", "--follow", is_flag=True, help="Go on with those that come, until Ctrl-C.")
def deliveries(forge: str | None, limit: int | None, as_json: bool, follow: bool) -> int:
    """List the last events that forges sent and receivers took for authentic, newest last. Times are in UTC.

    The log has ids and fixed words, nothing of a payload, and keeps the last 1,000 of each forge. Only the server's
    variables are read. Exit code 1: the server does not run, or does not answer.
    """
    forges = [JobKind(forge)] if forge is not None else list(FORGES)
    most = limit or (Limits().deliveries if as_json else DEFAULT_ROWS)
    with at_queue() as queue:
        log = Log(queue.store, forges)
        if follow:
            with signalled() as pause:
                follow_log(log, most, pause, as_json=as_json)
            return 0
        found = log.new(most)
        heard = [one for one in queue.store.sources() if one.forge in forges]
    if limit is not None or not as_json:
        found = found[-most:]
    if as_json:
        click.echo(json.dumps(document(found, heard), indent=2))
    elif found:
        console = QuietConsole()
        rows = [[Text(printable(cell)) for cell in cells(one)] for one in found]
        console.print(table_of(console, COLUMNS, rows, cut=("EVENT", "TARGET")))
    else:
        note(error_console(), nothing_came(heard))
    return 0


class Log:
    """The log of some forges, read on and on."""

    def __init__(self, store: JobStore, forges: Iterable[JobKind]) -> None:
        self._store = store
        #: The entry up to which each forge's is read.
        self._after = dict.fromkeys(forges, "")

    def new(self, most: int) -> list[Delivered]:
        """What came since the last call, at most the last `most` of each forge, oldest first. Raises `InfraError`."""
        found: list[Delivered] = []
        for forge, after in self._after.items():
            came = self._store.deliveries(forge, most, after)
            if came:
                self._after[forge] = came[-1].entry
            found += came
        return sorted(found, key=lambda one: one.at)


def document(found: Sequence[Delivered], heard: Sequence[Source]) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "deliveries": [entry(one) for one in found],
        "sources": [{"forge": one.forge.value, "since": iso(one.since), "last": iso(one.last)} for one in heard],
    }


def entry(one: Delivered) -> dict[str, Any]:
    """One event as `--json` prints it."""
    delivery = one.delivery
    return {
        "at": iso(one.at),
        "forge": one.forge.value,
        "id": delivery.id,
        "event": delivery.event,
        "action": delivery.action,
        "target": delivery.target,
        "verdict": one.verdict,
        "reason": delivery.reason,
        "trigger": delivery.trigger,
        "jobId": one.job_id,
    }


def cells(one: Delivered) -> tuple[str, ...]:
    """One event as a person sees it."""
    delivery = one.delivery
    event = f"{delivery.event} {delivery.action}" if delivery.action else delivery.event
    when = f"{one.at:%Y-%m-%d %H:%M:%SZ}"
    return when, one.forge.value, event, delivery.target or "-", one.verdict, delivery.reason or one.job_id or "-"


def nothing_came(heard: Sequence[Source]) -> str:
    """What is said of an empty log, and where to look."""
    if not heard:
        return (
            "no event is logged, and no receiver has said lately that it hears a forge: start one with "
            "pi-dispatch receiver, and see that it uses the same server"
        )
    names = ", ".join(f"{FORGES[one.forge].title} since {one.since:%Y-%m-%d %H:%MZ}" for one in heard)
    return (
        f"no event is logged; a receiver hears {names}. Look at the forge's list of recent deliveries, in its "
        "settings of the webhook: with none there, tick the events; with 401 the secret is another one than the "
        "receiver's; with no answer the address does not lead to it"
    )


def follow_log(log: Log, most: int, pause: Pause, *, as_json: bool) -> None:
    """One line an event, until somebody ends it or nobody reads any more."""
    console = QuietConsole()
    if not as_json:
        _line(console, COLUMNS)
    first, told = True, None
    for found, fault in _looks(log, most, pause):
        # What stood there already is bounded by what was asked for; of what comes nothing is left out.
        for one in found[-most:] if first else found:
            if as_json:
                click.echo(json.dumps(entry(one), separators=(",", ":")))
            else:
                _line(console, cells(one))
        sys.stdout.flush()
        if fault is not None and fault != told:
            note(error_console(), printable(fault))
        first, told = first and fault is not None, fault


def _looks(log: Log, most: int, pause: Pause) -> Iterator[tuple[list[Delivered], str | None]]:
    """What is new at one look after the other, or why nothing can be told."""
    while True:
        try:
            yield log.new(most), None
            most = Limits().deliveries
        except InfraError as error:
            yield [], error.message
        if reader_is_gone(sys.stdout) or pause(EVERY_S):
            return


def _line(console: Console, parts: Sequence[str]) -> None:
    *columns, last = (printable(one) for one in parts)
    text = "  ".join([*(f"{one:<{width}}" for one, width in zip(columns, _WIDTHS, strict=True)), last])
    console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)

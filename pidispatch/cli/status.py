"""`pi-dispatch status`: what runs, what waits, what is held and why, and who is there to take it."""

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console, Group, RenderableType
from rich.text import Text

from pidispatch.cli.at_queue import AtQueue, at_queue
from pidispatch.cli.heard import unheard_rules
from pidispatch.cli.snapshot import Snapshot, as_document
from pidispatch.cli.status_view import rendered
from pidispatch.cli.streams import reader_is_gone
from pidispatch.cli.view import QuietConsole, error_console, note
from pidispatch.config.text import printable
from pidispatch.server.client import ServerFacts, check_server
from pidispatch.values.errors import InfraError

if TYPE_CHECKING:
    from pidispatch.cli.wait import Pause

#: Jobs that run, and jobs that are held, which are shown one by one.
SHOWN: Final = 20
#: The same for `--json`.
LISTED: Final = 1_000
#: Seconds between two looks of `--watch`.
EVERY_S: Final = 1.0


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; with --watch one a line.")
@click.option("--watch", is_flag=True, help="Look again every second, until Ctrl-C.")
def status(as_json: bool, watch: bool) -> int:
    """Show the queue: what runs, what waits, what is held, why and until when, and which workers are there.

    Only the server's variables are read, and PI_TRIGGERS_FILE where it can be, so that it works while any other setting
    is broken. Exit code 1: the server
    does not run, or does not answer.
    """
    with at_queue() as queue:
        if not watch:
            _print(QuietConsole(), look(queue, LISTED if as_json else SHOWN, queue.server.facts), as_json=as_json)
            return 0
        # Imported here: one look waits for nothing, and is to be over in a moment.
        from pidispatch.cli.wait import signalled

        with signalled() as pause:
            if as_json:
                _lines(queue, pause)
            else:
                _watch(queue, pause)
    return 0


def look(queue: AtQueue, most: int, facts: ServerFacts | None = None) -> Snapshot:
    """The queue as it stands now; `facts` are the server's, where it has just told them. Raises `InfraError`."""
    return Snapshot(
        where=queue.where,
        server=facts or check_server(queue.server.client, queue.server.address),
        overview=queue.store.overview(most),
        workers=queue.store.workers(),
        sources=queue.store.sources(),
        paused=queue.store.paused_triggers(),
        unheard=unheard_rules(),
    )


def _print(console: Console, seen: Snapshot, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(as_document(seen), indent=2))
    else:
        console.print(rendered(seen, console))


def _lines(queue: AtQueue, pause: "Pause") -> None:
    """One line a look. A server that is away is told on standard error, once, and looked for again."""
    told = None
    for seen, fault in _looks(queue, LISTED, pause):
        if seen is not None:
            click.echo(json.dumps(as_document(seen), separators=(",", ":")))
        told = _note_once(fault, told)


def _watch(queue: AtQueue, pause: "Pause") -> None:
    from rich.live import Live

    console, told = QuietConsole(), None
    if not console.is_terminal:
        for seen, fault in _looks(queue, SHOWN, pause):
            if seen is not None:
                console.print(rendered(seen, console))
                console.print()
            told = _note_once(fault, told)
        return
    shown: RenderableType = Group()
    with Live(shown, console=console, auto_refresh=False, vertical_overflow="crop") as live:
        for seen, fault in _looks(queue, SHOWN, pause):
            shown = shown if seen is None else rendered(seen, console)
            # What is shown of a server that is away is what it said last.
            live.update(shown if fault is None else Group(Text(printable(fault), "bold yellow"), shown), refresh=True)


def _note_once(fault: str | None, told: str | None) -> str | None:
    if fault is not None and fault != told:
        note(error_console(), fault)
    return fault


def _looks(queue: AtQueue, most: int, pause: "Pause") -> Iterator[tuple[Snapshot | None, str | None]]:
    """One look after the other, or why there is none, until somebody ends it or nobody reads any more."""
    while True:
        try:
            yield look(queue, most), None
        except InfraError as error:
            yield None, error.message
        if reader_is_gone(sys.stdout) or pause(EVERY_S):
            return

"""`pi-dispatch limits`: everything that can keep a job from starting, how full it is, and when it frees."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import click
from rich.console import Console, Group, RenderableType
from rich.text import Text

from pidispatch.cli.at_queue import at_queue
from pidispatch.cli.quiet import Quiet, quiet_hours
from pidispatch.cli.snapshot import Snapshot, iso
from pidispatch.cli.status import LISTED, SHOWN, look
from pidispatch.cli.table import table_of
from pidispatch.cli.view import QuietConsole
from pidispatch.config.settings import load_only
from pidispatch.config.text import printable
from pidispatch.money.budget import SOFT_VARIABLE, TOKENS_VARIABLE, VARIABLES
from pidispatch.money.standing import WindowSeen, keys, standing

#: Variables that set a bound; no other setting is read.
_CAPS: Final = (*VARIABLES.values(), SOFT_VARIABLE, TOKENS_VARIABLE)
#: Cells of a bar.
_BAR: Final = 20


@dataclass(frozen=True)
class Bounds:
    """What is shown."""

    queue: Snapshot
    windows: tuple[WindowSeen, ...]
    quiet: tuple[Quiet, ...] = ()


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def limits(as_json: bool) -> int:
    """Show every window, slot, pause and hold: how full it is, and when it frees.

    Windows are those of the server, for all workers together; their caps are read from this environment, and a worker
    that has others judges by its own. So it is with the quiet hours of PI_PAUSE_WINDOWS_FILE. Only the server's
    variables and these are read. Exit code 1: the server does not run, or does not answer.
    """
    settings = load_only(_CAPS)
    with at_queue() as queue:
        seen = look(queue, LISTED if as_json else SHOWN, queue.server.facts)
        now = seen.overview.at
        bounds = Bounds(seen, standing(settings, queue.store.counted(keys(now)), now), quiet_hours())
    if as_json:
        click.echo(json.dumps(document(bounds), indent=2))
    else:
        console = QuietConsole()
        console.print(rendered(bounds, console))
    return 0


def document(bounds: Bounds) -> dict[str, Any]:
    """What `--json` prints."""
    queue = bounds.queue
    return {
        "at": iso(queue.overview.at),
        "windows": [
            {
                "window": one.window,
                "counted": one.counted,
                "cap": one.cap,
                "holdsFrom": one.holds_from,
                "full": one.full,
                "frees": iso(one.frees),
                "variable": one.variable,
            }
            for one in bounds.windows
        ],
        "slots": [
            {"worker": worker.name, "taken": worker.told("running"), "slots": worker.told("slots")}
            for worker in queue.workers
        ],
        "paused": queue.overview.paused,
        "quietHours": [
            {
                "index": one.index,
                "scope": one.window.scope,
                "from": f"{one.window.from_:%H:%M}",
                "to": f"{one.window.to:%H:%M}",
                "tz": one.window.tz.key,
                "activeUntil": iso(one.window.end_at(queue.overview.at)),
            }
            for one in bounds.quiet
        ],
        "held": [{"jobId": job.job_id, "why": job.why, "until": iso(job.until)} for job in queue.overview.held],
    }


def rendered(bounds: Bounds, console: Console) -> RenderableType:
    """What a person sees, made for `console`."""
    at, queue = bounds.queue.overview.at, bounds.queue

    def table(header: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> RenderableType:
        cells = [[Text(printable(cell), _style(cell)) for cell in row] for row in rows]
        return table_of(console, header, cells)

    parts: list[RenderableType] = [table(("WINDOW", "USED", "CAP", "", "FREES", "RAISED BY"), _windows(bounds, at))]
    if queue.workers:
        slots = (
            (one.name, str(one.told("running")), str(one.told("slots")), _bar(one.told("running"), one.told("slots")))
            for one in queue.workers
        )
        parts += ["", table(("SLOTS OF", "TAKEN", "ALL", ""), slots)]
    if queue.overview.paused:
        parts += ["", Text(f"paused: {printable(', '.join(queue.overview.paused))} (pi-dispatch resume)", _WARN)]
    if bounds.quiet:
        quiet = ((one.window.scope, one.hours, _when(one.window.end_at(at), at) or "-") for one in bounds.quiet)
        parts += ["", table(("QUIET FOR", "HOURS", "NOW, UNTIL"), quiet)]
    if queue.overview.held:
        held = ((job.job_id, job.why or "", _when(job.until, at)) for job in queue.overview.held)
        parts += ["", table(("HELD", "WHY", "UNTIL"), held)]
    return Group(*parts)


_FULL: Final = "FULL"
_WARN: Final = "bold yellow"


def _style(cell: str) -> str:
    return _WARN if cell.endswith(_FULL) else ""


def _windows(bounds: Bounds, at: datetime) -> Iterator[tuple[str, ...]]:
    for one in bounds.windows:
        cap = "none" if one.cap is None else f"{one.cap:,}"
        if one.holds_from is not None:
            cap += f" (held from {one.holds_from:,})"
        bar = "" if one.cap is None else _bar(one.counted, one.cap)
        yield (
            one.window,
            f"{one.counted:,}",
            cap,
            f"{bar} {_FULL}" if one.full else bar,
            _when(one.frees, at),
            one.variable,
        )


def _bar(used: int, all_of_it: int) -> str:
    """How full something is, as a bar; past its end it is full."""
    if all_of_it <= 0:
        return ""
    cells = min(_BAR, used * _BAR // all_of_it)
    # Something is never shown as nothing.
    cells = max(cells, 1) if used > 0 else 0
    return "#" * cells + "." * (_BAR - cells)


def _when(instant: datetime | None, at: datetime) -> str:
    if instant is None:
        return ""
    day = "" if instant.date() == at.date() else f"{instant:%Y-%m-%d} "
    return f"{day}{instant:%H:%M:%S} UTC"

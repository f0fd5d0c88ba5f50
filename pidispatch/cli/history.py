"""What the verbs that look back share: where the records lie, which run is meant, and how a value is written."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

import click
from rich.console import Console

from pidispatch.cli.view import note
from pidispatch.config.settings import load_settings
from pidispatch.config.text import printable
from pidispatch.runs.index_look import Listing, Wanted, look
from pidispatch.runs.recordfile import Unreadable
from pidispatch.runs.records import RecordStore
from pidispatch.values.record import RunRecord

#: Colours of the three outcomes.
STYLES: Final = {"completed": "green", "policy": "yellow", "failed": "red"}
#: What stands for a value that is not there.
NOTHING = "-"
#: Files without a record, and candidates for an id, that are named one by one.
_NAMED = 10
#: From here on a number says only how large it is: a box can claim any, and a list must stay readable.
_READABLE = 10**12


def open_store() -> RecordStore:
    """The records of this deployment. Raises `ConfigError`."""
    return RecordStore(load_settings().logs_dir)


def chosen(store: RecordStore, wanted: Wanted, limit: int | None, console: Console) -> Listing:
    """The runs that are wanted; what was in the way of finding them is told. Raises `InfraError`."""
    found = look(load_settings().state_dir, store, wanted, limit)
    if found.note is not None:
        note(console, printable(found.note))
    tell_unreadable(console, store, found.unreadable)
    return found


def tell_unreadable(console: Console, store: RecordStore, unreadable: Sequence[Unreadable]) -> None:
    """Name the files that hold no record."""
    for found in unreadable[:_NAMED]:
        note(console, f"{printable(found.file)} in {printable(str(store.folder))} {printable(found.why)}; left out")
    if (more := len(unreadable) - _NAMED) > 0:
        note(console, f"{more} more files there hold no record; left out")


def the_run(store: RecordStore, asked: str, console: Console) -> RunRecord:
    """The one run that an id, or the beginning of one, means. Raises `click.ClickException` where none or many do."""
    if not asked:
        raise click.UsageError("JOBID is empty; pi-dispatch runs lists the ids")
    if record := store.find(asked):
        return record
    found = chosen(store, Wanted(beginning=asked), None, console).records
    if not found and (record := _by_file(store, asked)):
        return record
    if not found:
        raise click.ClickException(
            f"no record of a run {printable(asked)!r} lies in {printable(str(store.folder))} (PI_LOGS_DIR). "
            "The runs there are listed by: pi-dispatch runs"
        )
    if len(found) > 1:
        ids = ", ".join(printable(record.job_id) for record in found[:_NAMED])
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        raise click.ClickException(f"{printable(asked)!r} begins the ids of {len(found)} runs: {ids}{more}; write more")
    return found[0]


def _by_file(store: RecordStore, asked: str) -> RunRecord | None:
    """The run whose file is named so, with `_` for what no file name holds: that is what Tab offers."""
    path = store.record_path(asked)
    held = store.read(path.name) if path.stem == asked else None
    return held if isinstance(held, RunRecord) else None


def text(value: object) -> str:
    """Text or a fixed word as it may be printed."""
    return NOTHING if value is None else printable(str(value))


def instant(value: datetime | None, timespec: str = "minutes") -> str:
    """An instant in UTC, as `2030-01-02 03:04Z`."""
    return NOTHING if value is None else f"{value.replace(tzinfo=None).isoformat(' ', timespec)}Z"


def count(value: Decimal | bool | int | None) -> str:
    """A whole number with separators."""
    if value is None or isinstance(value, bool):
        return NOTHING
    number = Decimal(value)
    return f"{int(number):,}" if abs(number) < _READABLE else f"{number:.1e}"


def cost(value: Decimal | bool | None) -> str:
    """US dollars with four decimals."""
    if value is None or isinstance(value, bool):
        return NOTHING
    return f"${value:.4f}" if abs(value) < _READABLE else f"${value:.1e}"


def switch(value: bool | None) -> str:
    """`yes` or `no`."""
    return NOTHING if value is None else "yes" if value else "no"


def lane(record: RunRecord) -> str:
    """What it ran: its flow, else the name of its command with a slash before it, as one types it."""
    return text(record.flow) if record.command is None else f"/{text(record.command)}"


def chain(record: RunRecord) -> str:
    """`d<n>` for a run that another run asked for."""
    return f"d{count(record.chain_depth)}" if record.chain_depth is not None and record.chain_depth > 0 else NOTHING


def replica(record: RunRecord) -> str:
    """`r<i>/<n>` for one of several runs of the same task."""
    if record.replica is None or record.replicas is None:
        return NOTHING
    return f"r{count(record.replica)}/{count(record.replicas)}"

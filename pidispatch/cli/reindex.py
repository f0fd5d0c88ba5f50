"""`pi-dispatch runs --reindex`: the index of the runs made anew, with a bar for whoever looks on."""

import time
from contextlib import closing

import click
from rich.console import Console
from rich.progress import Progress

from pidispatch.cli.history import tell_unreadable
from pidispatch.cli.view import note
from pidispatch.config.settings import load_settings
from pidispatch.config.text import printable
from pidispatch.runs.index import IndexFault, RecordIndex, index_path
from pidispatch.runs.records import RecordStore


def rebuild(store: RecordStore, console: Console) -> int:
    """Read all records of `store` into the index; the exit code. Raises `InfraError` and `click.ClickException`."""
    state_dir, began = load_settings().state_dir, time.monotonic()
    path = printable(str(index_path(state_dir)))
    bar = Progress(console=console, transient=True, disable=not console.is_terminal)
    with closing(RecordIndex(state_dir, store.folder)) as index, bar:
        task = bar.add_task("reading records", total=None)
        try:
            made = index.rebuild(lambda done, of: bar.update(task, completed=done, total=of))
        except IndexFault as fault:
            raise click.ClickException(f"{path}: the index of the runs {fault.meaning}. {_remedy(fault)}") from None
    tell_unreadable(console, store, made.unreadable)
    note(console, f"{made.records} records in the index {path}, read in {time.monotonic() - began:.1f} s")
    return 0


def _remedy(fault: IndexFault) -> str:
    if fault.cause == "newer":
        return "Write this with that version, or remove the file first"
    if fault.cause == "locked":
        return "Try again when that program has ended"
    return "Make room there, mend PI_STATE_DIR, or name another folder with it"

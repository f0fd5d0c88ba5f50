"""`pi-dispatch check`: what a worker would find if it started here and now, and how to mend what it cannot use.

With files: what the running programs would say of each of them.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pidispatch.cli.checks.files import look_into
from pidispatch.cli.checks.row import STATUSES, Row
from pidispatch.cli.checks.table import CHECKS, look_around
from pidispatch.cli.view import QuietConsole
from pidispatch.config.log import configure_log
from pidispatch.config.text import printable_block
from pidispatch.forges.github.address import owner_and_name

_STYLES: Final = {"pass": "green", "warn": "yellow", "fail": "bold red"}
#: Characters of the longest name of a check.
_NAMES: Final = max(len(one.name) for one in CHECKS)


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(path_type=Path))
@click.option(
    "--repo",
    "repositories",
    multiple=True,
    metavar="OWNER/NAME",
    help="Look at this repository of GitHub's too; may be given several times.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(files: tuple[Path, ...], repositories: tuple[str, ...], as_json: bool) -> int:
    """Check settings, server, engine, image, proxy, key and folders as a worker of this environment would find them.

    Nothing is started, and nothing is made but folders of pi-dispatch's own that are missing. It takes 10 seconds at
    most. Exit code: 1 where a row says fail, else 0.

    Of each OWNER/NAME it says whether this deployment's account can work there and whether jobs may start from its
    default branch.

    With FILEs nothing but these is looked at: each is told to be as the programs that read such a file would find it.
    Exit code: 2 where one is refused, else 0.
    """
    configure_log()
    if files and repositories:
        raise click.UsageError("FILE and --repo do not go together: with files nothing else is looked at")
    for name in repositories:
        owner_and_name(name)
    rows = look_into(files) if files else look_around(repositories=repositories)
    if as_json:
        click.echo(json.dumps(document(rows), indent=2))
    else:
        show(QuietConsole(), rows)
    # Running the same again would not mend a file.
    return (2 if files else 1) if _fails(rows) else 0


def document(rows: Sequence[Row]) -> dict[str, object]:
    """What `--json` prints."""
    return {"ok": not _fails(rows), "checks": [row.document() for row in rows]}


def _fails(rows: Sequence[Row]) -> bool:
    return any(row.status == "fail" for row in rows)


def show(console: Console, rows: Sequence[Row]) -> None:
    """A line a row, with its remedy below it, and how many of each kind there are."""
    if console.is_terminal:
        console.print(_table(rows))
    else:
        for row in rows:
            for line in _plain(row):
                console.print(line, markup=False, emoji=False, highlight=False, soft_wrap=True)
    counts = {status: sum(row.status == status for row in rows) for status in STATUSES}
    console.print(
        f"{counts['pass']} passed, {counts['warn']} to think about, {counts['fail']} to mend",
        style=_STYLES["fail" if counts["fail"] else "warn" if counts["warn"] else "pass"],
        highlight=False,
    )


def _table(rows: Sequence[Row]) -> Table:
    """As wide as the terminal; what is found is broken into lines and never cut."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(Text(row.status, style=_STYLES[row.status]), Text(row.check), Text(printable_block(row.found)))
        if row.remedy is not None:
            table.add_row("", "", Text(_remedy(row.remedy), style="bold"))
    return table


def _plain(row: Row) -> Iterator[str]:
    """For a pipe: each text on one line, however long it is."""
    for line in printable_block(row.found).split("\n"):
        yield f"{row.status}  {row.check:<{_NAMES}}  {line}"
    if row.remedy is not None:
        yield f"{row.status}  {row.check:<{_NAMES}}  {_remedy(row.remedy)}"


def _remedy(text: str) -> str:
    return f"-> {printable_block(text)}"

"""`pi-dispatch runs`: the runs there were, newest first."""

import difflib
import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, get_args

import click
from rich.console import Console
from rich.text import Text

from pidispatch.cli import history as view
from pidispatch.cli.options import POSITIVE_INT, Strict
from pidispatch.cli.table import table_of
from pidispatch.cli.view import QuietConsole, error_console, note
from pidispatch.config.clock import SystemClock
from pidispatch.config.text import printable
from pidispatch.runs.index_look import Listing, Wanted
from pidispatch.values.reason import Reason
from pidispatch.values.record import RunRecord

#: Runs that are shown to a person who does not say how many.
DEFAULT_ROWS: Final = 50
#: In this order, whatever a run has of them.
COLUMNS: Final = (
    "JOB ID",
    "TARGET",
    "FLOW",
    "OUTCOME",
    "REASON",
    "TURNS",
    "TOKENS",
    "COST",
    "CHAIN",
    "REPLICA",
    "ENDED",
    "CHANGED",
)
#: Columns whose text may be cut where a terminal is too narrow.
_CUT: Final = ("TARGET", "FLOW", "REASON")
_OUTCOMES: Final[tuple[str, ...]] = get_args(RunRecord.model_fields["outcome"].annotation)
_BACK = re.compile(r"([1-9][0-9]{0,4})([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def since(value: object) -> timedelta | datetime:
    """How far back, or from when on. An instant without a zone is in UTC. Raises `ValueError`."""
    if back := _BACK.fullmatch(str(value)):
        return timedelta(**{_UNITS[back[2]]: int(back[1])})
    try:
        instant = datetime.fromisoformat(str(value))
        return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("is no time: write 30m, 24h, 7d, 2030-01-31 or 2030-01-31T12:00Z") from None


def _outcome(value: object) -> str:
    return _one_of(str(value), _OUTCOMES, "outcome", f"One of: {', '.join(_OUTCOMES)}")


def _one_of(value: str, known: Iterable[str], what: str, else_: str) -> str:
    tokens = sorted(set(known))
    if value in tokens:
        return value
    near = difflib.get_close_matches(value, tokens, n=1)
    raise ValueError(f"is no {what}; did you mean {near[0]}?" if near else f"is no {what}. {else_}")


@click.command()
@click.option(
    "--json", "as_json", is_flag=True, help="Print the records as one JSON array, all unless --limit is given."
)
@click.option("--since", "since_", type=Strict("time", since), metavar="TIME", help="Ended since: 30m, 24h, 7d or ISO.")
@click.option("--outcome", type=Strict("outcome", _outcome), metavar="O", help="completed, policy or failed.")
@click.option("--reason", metavar="TOKEN", help="One reason; docs/reference/reasons.md has them.")
@click.option("--limit", type=POSITIVE_INT, help=f"Most runs to show. Default: {DEFAULT_ROWS}.")
@click.option("--reindex", is_flag=True, help="Make the index of the runs anew from their files, and list nothing.")
def runs(
    as_json: bool,
    since_: timedelta | datetime | None,
    outcome: str | None,
    reason: str | None,
    limit: int | None,
    reindex: bool,
) -> int:
    """List the runs on record, newest first. Times are in UTC."""
    store, notes = view.open_store(), error_console()
    if reindex:
        if as_json or since_ or outcome or reason or limit:
            raise click.UsageError("--reindex reads all records and lists none: write it alone")
        # Imported here: a list needs neither a progress bar nor what writes.
        from pidispatch.cli.reindex import rebuild

        return rebuild(store, notes)
    floor = SystemClock().now() - since_ if isinstance(since_, timedelta) else since_
    rows = limit or (None if as_json else DEFAULT_ROWS)
    found = view.chosen(store, Wanted(floor, outcome, reason or None), rows, notes)
    _check_reason(reason, found)
    if as_json:
        click.echo(json.dumps([record.model_dump(mode="json") for record in found.records], indent=2))
    elif found.records:
        show_table(QuietConsole(), found.records)
    if not found.total:
        none = "no run on record is like that" if found.any else "no runs yet"
        note(notes, f"{none}; looked in {printable(str(store.folder))}")
    elif len(found.records) < found.total:
        note(notes, f"{found.total - len(found.records)} more; all of them: --limit {found.total}")
    return 0


def _check_reason(reason: str | None, found: Listing) -> None:
    if not reason or found.total:
        return
    # A record of a later version can carry one that this version does not declare.
    there = found.reasons
    try:
        _one_of(reason, {*Reason, *there}, "reason", f"On record here: {', '.join(sorted(there)) or 'none'}")
    except ValueError as error:
        raise click.BadParameter(printable(f"{reason!r} {error}"), param_hint="'--reason'") from None


def show_table(console: Console, records: Iterable[RunRecord]) -> None:
    """One row a run: one line where it has room, two where it has not, and never cut where no person looks."""
    console.print(table_of(console, COLUMNS, [_cells(record) for record in records], cut=_CUT))


def _cells(record: RunRecord) -> list[Text]:
    tokens = record.tokens or {}
    plain = {
        "JOB ID": view.text(record.job_id),
        "TARGET": view.text(record.target),
        "FLOW": view.lane(record),
        "OUTCOME": record.outcome,
        "REASON": view.text(record.reason),
        "TURNS": view.count(record.turns),
        "TOKENS": view.count(tokens.get("total")),
        "COST": view.cost(tokens.get("cost")),
        "CHAIN": view.chain(record),
        "REPLICA": view.replica(record),
        "ENDED": view.instant(record.ended_at),
        "CHANGED": view.switch(record.changed),
    }
    styles = {"OUTCOME": view.STYLES[record.outcome]}
    if record.changed is False:
        # A run that did nothing must not look like a success.
        styles["CHANGED"] = "bold reverse yellow"
        if record.outcome == "completed":
            styles["OUTCOME"] = "yellow"
    return [Text(plain[name], style=styles.get(name, "")) for name in COLUMNS]

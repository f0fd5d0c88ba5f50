"""`pi-dispatch show`: everything that is on record of one run."""

import json
from collections.abc import Iterator
from datetime import timedelta

import click
from rich.console import Console

from pidispatch.cli import history as view
from pidispatch.cli.completion import complete_records
from pidispatch.cli.view import QuietConsole, error_console
from pidispatch.config.text import printable
from pidispatch.runs.records import RecordStore
from pidispatch.values.cause import CAUSES
from pidispatch.values.reason import Reason, RunnerReason
from pidispatch.values.record import RunRecord
from pidispatch.values.usage import UsageRow

_CHANGED = {
    True: "yes",
    False: "no: the run left no change that git would show",
    None: "not known: nothing ran, or it could not be read",
}
#: Reasons whose cause can be the runner's own word for its end.
_RUNNERS = (Reason.RUNNER_POLICY.value, Reason.INFRA.value)


@click.command()
@click.argument("job_id", metavar="JOBID", shell_complete=complete_records)
@click.option("--json", "as_json", is_flag=True, help="Print the record as one JSON object.")
def show(job_id: str, as_json: bool) -> int:
    """Show the run JOBID in full. The beginning of an id is enough where no other run's id begins so."""
    store = view.open_store()
    record = view.the_run(store, job_id, error_console())
    if as_json:
        click.echo(json.dumps(record.model_dump(mode="json"), indent=2))
    else:
        show_record(QuietConsole(), store, record)
    return 0


def show_record(console: Console, store: RecordStore, record: RunRecord) -> None:
    """One line a fact; what this run has nothing of is left out, except for its outcome, numbers and change."""
    for name, value in (*_course(record), *_spent(record), *_place(record), *_files(store, record)):
        style = view.STYLES[record.outcome] if name == "outcome" else None
        if name == "changed" and record.changed is False:
            style = "bold reverse yellow"
        console.print(f"{name:<12}{value}", style=style, markup=False, emoji=False, highlight=False, soft_wrap=True)


Facts = Iterator[tuple[str, str]]


def _course(record: RunRecord) -> Facts:
    """What was asked for, and how it went."""
    yield "job", view.text(record.job_id)
    yield "target", view.text(record.target)
    if record.flow is not None:
        yield "flow", view.text(record.flow)
    if record.command is not None:
        yield "command", view.text(record.command)
    yield "outcome", record.outcome
    if record.reason is not None:
        yield "reason", view.text(record.reason)
        if record.cause is not None:
            yield "cause", view.text(record.cause)
        meaning, remedy = explained(record.reason, record.cause)
        yield "why", meaning
        yield "remedy", remedy
    yield "started", view.instant(record.started_at, "seconds")
    yield "ended", view.instant(record.ended_at, "seconds")
    if record.started_at is not None and record.ended_at is not None:
        took = record.ended_at - record.started_at
        yield "took", str(timedelta(seconds=round(took.total_seconds())))


def explained(reason: str, cause: str | None) -> tuple[str, str]:
    """Meaning and remedy of a reason; its cause knows better where it is one that is declared."""
    declared = next((known for known in Reason if known == reason), None)
    if declared is None:
        return "this version does not know the reason", "ask the version that wrote the record"
    said = next((known for known in RunnerReason if known == cause), None) if reason in _RUNNERS else None
    if said is not None:
        return said.meaning, said.remedy or declared.remedy
    known_cause = CAUSES.get(cause or "")
    return (known_cause.meaning, known_cause.remedy) if known_cause else (declared.meaning, declared.remedy)


def _spent(record: RunRecord) -> Facts:
    """What it used, as the runner claims."""
    tokens = record.tokens or {}
    yield "turns", view.count(record.turns)
    yield "tokens", view.count(tokens.get("total"))
    yield "cost", view.cost(tokens.get("cost"))
    if unpriced := tokens.get("unpriced"):
        yield "", f"and {view.count(unpriced)} calls without a known price"
    if record.usage is not None:
        for row in record.usage.models:
            yield "by model", _usage_row(row)
    if record.context is not None:
        yield "context", f"{view.count(record.context.tokens)} of {view.count(record.context.window)} tokens at the end"
    yield "counted", f"{view.switch(record.budget_reserved)} (whether it stays counted in the windows of runs)"
    for key, amount in sorted((record.charged or {}).items()):
        yield "", f"{view.count(amount)} in {view.text(key)}"


def _usage_row(row: UsageRow) -> str:
    counts = {
        "calls": row.calls,
        "input": row.input,
        "output": row.output,
        "cache read": row.cache_read,
        "cache write": row.cache_write + row.cache_write1h,
        "total": row.total,
    }
    numbers = ", ".join(f"{name} {view.count(number)}" for name, number in counts.items())
    return f"{view.text(row.provider)}/{view.text(row.model)}: {numbers}, {view.cost(row.cost)}"


def _place(record: RunRecord) -> Facts:
    """Where it ran, what of, and what it left."""
    yield "model", f"{view.text(record.provider)}/{view.text(record.model)}"
    yield "host", view.text(record.host)
    yield "image", view.text(record.image_digest)
    yield "exit code", view.count(record.exit_code)
    yield "attempt", view.count(record.attempt)
    yield "changed", _CHANGED[record.changed]
    if record.git_restored is not None:
        yield "git", f"{view.count(record.git_restored)} entries of the git directory put back"
    if record.session is not None:
        resumed = "resumed" if record.session.resumed else f"not resumed ({view.text(record.session.reason)})"
        yield "session", f"{resumed}, {view.count(record.session.bytes)} bytes"
    further = {
        "parent": record.parent_job_id,
        "chain depth": record.chain_depth,
        "chained": record.chain_enqueued,
        "not chained": record.chain_refused,
        "replica": None if record.replica is None else view.replica(record),
        "trigger": record.trigger_type,
        "trigger no.": record.trigger_index,
        "trace": record.trace_id,
        "retry of": record.retry_of,
        "forge said": record.said,
    }
    yield from ((name, view.text(value)) for name, value in further.items() if value is not None)


def _files(store: RecordStore, record: RunRecord) -> Facts:
    yield "record", printable(str(store.record_path(record.job_id)))
    log = store.log_path(record.job_id)
    kept = f"{log} (pi-dispatch logs {record.job_id})" if log.is_file() else "not kept; PI_CAPTURE_JOB_LOGS=1 keeps it"
    yield "output", printable(kept)

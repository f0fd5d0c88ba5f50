"""`pi-dispatch explain`: where a job stands and why, by its row in the store and by its record."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import click

from pidispatch.cli import history
from pidispatch.cli.at_queue import AtQueue, at_queue
from pidispatch.cli.completion import complete_jobs
from pidispatch.cli.quiet import Quiet, holding, quiet_hours
from pidispatch.cli.show import explained
from pidispatch.cli.snapshot import iso
from pidispatch.cli.view import QuietConsole
from pidispatch.config.text import printable
from pidispatch.jobs.charges import TurnedAway
from pidispatch.jobs.overview import Overview
from pidispatch.jobs.pausing import EVERY, instant
from pidispatch.jobs.rows import JobState, Row, WorkerSeen
from pidispatch.values.record import EarlierAttempt, RunRecord
from pidispatch.values.verdict import Why

#: What a job waits for that sleeps.
_SLEEPS: Final = {
    Why.HOST_BUSY: "every job slot of the machine that took it was busy; raise PI_CONCURRENCY, or start another worker",
    Why.SCOPE_BUSY: "another job works in its folder, or in one around or in it; one at a time works there",
    Why.QUIET_HOURS: "a pause window of PI_PAUSE_WINDOWS_FILE holds it; take it out of the file to let jobs go on",
    Why.PAUSED: "its queue is paused; take that back with: pi-dispatch resume",
    Why.FORGE_LIMITED: "its forge answers no more questions of this account for now; nothing has been spent",
    Why.STOPPED: "its worker was told to stop before it had cost anything; the next worker takes it",
    Why.RETRY: "its last attempt failed for reasons outside of the job; this is the wait before the next",
}


@dataclass(frozen=True)
class Standing:
    """What is known of a job."""

    row: Row
    record: RunRecord | None
    overview: Overview
    #: Workers that take from its queue.
    workers: tuple[WorkerSeen, ...]
    #: The quiet hours that this environment names.
    quiet: tuple[Quiet, ...] = ()

    @property
    def asked(self) -> TurnedAway | None:
        """The cap that turned its last attempt away."""
        found = self.row.verdict
        return found if isinstance(found, TurnedAway) else None


@click.command()
@click.argument("job_id", metavar="JOBID", shell_complete=complete_jobs)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain(job_id: str, as_json: bool) -> int:
    """Say where JOBID stands and why: what it waits for and until when, what refused it, or how its attempts ended.

    Only the server's variables are read, and for a job that sleeps through quiet hours their file. A job whose row the
    server has dropped is on record: pi-dispatch show.
    """
    with at_queue() as queue:
        standing = _standing(queue, job_id)
    if standing is None:
        raise click.ClickException(
            f"the server knows no job {printable(job_id)!r}: it was never handed in here, or it ended a day or more "
            f"ago. Its record, if there is one, is shown by: pi-dispatch show {printable(job_id)}"
        )
    if as_json:
        click.echo(json.dumps(document(standing), indent=2))
        return 0
    console = QuietConsole()
    for name, value in told(standing):
        console.print(f"{name:<10} {printable(value)}", markup=False, emoji=False, highlight=False, soft_wrap=True)
    return 0


def _standing(queue: AtQueue, job_id: str) -> Standing | None:
    row = queue.store.row(job_id)
    if row is None:
        return None
    workers = tuple(one for one in queue.store.workers() if row.queue in one.queues)
    quiet = quiet_hours() if row.why == Why.QUIET_HOURS else ()
    return Standing(row, queue.store.record_of(row), queue.store.overview(0), workers, quiet)


def document(standing: Standing) -> dict[str, Any]:
    """What `--json` prints."""
    row, asked = standing.row, standing.asked
    return {
        "jobId": row.id,
        "state": row.state.value,
        "label": row.label,
        "queue": row.queue,
        "paused": _paused(standing),
        "workers": [worker.name for worker in standing.workers],
        "attempt": row.attempt,
        "maxAttempts": row.max_attempts,
        "handedIn": iso(instant(row.created_ms)),
        "why": row.why,
        "until": iso(_instant(row.due_ms)),
        "worker": _worker(row),
        "since": iso(_instant(row.acquired_ms)) if row.state is JobState.ACTIVE else None,
        "spending": row.state is JobState.ACTIVE and row.spend_ms is not None,
        "turnedAway": None
        if asked is None
        else {"kind": asked.kind, "window": asked.window or None, "amount": asked.amount, "cap": asked.cap},
        "charged": row.charged,
        "record": None if standing.record is None else standing.record.model_dump(mode="json"),
        "explanation": [f"{name}: {value}" if name else value for name, value in told(standing)],
    }


Facts = Iterator[tuple[str, str]]


def shown(at: datetime | None) -> str:
    """An instant as the verbs that look back write it."""
    return history.instant(at, "seconds")


def told(standing: Standing) -> Facts:
    """What a person reads: one line a fact."""
    row = standing.row
    yield "job", f"{row.id} ({row.label}), handed in {shown(instant(row.created_ms))}"
    yield "state", row.state.value
    match row.state:
        case JobState.QUEUED:
            yield from _queued(standing)
        case JobState.DEFERRED:
            yield from _deferred(standing)
        case JobState.ACTIVE:
            yield from _active(row)
        case _:
            pass
    if standing.record is not None:
        yield from _attempts(standing, standing.record)


def _queued(standing: Standing) -> Facts:
    row = standing.row
    yield "waits", f"in {row.queue}, for attempt {row.attempt} of {row.max_attempts}"
    if _paused(standing):
        yield "why", "its queue is paused; take that back with: pi-dispatch resume"
    elif not standing.workers:
        yield "why", f"no worker takes from {row.queue}; start one with: pi-dispatch worker"
    else:
        taken = sum(worker.told("running") for worker in standing.workers)
        slots = sum(worker.told("slots") for worker in standing.workers)
        yield "why", f"{taken} of {slots} job slots are taken; it comes when one is free and those before it are taken"


def _deferred(standing: Standing) -> Facts:
    row = standing.row
    why = next((_SLEEPS[known] for known in Why if known == row.why), "this version does not know why")
    yield "why", f"{row.why}: {why}"
    until = _instant(row.due_ms)
    if standing.quiet:
        for quiet, _ in holding(standing.quiet, row.job, standing.overview.at):
            window = quiet.window
            yield "held by", f"the window at index {quiet.index} of {quiet.file}: {window.scope}, {quiet.hours}"
    if until is not None:
        left = max(timedelta(), until - standing.overview.at)
        yield "until", f"{shown(until)}, in {timedelta(seconds=round(left.total_seconds()))}"


def _active(row: Row) -> Facts:
    yield "worker", f"{_worker(row) or '-'}, since {shown(_instant(row.acquired_ms))}"
    spending = "it has passed every check, and may cost something by now" if row.spend_ms else "it is being checked"
    yield "at", f"attempt {row.attempt} of {row.max_attempts}; {spending}"
    if row.spend_ms:
        yield from _charged(row.charged)


def _attempts(standing: Standing, record: RunRecord) -> Facts:
    for one in record.attempts:
        yield f"attempt {one.attempt}", _ended(one)
    yield f"attempt {record.attempt}", f"{record.outcome}, {_ended(record)}"
    if record.reason is not None:
        meaning, remedy = explained(record.reason, record.cause)
        yield "why", meaning
        if (asked := standing.asked) is not None:
            unit = "tokens are spent" if asked.kind == "tokens" else f"runs of this {asked.window} with it"
            yield "", f"{asked.amount:,} {unit}; the cap is {asked.cap:,} (pi-dispatch limits)"
        yield "remedy", remedy
    yield from _charged(record.charged or {})


def _ended(one: RunRecord | EarlierAttempt) -> str:
    why = "" if one.reason is None else f"{one.reason}{f' ({one.cause})' if one.cause else ''}, "
    return f"{why}ended {shown(one.ended_at)}"


def _charged(charged: dict[str, int]) -> Facts:
    for at, (key, amount) in enumerate(sorted(charged.items())):
        yield "" if at else "counted", f"{amount:,} in {key}"


def _paused(standing: Standing) -> bool:
    return bool({EVERY, standing.row.queue} & {*standing.overview.paused})


def _worker(row: Row) -> str | None:
    return row.owner.partition("#")[0] if row.owner else None


def _instant(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else instant(milliseconds)

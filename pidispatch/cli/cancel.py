"""`pi-dispatch cancel`: a job that waits is taken back, one that runs is ended by the worker that has it.

It needs nothing but the server, so that it works while any other setting is broken.
"""

import contextlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import click

from pidispatch.cli.at_queue import at_queue
from pidispatch.cli.completion import complete_jobs
from pidispatch.config.clock import SystemClock
from pidispatch.config.host import host_name
from pidispatch.config.text import printable
from pidispatch.jobs.endings import cancelled_record
from pidispatch.jobs.rows import JobState, Row
from pidispatch.jobs.store import JobStore
from pidispatch.values.clock import Clock
from pidispatch.values.errors import DispatchError
from pidispatch.values.limits import Limits
from pidispatch.values.reason import Reason

#: Seconds between two looks for the answer of a worker.
POLL_S: Final = 0.25


@click.command()
@click.argument("job_id", metavar="JOBID", shell_complete=complete_jobs)
@click.option("--json", "as_json", is_flag=True, help="Print what was done as one JSON object.")
def cancel(job_id: str, as_json: bool) -> int:
    """Cancel the job JOBID, named by its whole id.

    A job that waits is taken back and never runs. One that runs is stopped by its worker; what it did until then is in
    its folder, and what it spent in its record. Exit code: 0 cancelled, 1 nothing was changed.
    """
    if not job_id:
        raise click.UsageError("JOBID is empty; write the whole id that pi-dispatch run printed")
    with at_queue() as queue:
        told = Cancel(queue.store, queue.where, Limits(), SystemClock(), threading.Event().wait)(job_id)
    if as_json:
        click.echo(json.dumps(told.document(job_id), indent=2))
    elif told.done:
        click.echo(told.text)
    else:
        click.echo(f"pi-dispatch: {told.text}", err=True)
    return 0 if told.done else 1


@dataclass(frozen=True)
class Told:
    """What came of a request to cancel."""

    #: The job is cancelled, or its worker said that it ends it.
    done: bool
    #: `cancelled`, `acknowledged`, `unanswered`, `ended` or `unknown`.
    status: str
    #: State of the job now; `None` where the store knows no such job.
    state: str | None
    text: str
    #: The worker that ends it.
    worker: str | None = None

    def document(self, job_id: str) -> dict[str, object]:
        """What `--json` prints."""
        return {
            "jobId": job_id,
            "cancelled": self.done,
            "status": self.status,
            "state": self.state,
            "worker": self.worker,
            "message": self.text,
        }


class Cancel:
    """Cancels jobs. `where` names the server; `pause` waits so many seconds, and patience is counted in pauses."""

    def __init__(
        self, store: JobStore, where: str, limits: Limits, clock: Clock, pause: Callable[[float], object]
    ) -> None:
        self._store = store
        self._where = where
        self._limits = limits
        self._clock = clock
        self._pause = pause

    def __call__(self, job_id: str) -> Told:
        """Cancel one job. Raises `InfraError`; a request that was placed is then withdrawn, as far as it can be."""
        row = self._store.row(job_id)
        if row is None:
            return _unknown(job_id, self._where)
        if row.state.terminal:
            return _ended(row)
        try:
            done = self._store.cancel(job_id, cancelled_record(row.job, row, self._clock.now(), host_name()))
            match done.status:
                case "cancelled":
                    return Told(True, "cancelled", JobState.CANCELLED, taken_back(row))
                case "requested":
                    return self._await_answer(job_id)
                case "stale":
                    return self(job_id)
                case _:
                    after = self._store.row(job_id)
                    return _ended(after) if after is not None else _unknown(job_id, self._where)
        except BaseException:
            with contextlib.suppress(DispatchError):
                self._store.withdraw_cancel(job_id)
            raise

    def _await_answer(self, job_id: str) -> Told:
        row = self._store.row(job_id)
        for _ in range(round(self._limits.cancel_wait_s / POLL_S)):
            if (worker := self._store.cancel_answer(job_id)) is not None:
                return _stopping(row, job_id, worker)
            if row is None or row.state is not JobState.ACTIVE:
                break
            self._pause(POLL_S)
            row = self._store.row(job_id)
        self._store.withdraw_cancel(job_id)
        row = self._store.row(job_id)
        # It may have been heard in the last moment.
        if (worker := self._store.cancel_answer(job_id)) is not None:
            return _stopping(row, job_id, worker)
        if row is not None and row.reason == Reason.OPERATOR_CANCEL:
            return _by_the_request(row)
        return unanswered(job_id, row)


def taken_back(row: Row) -> str:
    """What was done with a job that waited."""
    if row.attempt == 1:
        spent = "It waited and never ran: nothing was spent"
    else:
        ran = "attempt 1" if row.attempt == 2 else f"attempts 1 to {row.attempt - 1}"
        spent = f"Attempt {row.attempt} will not come; {ran} did run, and may have been paid for"
    return f"job {printable(row.id)} is cancelled. {spent}. A worker writes its record within minutes"


def _stopping(row: Row | None, job_id: str, worker: str) -> Told:
    which = f" in attempt {row.attempt} of {row.max_attempts}" if row is not None else ""
    return Told(
        True,
        "acknowledged",
        row.state if row is not None else None,
        f"worker {printable(worker)} ends job {printable(job_id)}{which}. What was done until then stands in its "
        f"folder, what was spent in its record: pi-dispatch show {printable(job_id)}",
        worker,
    )


def _by_the_request(row: Row) -> Told:
    """Its worker let go of it, and whoever came next found the request."""
    name = printable(row.id)
    return Told(True, "cancelled", row.state, f"job {name} is cancelled. All about it: pi-dispatch show {name}")


def _ended(row: Row) -> Told:
    how = row.state.value + (f", {row.reason}" if row.reason else "")
    return Told(
        False,
        "ended",
        row.state,
        f"job {printable(row.id)} has ended already ({printable(how)}), and nothing was changed. All about it: "
        f"pi-dispatch show {printable(row.id)}",
    )


def _unknown(job_id: str, where: str) -> Told:
    return Told(
        False,
        "unknown",
        None,
        f"{where} knows no job {printable(job_id)}, and nothing was changed. Write the whole id, and see that "
        "VALKEY_URL and PI_KEY_PREFIX are those of the run",
    )


def unanswered(job_id: str, row: Row | None) -> Told:
    """That no worker answered, and how the job stands now."""
    name = printable(job_id)
    if row is None:
        now = f"job {name} is gone from the server"
    elif row.state.terminal:
        now = f"job {name} ended meanwhile ({row.state.value}{f', {printable(row.reason)}' if row.reason else ''})"
    elif row.state is JobState.ACTIVE:
        worker = printable((row.owner or "").partition("#")[0])
        now = f"job {name} is active on worker {worker}, which did not answer; see whether that worker is alive"
    else:
        now = f"job {name} went back to the queue meanwhile ({row.state.value}); cancel it again"
    return Told(
        False, "unanswered", row.state if row else None, f"nothing was changed, the request is withdrawn: {now}"
    )

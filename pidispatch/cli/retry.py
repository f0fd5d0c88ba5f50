"""`pi-dispatch retry`: a job that did not complete is handed in once more, as a job of its own."""

import itertools
import json
import os
from typing import Final

import click

from pidispatch.cli.completion import complete_failed_jobs
from pidispatch.cli.handing_in import HandIn
from pidispatch.cli.run import check, refusal_document
from pidispatch.cli.view import error_console, note
from pidispatch.config.log import configure_log
from pidispatch.config.settings import load_settings, refuse_unserved_bounds
from pidispatch.config.text import printable
from pidispatch.jobs.ids import retry_id
from pidispatch.jobs.rows import JobState, Row
from pidispatch.jobs.store import JobStore
from pidispatch.server.use import use_server
from pidispatch.values.errors import DispatchError
from pidispatch.values.job import Job, LocalJob
from pidispatch.values.limits import Limits

#: What a retry costs, whatever the first one did.
_PAYS: Final = "it is a run of its own: it counts and is paid for anew"
_KNOWN: Final = "the job is repeated already, and that has not ended: this is that job"


@click.command()
@click.argument("job_id", metavar="JOBID", shell_complete=complete_failed_jobs)
@click.option("--force", is_flag=True, help="Also in a folder with uncommitted changes. There is no undo.")
@click.option("--wait", is_flag=True, help="Wait for the end and show it. Ctrl-C ends the wait, never the job.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: the new id, or with --wait the end.")
def retry(job_id: str, force: bool, wait: bool, as_json: bool) -> int:
    """Hand the ended job JOBID in again, as a new job that counts and pays anew: the same task, or the same event.

    Refused while the job is under way, and for one that completed. Its task is kept for 24 hours after it ended, or 7
    days after it failed. The exit codes are those of pi-dispatch run.
    """
    if not job_id:
        raise click.UsageError("JOBID is empty; write the whole id that pi-dispatch run printed")
    configure_log()
    refuse_unserved_bounds(os.environ)
    settings = load_settings()
    notes = error_console()
    with use_server(settings) as server:
        store = JobStore(server.client, settings.key_prefix, Limits())
        row = ended_row(store, job_id)
        job = again(store, row, force=force)
        try:
            # Where the folder is another machine's, its worker is the one who looks.
            if isinstance(job, LocalJob) and job.folder.is_dir():
                check(job, Limits())
        except DispatchError as error:
            if as_json:
                click.echo(json.dumps(refusal_document(job, error), indent=2))
            raise
        note(notes, f"note: {job.id} repeats {printable(job_id)}; {_PAYS}")
        handing = HandIn(job, row.queue, settings, server, notes, as_json=as_json, known=_KNOWN)
        return handing.run(wait=wait)


def ended_row(store: JobStore, job_id: str) -> Row:
    """The row of a job that may be repeated. Raises `click.ClickException` for one that may not, and `InfraError`."""
    store.check_format()
    row, name = store.row(job_id), printable(job_id)
    if row is None:
        raise click.ClickException(
            f"the server has no job {name}, or has it no longer: a task is kept for 24 hours after its job ended, 7 "
            "days after it failed. Hand it in anew with: pi-dispatch run"
        )
    if not row.state.terminal:
        raise click.ClickException(
            f"job {name} is still {row.state.value}, and nothing was changed. It is seen with pi-dispatch status, and "
            f"ended with: pi-dispatch cancel {name}"
        )
    if row.state is JobState.COMPLETED and row.reason is None:
        raise click.ClickException(
            f"job {name} completed, and nothing was changed. To have the same done again, hand it in anew with: "
            "pi-dispatch run"
        )
    return row


def again(store: JobStore, row: Row, *, force: bool) -> Job:
    """The job that repeats that of `row`: the one that is under way already, else the next.

    Raises `click.ClickException` where a repetition completed, and `InfraError` where this version reads no such job.
    """
    job = row.job
    for number in itertools.count(1):
        before = store.row(retry_id(job.id, number))
        if before is not None and before.state is JobState.COMPLETED and before.reason is None:
            raise click.ClickException(
                f"job {printable(job.id)} was repeated already, and {before.id} completed; nothing was changed. To "
                "have the same done again, hand it in anew with: pi-dispatch run"
            )
        if before is None or not before.state.terminal:
            # Two who ask at the same time come to the same number, and the store makes one job of it.
            # How it ends says nothing of the trigger, which did not fire it.
            update: dict[str, object] = {"id": retry_id(job.id, number), "retry_of": job.id, "breaker": None}
            if isinstance(job, LocalJob):
                update["allow_dirty"] = job.allow_dirty or force
            return job.model_copy(update=update)
    raise AssertionError("there is always a next number")

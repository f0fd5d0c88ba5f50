"""`pi-dispatch run`: hands a job in, says where, and on request waits for its end."""

import contextlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from pidispatch.cli.ended import show_end
from pidispatch.cli.options import FLOW, IMAGE_REFERENCE, PLAIN_TEXT, POSITIVE_INT
from pidispatch.cli.view import error_console, live_view, note, say_server
from pidispatch.cli.wait import Pause, Waiter, signalled
from pidispatch.config.clock import SystemClock
from pidispatch.config.log import configure_log
from pidispatch.config.settings import Settings, load_settings, refuse_unserved_bounds
from pidispatch.config.text import printable
from pidispatch.jobs.ids import local_id
from pidispatch.jobs.route import route
from pidispatch.jobs.rows import JobState, Submitted, Ticket, WorkerSeen
from pidispatch.jobs.store import JobStore
from pidispatch.runs.dirty import dirty_tree
from pidispatch.runs.records import RecordStore
from pidispatch.server.use import Server, use_server
from pidispatch.values.errors import ConfigError, DispatchError, InfraError
from pidispatch.values.job import Job
from pidispatch.values.limits import Limits
from pidispatch.worker.belonging import join_deployment
from pidispatch.workspace.changes import snapshot
from pidispatch.workspace.folder import open_folder
from pidispatch.workspace.git import open_host_git

#: Exit code of one who stopped waiting.
_DETACHED: Final = 1
#: Attempts at a job where the surroundings fail.
ATTEMPTS: Final = 2


@click.command()
@click.argument("folder")
@click.option("--task", required=True, metavar="TEXT", help="What the agent is to do.")
@click.option("--flow", type=FLOW, metavar="NAME", help="Skill of the repository to follow: .pi/skills/NAME.")
@click.option("--force", is_flag=True, help="Run in a folder with uncommitted changes too. There is no undo.")
@click.option("--provider", type=PLAIN_TEXT, metavar="P", help="Model provider, as pi calls it. Default: PI_PROVIDER.")
@click.option("--model", type=PLAIN_TEXT, metavar="M", help="The provider's exact model id. Default: PI_MODEL.")
@click.option("--max-turns", type=POSITIVE_INT, help="Most model turns. Default: PI_MAX_TURNS.")
@click.option("--image", type=IMAGE_REFERENCE, metavar="REF", help="Job image on the engine. Default: PI_JOB_IMAGE.")
@click.option("--wait", is_flag=True, help="Wait for the end and show it. Ctrl-C ends the wait, never the job.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: the job's id, or with --wait its end.")
def run(
    folder: str,
    task: str,
    flow: str | None,
    force: bool,
    provider: str | None,
    model: str | None,
    max_turns: int | None,
    image: str | None,
    wait: bool,
    as_json: bool,
) -> int:
    """Hand in a job: the agent is to work on FOLDER, a git repository of yours, which it edits in place.

    What can be checked without a worker is checked at once. Then the job waits for a worker of this machine
    (pi-dispatch worker), and its id is printed. The same folder, flow and task within one minute is the same job.

    Exit code: 0 accepted, 2 refused, 1 the surroundings failed. With --wait it is the job's: 0 the agent completed, 2
    refused or ended by policy, 1 failed or no longer waited for.
    """
    if not folder:
        raise click.UsageError("FOLDER is empty; name the folder of a git repository")
    if not task.strip():
        raise click.UsageError("--task is empty; say what the agent is to do")
    if not _is_utf8(task):
        raise click.UsageError("--task is not valid UTF-8; write it in the encoding of this terminal")
    configure_log()
    refuse_unserved_bounds(os.environ)
    settings = load_settings()
    path = Path(os.path.realpath(folder))
    job = Job(
        id=local_id(path, flow, task, SystemClock().now(), provider=provider, model=model),
        folder=path,
        task=task,
        flow=flow,
        allow_dirty=force,
        provider=provider,
        model=model,
        max_turns=max_turns,
        image=image,
    )
    notes = error_console()
    try:
        check(job, Limits())
    except DispatchError as error:
        if as_json:
            click.echo(json.dumps(refusal_document(job, error), indent=2))
        raise
    with use_server(settings) as server:
        call = _Call(job, settings, server, notes, as_json=as_json)
        if not wait:
            return call(None)
        # Before the job is handed in: from then on whoever is sent away must have been told its id.
        with signalled() as pause:
            return call(pause)


def check(job: Job, limits: Limits) -> None:
    """What is certain before any worker looks at `job`. Raises `ConfigError` and `InfraError`."""
    folder = open_folder(job.folder)
    with tempfile.TemporaryDirectory(prefix="pi-dispatch-") as scratch:
        git = open_host_git(folder, Path(scratch) / "git", limits)
        if not job.allow_dirty and (before := snapshot(git)).dirty:
            refused = dirty_tree(before)
            raise ConfigError(f"{refused.detail}. {refused.remedy}", refused.cause)


def refusal_document(job: Job, error: DispatchError) -> dict[str, object]:
    """What `--json` prints of a job that was never handed in, so that it has no record."""
    return {"jobId": job.id, "status": "refused", "cause": error.cause, "why": error.message}


class _Call:
    """One call of `run` from the server on."""

    def __init__(self, job: Job, settings: Settings, server: Server, notes: Console, *, as_json: bool) -> None:
        self._job = job
        self._settings = settings
        self._server = server
        self._notes = notes
        self._as_json = as_json
        self._limits = Limits()
        self._store = JobStore(server.client, settings.key_prefix, self._limits)
        self._shown = say_server(server, settings.state_dir)

    def __call__(self, pause: Pause | None) -> int:
        """Hand the job in and, with `pause`, wait for it; the exit code."""
        job, queue = self._job, route(self._job, self._settings)
        submitted = self._submit(queue)
        self._tell(submitted, queue, waiting=pause is not None)
        if pause is None:
            return 0
        records = RecordStore(self._settings.logs_dir)
        with live_view(self._notes, "waiting") as live:
            ended = Waiter(self._store, self._server.ensure, records, live, pause).follow(submitted.job_id)
        if ended is None:
            self._note(f"no longer waiting. The job goes on; cancel it with: pi-dispatch cancel {submitted.job_id}")
            return _DETACHED
        show_end(job, ended, records, self._notes, as_json=self._as_json)
        return ended.exit_code

    def _submit(self, queue: str) -> Submitted:
        # Imported here: Celery takes longer to load than everything else.
        from pidispatch.jobs.producer import producer, publish

        app = producer(self._settings, self._server.address, self._limits)
        join_deployment(self._store, self._settings.state_dir)
        submitted = self._hand_in(queue)
        ticket = submitted.ticket or self._missing_ticket(submitted.job_id)
        if ticket is not None:
            try:
                publish(app, ticket)
            except InfraError as error:
                self._note(f"{error.message}; the next sweep of a worker announces it")
        return submitted

    def _hand_in(self, queue: str) -> Submitted:
        """Submit the job; once more where the answer was lost, which makes no second one. Raises `InfraError`."""
        try:
            return self._store.submit(self._job, queue=queue, max_attempts=ATTEMPTS)
        except InfraError as error:
            if error.cause != "store-unreachable":
                raise
        try:
            again = self._store.submit(self._job, queue=queue, max_attempts=ATTEMPTS)
        except InfraError as error:
            raise InfraError(
                f"{error.message}. Job {self._job.id} may have been accepted all the same: the same call within this "
                f"minute makes no second job, and pi-dispatch cancel {self._job.id} takes it back",
                error.cause,
            ) from None
        # Nobody else can have handed in the same within the time of one call.
        return again.model_copy(update={"status": "submitted"}) if again.status == "duplicate" else again

    def _missing_ticket(self, job_id: str) -> Ticket | None:
        """The ticket of a job that is there already and waits: whoever handed it in may not have come to publish it."""
        row = self._store.row(job_id)
        return row.ticket if row is not None and row.state is JobState.QUEUED else None

    def _tell(self, submitted: Submitted, queue: str, *, waiting: bool) -> None:
        """The job's id on standard output, all else beside it."""
        if not self._as_json:
            click.echo(submitted.job_id)
        elif not waiting:
            click.echo(json.dumps(submitted_document(submitted, self._job.id, queue, self._shown), indent=2))
        self._note(f"job {submitted.job_id} in {printable(str(self._job.folder))}; queue {queue} of {self._shown}")
        if submitted.status != "submitted":
            self._note(
                "the same folder, flow, task and model were asked for within this minute: this is that job, with the "
                "options it was given then"
            )
        for text in warnings(self._job, self._settings):
            self._note(text)
        # The job is accepted, whatever becomes of advice.
        with contextlib.suppress(InfraError):
            if (missing := missing_worker(self._store.workers(), queue, self._limits)) is not None:
                self._note(missing)

    def _note(self, text: str) -> None:
        note(self._notes, f"note: {text}")


def submitted_document(submitted: Submitted, job_id: str, queue: str, server: str) -> dict[str, object]:
    """What `--json` prints of a job that was handed in. `deduplicated`: another id stands for the same wish."""
    return {
        "jobId": job_id,
        "status": submitted.status,
        "deduplicated": submitted.status == "coalesced",
        "survivingJobId": None if submitted.status == "submitted" else submitted.job_id,
        "queue": queue,
        "server": server,
    }


def warnings(job: Job, settings: Settings) -> list[str]:
    """What a job may cost and reach, as far as it can be told from here: its worker's own settings hold."""
    turns, tokens = job.max_turns or settings.max_turns, settings.max_tokens
    bound = f"{turns} turns" + (f" or {tokens:,} tokens" if tokens else "")
    told = [
        f"each attempt, {ATTEMPTS} at most, may use up to {bound}, unless its worker's settings differ; this version "
        "has no cap on the number of runs"
    ]
    if not settings.egress:
        told.append("PI_EGRESS=0: the agent can reach the internet and whatever else its worker's machine can reach")
    return told


def missing_worker(workers: Sequence[WorkerSeen], queue: str, limits: Limits) -> str | None:
    """That nobody takes jobs from `queue` now, and what to do about it; `None` where someone does."""
    alive = [worker.name for worker in workers if worker.age_ms <= limits.worker_seen_s * 1000]
    own = queue.partition("@")[2]
    if not alive:
        return "no worker is running: start one with: pi-dispatch worker"
    if own and own not in alive:
        return f"no worker named {own} is running: start one with: PI_WORKER_NAME={own} pi-dispatch worker"
    return None


def _is_utf8(text: str) -> bool:
    """Whether `text` has no undecodable bytes in it, which Python keeps as lone surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True

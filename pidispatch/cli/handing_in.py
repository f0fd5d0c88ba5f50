"""A job handed in on the command line: submitted, announced, told, and on request waited for."""

import contextlib
import json
from collections.abc import Sequence
from typing import Final

import click
from rich.console import Console

from pidispatch.cli.ended import show_end
from pidispatch.cli.view import live_view, note, say_server
from pidispatch.cli.wait import Pause, Waiter, signalled
from pidispatch.config.settings import Settings
from pidispatch.config.text import printable
from pidispatch.jobs.pausing import EVERY
from pidispatch.jobs.rows import JobState, Submitted, Ticket, WorkerSeen
from pidispatch.jobs.store import JobStore
from pidispatch.runs.records import RecordStore
from pidispatch.server.use import Server
from pidispatch.values.errors import InfraError
from pidispatch.values.job import Job
from pidispatch.values.limits import Limits
from pidispatch.worker.belonging import join_deployment

#: Exit code of one who stopped waiting.
_DETACHED: Final = 1
#: Attempts at a job where the surroundings fail.
ATTEMPTS: Final = 2
#: What is said of a job that is there already.
KNOWN: Final = (
    "the same folder, flow, task and model were asked for within this minute: this is that job, with the options it "
    "was given then"
)


class HandIn:
    """One job, from the server on. Its one use is `run`, or `__call__` with a pause of the caller's."""

    def __init__(
        self,
        job: Job,
        queue: str,
        settings: Settings,
        server: Server,
        notes: Console,
        *,
        as_json: bool,
        known: str = KNOWN,
    ) -> None:
        self._job = job
        self._queue = queue
        self._settings = settings
        self._server = server
        self._notes = notes
        self._as_json = as_json
        self._known = known
        self._limits = Limits()
        self._store = JobStore(server.client, settings.key_prefix, self._limits)
        self._shown = say_server(server, settings.state_dir)

    def run(self, *, wait: bool) -> int:
        """Hand the job in and, with `wait`, see it to its end; the exit code."""
        if not wait:
            return self(None)
        # Before the job is handed in: from then on whoever is sent away must have been told its id.
        with signalled() as pause:
            return self(pause)

    def __call__(self, pause: Pause | None) -> int:
        """Hand the job in and, with `pause`, wait for it; the exit code."""
        job = self._job
        submitted = self._submit()
        self._tell(submitted, waiting=pause is not None)
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

    def _submit(self) -> Submitted:
        # Imported here: Celery takes longer to load than everything else.
        from pidispatch.jobs.producer import producer, publish

        app = producer(self._settings, self._server.address, self._limits)
        join_deployment(self._store, self._settings.state_dir)
        submitted = self._hand_in()
        ticket = submitted.ticket or self._missing_ticket(submitted.job_id)
        if ticket is not None:
            try:
                publish(app, ticket)
            except InfraError as error:
                self._note(f"{error.message}; the next sweep of a worker announces it")
        return submitted

    def _hand_in(self) -> Submitted:
        """Submit the job; once more where the answer was lost, which makes no second one. Raises `InfraError`."""
        try:
            return self._store.submit(self._job, queue=self._queue, max_attempts=ATTEMPTS)
        except InfraError as error:
            if error.cause != "store-unreachable":
                raise
        try:
            again = self._store.submit(self._job, queue=self._queue, max_attempts=ATTEMPTS)
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

    def _tell(self, submitted: Submitted, *, waiting: bool) -> None:
        """The job's id on standard output, all else beside it."""
        queue = self._queue
        if not self._as_json:
            click.echo(submitted.job_id)
        elif not waiting:
            click.echo(json.dumps(submitted_document(submitted, self._job.id, queue, self._shown), indent=2))
        self._note(f"job {submitted.job_id} in {printable(self._job.scope)}; queue {queue} of {self._shown}")
        if submitted.status != "submitted":
            self._note(self._known)
        for text in warnings(self._job, self._settings):
            self._note(text)
        # The job is accepted, whatever becomes of advice.
        with contextlib.suppress(InfraError):
            if self._store.paused([queue]).keys() & {queue, EVERY}:
                self._note("its queue is paused, so the job waits until somebody writes: pi-dispatch resume")
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
    turns, tokens = job.max_turns or settings.max_turns, job.max_tokens or settings.max_tokens
    bound = f"{turns} turns" + (f" or {tokens:,} tokens" if tokens else "")
    told = [
        f"each attempt, {ATTEMPTS} at most, may use up to {bound}, unless its worker's settings differ, and counts in "
        "the windows of runs (pi-dispatch limits)"
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

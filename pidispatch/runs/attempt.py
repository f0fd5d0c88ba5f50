"""One attempt at a job, from its first check to its last clean-up.

The order is the promise: every check of the ladder, then the word that it spends, then the container, which alone can,
then what came of it.
"""

import contextlib
import os
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from pidispatch.box.abort import Abort
from pidispatch.box.engine import Engine
from pidispatch.box.run import ContainerEnd, Hooks, Sink, run_container
from pidispatch.box.spec import ContainerSpec
from pidispatch.config.deadline import Deadlines
from pidispatch.config.log import log
from pidispatch.config.settings import Settings
from pidispatch.runs.charging import book_tokens, still_charged
from pidispatch.runs.classify import aborted, classify, classify_error
from pidispatch.runs.events import tell_exit, tell_lost
from pidispatch.runs.forge import said_there
from pidispatch.runs.joblog import JobLog, shown, tee
from pidispatch.runs.ladder import LADDER, climb
from pidispatch.runs.note import EndNote, mark_making, write_end
from pidispatch.runs.prepare import container_spec
from pidispatch.runs.records import RecordStore
from pidispatch.runs.seams import (
    Accounts,
    Book,
    Finish,
    LeaseLost,
    Marked,
    Output,
    Spend,
    no_account,
    unbooked,
    uncounted,
    unmarked,
)
from pidispatch.runs.site import Effective, Site
from pidispatch.values.cause import remedy_of
from pidispatch.values.change import Change
from pidispatch.values.clock import Clock
from pidispatch.values.errors import DispatchError
from pidispatch.values.job import ForgeJob, Job
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import InfraFailed
from pidispatch.values.progress import Progress, ProgressSink
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.record import Result
from pidispatch.values.verdict import Defer, Why
from pidispatch.workspace.changes import read_change
from pidispatch.workspace.guard import put_back
from pidispatch.workspace.jobdir import count_outbox

_deadlines = Deadlines()
_OURS = "an error of pi-dispatch's own; the log names it"


class Attempt:
    """Runs attempts; holds what they all need.

    `connect` is asked for the engine once what needs none is checked, and raises `InfraError` where none answers.
    `finish` is called with each result while everything that is needed to settle the attempt still lies on the disk:
    where it fails, that stays there for the next start. `marked` is asked by the rung for rules that fire once, `spend`
    by the last one, and `book` is told what a container used. `output` gives what takes a job's output beside its kept
    log, `accounts` the account at a job's forge. In `records` stays reserved what the record of the attempt will be,
    until whoever runs it writes it there or forgoes it.
    """

    def __init__(
        self,
        settings: Settings,
        connect: Callable[[], Engine],
        finish: Finish,
        limits: Limits,
        clock: Clock,
        environ: Mapping[str, str] | None = None,
        *,
        marked: Marked = unmarked,
        spend: Spend = uncounted,
        book: Book = unbooked,
        output: Output | None = None,
        accounts: Accounts = no_account,
        records: RecordStore | None = None,
    ) -> None:
        self._settings = settings
        self._connect = connect
        self._finish = finish
        self._limits = limits
        self._clock = clock
        self._environ = os.environ if environ is None else environ
        self._marked = marked
        self._spend = spend
        self._book = book
        self._output = output
        self._accounts = accounts
        self._records = records or RecordStore(settings.logs_dir)

    def __call__(self, job: Job, progress: ProgressSink, abort: Abort, number: int = 1) -> Result | Defer:
        """One attempt at `job`, its `number` from 1. Returns how it ended, whatever happens.

        Of a `Defer` (another run works in the folder, or the program stops before anything was spent) nothing is kept
        or told as an end. Nor is it of an attempt that lost its lease (by `LeaseLost` or the abort of that reason): the
        job is another's then, and so is the word about it.
        """
        site = self._site(job, _never_failing(progress), abort, number)
        try:
            with _deadlines.within(self._limits.job_timeout_s, lambda: abort.set(AbortReason.JOB_TIMEOUT)):
                result = _ended(site)
                if isinstance(result, Result):
                    self._tell(site, result)
        finally:
            _clean_up(site)
        return result

    def _tell(self, site: Site, result: Result) -> None:
        if AbortReason.LEASE_LOST in (site.abort.reason, getattr(result.outcome, "cause", None)):
            tell_lost(site.job, site.number)
            return
        tell_exit(site.job, site.effective, self._settings.egress_proxy, result)
        self._keep(site, result)

    def _keep(self, site: Site, result: Result) -> None:
        try:
            self._finish(site.job, result)
        except Exception as error:
            # What the next start finds then is all that tells of a run that was paid for.
            site.settled = site.settled and not site.spent
            if not isinstance(error, DispatchError):
                # A fault of the surroundings is told where it happened.
                log().error("finish_broke", jobId=site.job.id, reason=_cause(error), at=_place(error))

    def _site(self, job: Job, progress: ProgressSink, abort: Abort, number: int) -> Site:
        return Site(
            job=job,
            begun_at=self._clock.now(),
            effective=Effective.of(job, self._settings),
            settings=self._settings,
            records=self._records,
            connect=self._connect,
            environ=self._environ,
            limits=self._limits,
            clock=self._clock,
            progress=progress,
            abort=abort,
            cleanup=ExitStack(),
            number=number,
            marked=self._marked,
            spend=self._spend,
            book=self._book,
            output=self._output,
            accounts=self._accounts,
        )


def _ended(site: Site) -> Result | Defer:
    begun = Result.begin(site.begun_at, site.effective.provider, site.effective.model)
    try:
        attempted = _attempted(site, begun)
        if isinstance(attempted, Defer):
            return attempted
        result = attempted
    except LeaseLost:
        # Whatever else would have ended it, nothing of it is this program's to say any more.
        result = begun.ending(aborted(AbortReason.LEASE_LOST))
    except DispatchError as error:
        result = begun.ending(classify_error(error))
    except Exception as error:
        # A mistake of ours must not cost the record of a run that may have been paid for.
        log().error("attempt_broke", jobId=site.job.id, cause=_cause(error), at=_place(error))
        broke = InfraFailed(
            reason=Reason.INFRA, cause="internal-error", detail=_OURS, remedy=remedy_of("internal-error")
        )
        result = begun.ending(broke).model_copy(update={"spent": None if site.spent else False})
    return result.model_copy(update={"ended_at": site.clock.now(), "charged": still_charged(site, result.outcome)})


def _clean_up(site: Site) -> None:
    """Undo what the attempt made. It has ended and is kept: nothing here changes how."""
    try:
        site.cleanup.close()
    except Exception as error:
        log().error("clean_up_failed", jobId=site.job.id, cause=_cause(error), at=_place(error))


def _attempted(site: Site, result: Result) -> Result | Defer:
    turned_away = climb(site, LADDER)
    if isinstance(turned_away, Defer):
        return turned_away
    if turned_away is not None:
        return result.ending(turned_away)
    if site.abort.reason is not None:
        return _stopped(site) or result.ending(aborted(site.abort.reason))
    spec = container_spec(site)
    # Until the engine says otherwise its container may be there.
    site.settled = False
    try:
        end = _contained(site, spec)
    finally:
        restored, guard_error = _put_back(site)
    outcome, telemetry = classify(end)
    book_tokens(site, telemetry)
    if end.seconds is None:
        return _stopped(site) or result.ending(outcome)
    change, diff, change_error = _read_change(site)
    return result.ending(outcome).model_copy(
        update={
            "spent": True,
            "exit_code": end.code,
            "telemetry": telemetry,
            "image_digest": site.image.digest,
            "change": change,
            "diff": diff,
            "change_error": change_error,
            "outbox_files": count_outbox(site.job_dir),
            "container_s": end.seconds,
            "restored": restored,
            "kept": str(site.job_dir.kept(site.job.id)) if restored else None,
            "guard_error": guard_error,
        }
    )


def _stopped(site: Site) -> Defer | None:
    """For a job whose worker stops before it has cost anything: whoever asked for it may not ask again."""
    if site.spent or site.abort.reason is not AbortReason.SHUTDOWN:
        return None
    return Defer(why=Why.STOPPED, delay_ms=0)


def _contained(site: Site, spec: ContainerSpec) -> ContainerEnd:
    def spending() -> None:
        mark_making(site.job_dir.making)
        site.spent = True

    def gone() -> None:
        site.settled = True

    with ExitStack() as open_:
        hooks = Hooks(spending=spending, ended=lambda end: write_end(site.job_dir.end, EndNote(end=end)), gone=gone)
        hooks = replace(hooks, sink=tee(_sinks(site, open_)))
        return run_container(
            site.engine,
            spec,
            site.neighbour,
            abort=site.abort,
            progress=site.progress,
            clock=site.clock,
            hooks=hooks,
        )


def _sinks(site: Site, open_: ExitStack) -> list[Sink]:
    sinks: list[Sink] = []
    if site.settings.capture_job_logs:
        kept = JobLog(site.records.log_path(site.job.id), site.settings.job_log_max_bytes)
        open_.callback(kept.close)
        sinks.append(kept.write)
    if site.output is not None:
        sinks.append(shown(site.output, site.job.id))
    return sinks


def _put_back(site: Site) -> tuple[tuple[str, ...], str | None]:
    """What of the git directory was put back, or why it could not be. The run is paid for: nothing here fails it."""
    if isinstance(site.job, ForgeJob):
        # Nobody uses git in a clone after its run.
        return (), None
    try:
        restored = put_back(site.folder.path, site.job_dir.guard, site.job_dir.kept(site.job.id))
    except Exception as error:
        # The notes stay, and the next start tries again.
        site.settled = False
        log().error("git_guard_failed", jobId=site.job.id, cause=_cause(error), at=_place(error))
        return (), _words(error)
    if restored:
        log().warning("git_restored", jobId=site.job.id, entries=len(restored))
    return restored, None


def _read_change(site: Site) -> tuple[Change | None, str | None, str | None]:
    """What changed, its diff, or why it cannot be told. The run is paid for: nothing here fails it."""
    try:
        change, diff = read_change(site.git, site.before)
        change = said_there(site, change)
    except Exception as error:
        log().warning("change_unreadable", jobId=site.job.id, cause=_cause(error), at=_place(error))
        return None, None, _words(error)
    return change, diff, None


def _cause(error: Exception) -> str | None:
    return error.cause if isinstance(error, DispatchError) else type(error).__name__


def _words(error: Exception) -> str:
    """For a person: an error of ours is told by its place in the log alone, since its text may hold anything."""
    return error.message if isinstance(error, DispatchError) else _OURS


def _place(error: Exception) -> str:
    """Where it was raised. Its text stays out of the log: it may hold what came from a job."""
    raised = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(raised.filename).name}:{raised.lineno}"


def _never_failing(sink: ProgressSink) -> ProgressSink:
    """`sink` for advice that nobody may hear: a run that is paid for does not end because its reader went away."""

    def tell(progress: Progress) -> None:
        # rich leaves by SystemExit where its terminal is gone.
        with contextlib.suppress(Exception, SystemExit):
            sink(progress)

    return tell

"""`pi-dispatch run`: one job in the foreground, and how it went."""

import functools
import json
import os
import secrets
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import SimpleQueue
from types import FrameType

import click
from rich.console import Console

from pidispatch.box.abort import Abort
from pidispatch.box.engine import Engine
from pidispatch.cli.options import FLOW, IMAGE_REFERENCE, PLAIN_TEXT, POSITIVE_INT
from pidispatch.cli.view import QuietConsole, error_console, note, progress_view, say_settled, show_result
from pidispatch.config.clock import SystemClock
from pidispatch.config.host import host_name
from pidispatch.config.log import configure_log
from pidispatch.config.settings import Settings, load_settings, refuse_unserved_bounds
from pidispatch.config.text import printable
from pidispatch.runs.attempt import Attempt
from pidispatch.runs.classify import exit_code
from pidispatch.runs.records import RecordStore
from pidispatch.runs.sweep import sweep
from pidispatch.values.errors import InfraError
from pidispatch.values.job import Job
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Completed
from pidispatch.values.reason import AbortReason
from pidispatch.values.record import Result, RunRecord

#: What a signal means to a running job.
_SIGNALS = {
    signal.SIGINT: AbortReason.OPERATOR_CANCEL,
    signal.SIGTERM: AbortReason.SHUTDOWN,
    signal.SIGHUP: AbortReason.SHUTDOWN,
}


@click.command()
@click.argument("folder")
@click.option("--task", required=True, metavar="TEXT", help="What the agent is to do.")
@click.option("--flow", type=FLOW, metavar="NAME", help="Skill of the repository to follow: .pi/skills/NAME.")
@click.option("--force", is_flag=True, help="Run in a folder with uncommitted changes too. There is no undo.")
@click.option("--provider", type=PLAIN_TEXT, metavar="P", help="Model provider, as pi calls it. Default: PI_PROVIDER.")
@click.option("--model", type=PLAIN_TEXT, metavar="M", help="The provider's exact model id. Default: PI_MODEL.")
@click.option("--max-turns", type=POSITIVE_INT, help="Most model turns. Default: PI_MAX_TURNS.")
@click.option("--image", type=IMAGE_REFERENCE, metavar="REF", help="Job image on this engine. Default: PI_JOB_IMAGE.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def run(
    folder: str,
    task: str,
    flow: str | None,
    force: bool,
    provider: str | None,
    model: str | None,
    max_turns: int | None,
    image: str | None,
    as_json: bool,
) -> int:
    """Run the agent on FOLDER, a git repository of yours, which it edits in place.

    Everything that is free to check is checked first, and shown as it passes. At the end a record of the run is kept
    (pi-dispatch runs). Exit code: 0 the agent completed, 2 refused or ended by policy, 1 the surroundings failed.
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
    job = Job(
        id=f"local-{secrets.token_hex(8)}",
        folder=Path(os.path.realpath(folder)),
        task=task,
        flow=flow,
        allow_dirty=force,
        provider=provider,
        model=model,
        max_turns=max_turns,
        image=image,
    )
    notes = error_console()
    note(notes, f"job {job.id} in {printable(job.target)}")
    _warn(notes, job, settings)
    kept = Kept(settings)
    result = _attempt(job, settings, notes, kept)
    if kept.why is not None:
        _note(notes, f"the record of this run could not be written: {kept.why}")
    if as_json:
        click.echo(json.dumps(as_document(job, result, kept.path), indent=2))
    else:
        show_result(QuietConsole(), job, result, kept.path)
    return exit_code(result.outcome)


class Kept:
    """Where the record of the run lies, or why it could not be written."""

    def __init__(self, settings: Settings) -> None:
        self._records = RecordStore(settings.logs_dir)
        self.path: Path | None = None
        self.why: str | None = None

    def __call__(self, job: Job, result: Result) -> None:
        """Write the record of `job`. Raises `InfraError`."""
        try:
            self.path = self._records.write(RunRecord.of(job, result, host_name()))
        except InfraError as error:
            # Where that is what the run was refused for, it is told already.
            refused = getattr(result.outcome, "cause", None) == "logs-dir"
            self.why = None if refused else error.message
            raise


def _note(notes: Console, text: str) -> None:
    note(notes, f"note: {text}")


def _is_utf8(text: str) -> bool:
    """Whether `text` has no undecodable bytes in it, which Python keeps as lone surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _warn(notes: Console, job: Job, settings: Settings) -> None:
    turns = job.max_turns or settings.max_turns
    tokens = settings.max_tokens
    bound = f"{turns} turns" + (f" or {tokens:,} tokens" if tokens else "")
    _note(notes, f"this run may use up to {bound}; this version has no cap on the number of runs")
    if not settings.egress:
        _note(notes, "PI_EGRESS=0: the agent can reach the internet and whatever else this machine can reach")


def _attempt(job: Job, settings: Settings, notes: Console, kept: Kept) -> Result:
    abort, limits, clock = Abort(), Limits(), SystemClock()
    with ExitStack() as open_, _signals(abort), progress_view(notes) as progress:

        @functools.cache
        def connect() -> Engine:
            engine = Engine.connect()
            open_.callback(engine.close)
            return engine

        swept = sweep(settings, connect, limits, clock)
        for settled in swept.settled:
            told = (settled.job_id, settled.target, settled.restored, settled.kept)
            _note(notes, say_settled(*told, replaced=settled.replaced))
        for job_id, why in swept.unsettled.items():
            _note(notes, f"the earlier run {job_id} was broken off and could not be settled: {why}")
        return Attempt(settings, connect, kept, limits, clock)(job, progress, abort)


@contextmanager
def _signals(abort: Abort) -> Iterator[None]:
    """While a job runs, a signal ends the job and not this program, which still has to say how it went."""
    # A handler interrupts its own thread anywhere, also inside of a lock. Only this queue may be touched there.
    received: SimpleQueue[int | None] = SimpleQueue()

    def pass_on() -> None:
        while (number := received.get()) is not None:
            abort.set(_SIGNALS[signal.Signals(number)])

    passer = threading.Thread(target=pass_on, daemon=True)
    passer.start()

    def receive(number: int, _frame: FrameType | None) -> None:
        received.put(number)

    # One that is ignored stays ignored: `nohup` and a shell's background jobs ask for that.
    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, receive) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        received.put(None)
        passer.join()


def as_document(job: Job, result: Result, path: Path | None) -> dict[str, object]:
    """The run record's keys as they are, and what only the one who asks may see beside them."""
    document: dict[str, object] = RunRecord.of(job, result, host_name()).model_dump(mode="json")
    outcome = result.outcome
    if not isinstance(outcome, Completed):
        document["why"] = getattr(outcome, "detail", None) or outcome.reason.meaning
        document["remedy"] = getattr(outcome, "remedy", None) or outcome.reason.remedy
        document["message"] = result.telemetry.message
    document["change"] = result.change.model_dump(mode="json") if result.change else None
    document["changeError"] = result.change_error
    document["diff"] = result.diff
    document["outboxFiles"] = result.outbox_files
    document["restored"] = list(result.restored)
    document["kept"] = result.kept
    document["guardError"] = result.guard_error
    document["record"] = str(path) if path else None
    return document

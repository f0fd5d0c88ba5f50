"""`pi-dispatch run`: hands a job in, says where, and on request waits for its end."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import click

from pidispatch.cli.completion import complete_schedules
from pidispatch.cli.handing_in import HandIn
from pidispatch.cli.options import FLOW, IMAGE_REFERENCE, PLAIN_TEXT, POSITIVE_INT
from pidispatch.cli.view import error_console
from pidispatch.config.clock import SystemClock
from pidispatch.config.log import configure_log
from pidispatch.config.settings import load_settings, refuse_unserved_bounds
from pidispatch.jobs.ids import local_id
from pidispatch.jobs.route import route
from pidispatch.runs.dirty import dirty_tree
from pidispatch.server.use import use_server
from pidispatch.values.errors import ConfigError, DispatchError
from pidispatch.values.job import Job, LocalJob
from pidispatch.values.limits import Limits
from pidispatch.workspace.changes import snapshot
from pidispatch.workspace.folder import open_folder
from pidispatch.workspace.git import open_host_git


@click.command()
@click.argument("folder", required=False)
@click.option("--task", metavar="TEXT", help="What the agent is to do.")
@click.option(
    "--trigger",
    metavar="ID",
    shell_complete=complete_schedules,
    help="Fire this schedule of PI_TRIGGERS_FILE now, in the place of FOLDER.",
)
@click.option("--flow", type=FLOW, metavar="NAME", help="Skill of the repository to follow: .pi/skills/NAME.")
@click.option("--force", is_flag=True, help="Run in a folder with uncommitted changes too. There is no undo.")
@click.option("--provider", type=PLAIN_TEXT, metavar="P", help="Model provider, as pi calls it. Default: PI_PROVIDER.")
@click.option("--model", type=PLAIN_TEXT, metavar="M", help="The provider's exact model id. Default: PI_MODEL.")
@click.option("--max-turns", type=POSITIVE_INT, help="Most model turns. Default: PI_MAX_TURNS.")
@click.option("--image", type=IMAGE_REFERENCE, metavar="REF", help="Job image on the engine. Default: PI_JOB_IMAGE.")
@click.option("--wait", is_flag=True, help="Wait for the end and show it. Ctrl-C ends the wait, never the job.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: the job's id, or with --wait its end.")
def run(
    folder: str | None,
    task: str | None,
    trigger: str | None,
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

    With --trigger ID it is the job of that schedule, with the schedule's own folder, task and settings; what falls due
    later does so all the same.

    Exit code: 0 accepted, 2 refused, 1 the surroundings failed. With --wait it is the job's: 0 the agent completed, 2
    refused or ended by policy, 1 failed or no longer waited for.
    """
    own = {"--flow": flow, "--provider": provider, "--model": model, "--max-turns": max_turns, "--image": image}
    wish = _wish(folder, task) if trigger is None else None
    if wish is None:
        _refuse_beside_trigger({"FOLDER": folder, "--task": task, **own})
    configure_log()
    refuse_unserved_bounds(os.environ)
    settings, now = load_settings(), SystemClock().now()
    if wish is None:
        # Imported here: who names a folder needs no triggers file.
        from pidispatch.cli.fired import fired_job

        job = fired_job(trigger or "", settings, now, force=force)
    else:
        path, text = wish
        job = LocalJob(
            id=local_id(path, flow, text, now, provider=provider, model=model),
            folder=path,
            task=text,
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
        return HandIn(job, route(job, settings), settings, server, notes, as_json=as_json).run(wait=wait)


def _wish(folder: str | None, task: str | None) -> tuple[Path, str]:
    """FOLDER by its real name, and the task. Raises `UsageError` where one says nothing.

    An unset variable must not mean the current folder.
    """
    if folder is None or task is None:
        missing = "FOLDER is" if folder is None else "--task is"
        raise click.UsageError(f"{missing} missing; name both, or a schedule with --trigger ID")
    if not folder:
        raise click.UsageError("FOLDER is empty; name the folder of a git repository")
    if not task.strip():
        raise click.UsageError("--task is empty; say what the agent is to do")
    if not _is_utf8(task):
        raise click.UsageError("--task is not valid UTF-8; write it in the encoding of this terminal")
    return Path(os.path.realpath(folder)), task


def _refuse_beside_trigger(given: Mapping[str, object]) -> None:
    """Raise `UsageError` for what the schedule says itself."""
    for name, value in given.items():
        if value is not None:
            raise click.UsageError(f"{name} cannot stand beside --trigger, whose entry says it; change it there")


def check(job: LocalJob, limits: Limits) -> None:
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


def _is_utf8(text: str) -> bool:
    """Whether `text` has no undecodable bytes in it, which Python keeps as lone surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True

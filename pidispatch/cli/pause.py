"""`pi-dispatch pause` and `resume`: the kill switch. It stands in the store until somebody takes it back."""

import json
import re
from collections.abc import Collection
from typing import Final

import click

from pidispatch.cli.at_queue import AtQueue, at_queue
from pidispatch.cli.options import Strict
from pidispatch.cli.view import error_console, note
from pidispatch.jobs.pausing import EVERY, paused_state
from pidispatch.values.errors import InfraError

_QUEUE: Final = re.compile(r"pi-jobs(@[A-Za-z0-9][A-Za-z0-9._-]{0,63})?")


def _queue(value: object) -> str:
    if not _QUEUE.fullmatch(str(value)):
        raise ValueError("is no queue: write pi-jobs, or pi-jobs@NAME for that of one worker")
    return str(value)


QUEUES = click.argument("queues", nargs=-1, metavar="[QUEUE]...", type=Strict("queue", _queue))
JSON = click.option("--json", "as_json", is_flag=True, help="Print what was done as one JSON object.")


@click.command()
@QUEUES
@JSON
def pause(queues: tuple[str, ...], as_json: bool) -> int:
    """Start no new jobs, in every queue, or in QUEUE alone. Jobs that run go on; those that wait stay where they are.

    It holds for all workers, survives restarts of everything, and ends with pi-dispatch resume. Only the server's
    variables are read.
    """
    with at_queue() as queue:
        known = _known(queue)
        queue.store.pause(queues or [EVERY])
        for name in queues:
            if known is not None and name not in known:
                note(error_console(), f"note: no job and no worker has used {name} so far; is it spelt so?")
        where = "any queue" if not queues else ", ".join(queues)
        _tell(queue, "paused", f": no new job starts in {where} of {queue.where}", as_json=as_json, running=True)
    return 0


@click.command()
@QUEUES
@JSON
def resume(queues: tuple[str, ...], as_json: bool) -> int:
    """Start jobs again: in every queue, or in QUEUE alone where not all of them are paused."""
    with at_queue() as queue:
        paused = queue.store.paused(queues)
        if queues and EVERY in paused:
            raise click.ClickException(
                "every queue is paused, and nothing was changed: pi-dispatch resume takes that back for all of them; "
                "then pause those by name that are to stay so"
            )
        gone = queue.store.resume(queues or paused)
        names = ", ".join(queues)
        if gone:
            _tell(queue, "resumed", f": jobs start again in {names or 'every queue'} of {queue.where}", as_json=as_json)
        else:
            what = f"none of {names}" if queues else "nothing"
            _tell(queue, what, f" was paused at {queue.where}; jobs start as before", as_json=as_json, count=False)
    return 0


def told_document(queues: Collection[str], paused: Collection[str], text: str) -> dict[str, object]:
    """What `--json` prints (docs/reference/json.md)."""
    return {
        "pausedState": paused_state(queues, paused),
        "pausedQueues": sorted(queues if EVERY in paused else paused),
        "queues": sorted(queues),
        "message": text,
    }


def _known(queue: AtQueue) -> set[str] | None:
    """The queues that a job or a worker has used; `None` where that cannot be told."""
    try:
        used = set(queue.store.overview(0).names)
        return used | {name for worker in queue.store.workers() for name in worker.queues}
    except InfraError:
        return None


def _tell(queue: AtQueue, what: str, rest: str, *, as_json: bool, count: bool = True, running: bool = False) -> None:
    """Print what was done, which stands whatever the server answers now."""
    try:
        seen = queue.store.overview(0)
        queues, paused, jobs = seen.names, seen.paused, _running(seen.active)
    except InfraError as error:
        queues, paused, jobs = [], [], f"How it stands now is not known: {error.message}"
    text = f"{what}{f' [{len(queues)} queues]' if count and len(queues) > 1 else ''}{rest}"
    text += f". {jobs}" if running else ""
    click.echo(json.dumps(told_document(queues, paused, text), indent=2) if as_json else text)


def _running(count: int) -> str:
    if count == 0:
        return "No job runs"
    return f"{'1 job runs' if count == 1 else f'{count} jobs run'} on; pi-dispatch cancel JOBID ends one"

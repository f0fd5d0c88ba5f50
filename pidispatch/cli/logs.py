"""`pi-dispatch logs`: the kept output of one run, made fit for a terminal."""

import codecs
import sys
from typing import BinaryIO, Final, TextIO

import click

from pidispatch.cli import history as view
from pidispatch.cli.view import error_console
from pidispatch.config.text import printable
from pidispatch.runs.records import RecordStore

#: Bytes of a line that are held at once; a longer one is printed in pieces.
PIECE: Final = 64 * 1024


@click.command()
@click.argument("job_id", metavar="JOBID")
def logs(job_id: str) -> int:
    """Print the output of the run JOBID, where it was kept, with control characters escaped.

    The beginning of an id is enough where no other run's id begins so.
    """
    store = view.open_store()
    with _opened(store, job_id) as output:
        try:
            copy_printable(output, sys.stdout)
        except BrokenPipeError:
            # Whoever read has seen enough.
            return 0
    return 0


def _opened(store: RecordStore, job_id: str) -> BinaryIO:
    # The output of a run that is still under way, or whose record was lost, has no record beside it.
    if job_id and (output := store.open_log(job_id)) is not None:
        return output
    run = view.the_run(store, job_id, error_console()).job_id
    output = store.open_log(run)
    if output is None:
        raise click.ClickException(
            f"the output of {printable(run)} was not kept. PI_CAPTURE_JOB_LOGS=1 keeps that of the runs that begin "
            "with it, for as long as their records stay"
        )
    return output


def copy_printable(source: BinaryIO, target: TextIO) -> None:
    """All of `source` onto `target`, line by line and never whole in memory. What is no UTF-8 is replaced."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    last = "\n"
    while piece := source.readline(PIECE):
        last = _put(decoder.decode(piece), target) or last
    last = _put(decoder.decode(b"", final=True), target) or last
    if last != "\n":
        target.write("\n")
    # Here a reader that is gone is still expected.
    target.flush()


def _put(text: str, target: TextIO) -> str:
    """Print a line or a piece of one; its last character."""
    line, end = (text[:-1], "\n") if text.endswith("\n") else (text, "")
    # Nearly every line is fit as it is, and a look at each of its characters is what costs.
    target.write((line if line.isprintable() else printable(line.replace("\t", "    "))) + end)
    return text[-1:]

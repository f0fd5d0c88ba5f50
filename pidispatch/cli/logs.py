"""`pi-dispatch logs`: the kept output of one run, made fit for a terminal; also while it is written."""

import codecs
import sys
from typing import TYPE_CHECKING, BinaryIO, Final, TextIO

import click

from pidispatch.cli.completion import complete_outputs
from pidispatch.config.text import printable

if TYPE_CHECKING:
    from pidispatch.runs.records import RecordStore

#: Bytes of a line that are held at once; a longer one is printed in pieces.
PIECE: Final = 64 * 1024


@click.command()
@click.argument("job_id", metavar="JOBID", shell_complete=complete_outputs)
@click.option("-f", "--follow", is_flag=True, help="Go on until the job has ended. Ctrl-C ends this, never the job.")
def logs(job_id: str, follow: bool) -> int:
    """Print the output of the run JOBID, where it was kept, with control characters escaped.

    The beginning of an id is enough where no other run's id begins so. With --follow a job that waits or runs is named
    by its whole id; what its next attempt prints follows, too.
    """
    # Imported here, as below: whoever completes an id at a prompt needs none of it.
    from pidispatch.cli.history import open_store

    store = open_store()
    if follow and job_id:
        from pidispatch.cli.follow import follow_job

        return follow_job(store, job_id)
    with _opened(store, job_id) as output:
        try:
            copy_printable(output, sys.stdout)
        except BrokenPipeError:
            # Whoever read has seen enough.
            return 0
    return 0


def _opened(store: "RecordStore", job_id: str) -> BinaryIO:
    """The kept output of the job that an id, or the beginning of one, means. Raises `click.ClickException`."""
    # The output of a run that is still under way, or whose record was lost, has no record beside it.
    if job_id and (output := store.open_log(job_id)) is not None:
        return output
    from pidispatch.cli.history import the_run
    from pidispatch.cli.view import error_console

    run = the_run(store, job_id, error_console()).job_id
    output = store.open_log(run)
    if output is None:
        raise not_kept(run)
    return output


def not_kept(job_id: str) -> click.ClickException:
    """What is said of a job that left no output."""
    return click.ClickException(
        f"the output of {printable(job_id)} was not kept. PI_CAPTURE_JOB_LOGS=1 keeps that of the runs that begin "
        "with it, for as long as their records stay"
    )


class Printer:
    """Puts output onto `target` in the pieces in which it comes, never more than one of them in memory.

    What is no UTF-8 is replaced; a character that two pieces share is whole.
    """

    def __init__(self, target: TextIO) -> None:
        self._target = target
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._last = "\n"

    def put(self, piece: bytes) -> None:
        """Print the next piece, all of it."""
        self._print(self._decoder.decode(piece))

    def end(self) -> None:
        """There is no more: end the line that was begun."""
        self._print(self._decoder.decode(b"", final=True))
        if self._last != "\n":
            self._target.write("\n")
        self._last = "\n"
        self._decoder.reset()
        # Here a reader that is gone is still expected.
        self._target.flush()

    def _print(self, text: str) -> None:
        *lines, begun = text.split("\n")
        for line in lines:
            self._target.write(_fit(line) + "\n")
        self._target.write(_fit(begun))
        self._last = text[-1:] or self._last


def _fit(line: str) -> str:
    # Nearly every line is fit as it is, and a look at each of its characters is what costs.
    return line if line.isprintable() else printable(line.replace("\t", "    "))


def copy_printable(source: BinaryIO, target: TextIO) -> None:
    """All of `source` onto `target`."""
    printer = Printer(target)
    while piece := source.read(PIECE):
        printer.put(piece)
    printer.end()

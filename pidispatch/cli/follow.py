"""The kept output of one job while it is written, until the job has ended. Neither the job nor the server is held.

What the store says decides; where the server does not answer, the record on the disk alone does.
"""

import sys
from collections.abc import Callable
from contextlib import closing
from typing import Final, TextIO

from pidispatch.cli import history
from pidispatch.cli.logs import PIECE, Printer, not_kept
from pidispatch.cli.streams import reader_is_gone
from pidispatch.cli.view import Live, error_console, note
from pidispatch.cli.wait import POLL_S, Narrator, Pause, signalled
from pidispatch.config.text import printable
from pidispatch.jobs.rows import JobState, Row
from pidispatch.jobs.store import JobStore
from pidispatch.runs.records import RecordStore
from pidispatch.server.address import Address
from pidispatch.server.client import connect
from pidispatch.server.embedded import Embedded
from pidispatch.server.use import load_server_settings
from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits

#: Exit code of one who stopped following.
_DETACHED: Final = 1
#: Looks for which a server that did not answer is not asked again: each may take seconds.
REST: Final = 20


def follow_job(records: RecordStore, job_id: str) -> int:
    """Print the output of a job from its beginning until the job has ended; the exit code.

    Raises `click.ClickException` for a job that is unknown everywhere, and for one that ended without kept output.
    """
    console = error_console()
    settings = load_server_settings()
    with closing(connect(Address.of(settings))) as client, signalled() as pause:
        store = JobStore(client, settings.key_prefix, Limits())
        own = Embedded(settings.state_dir) if settings.valkey_url is None else None
        follower = Follower(
            store, records, Live(console, None), sys.stdout, pause, lambda: own is None or own.look().lives
        )
        if not follower.knows(job_id):
            job_id = history.the_run(records, job_id, console).job_id
        try:
            ended = follower(job_id)
        except BrokenPipeError:
            # Whoever read has seen enough.
            return 0
    if ended:
        return 0
    note(
        console,
        "no longer following. If the job runs it goes on; cancel it with: pi-dispatch cancel " + printable(job_id),
    )
    return _DETACHED


class Follower:
    """Follows jobs; `pause` waits so many seconds, and says whether the one who waits is to go.

    `served`: whether there may be a server, though it does not answer. Without one no worker runs.
    """

    def __init__(
        self,
        store: JobStore,
        records: RecordStore,
        live: Live,
        target: TextIO,
        pause: Pause,
        served: Callable[[], bool] = lambda: True,
    ) -> None:
        self._served = served
        self._store = store
        self._records = records
        self._live = live
        self._target = target
        self._pause = pause
        self._narrator = Narrator(live)
        self._printer = Printer(target)
        self._away = False
        #: Looks until the server is asked again.
        self._rest = 0
        #: The attempt whose output is printed, 0 where that is not known, and how many bytes of it are.
        self._attempt = 0
        self._at = 0
        self._kept = False
        self._warned = False

    def knows(self, job_id: str) -> bool:
        """Whether output, a record or the store has the job of exactly this id."""
        return (
            self._records.log_path(job_id).exists()
            or self._records.find(job_id) is not None
            or self._row(job_id) is not None
        )

    def __call__(self, job_id: str) -> bool:
        """Print the output as it comes; false where the one who waits was told to go before the job had ended.

        Raises `click.ClickException` where the job ended and nothing was kept, `InfraError` for what cannot be read,
        and `BrokenPipeError`.
        """
        while True:
            row = self._row(job_id)
            # Looked at before the output: what an ended job had to say is all there.
            ended = self._has_ended(job_id, row)
            self._drain(job_id, row)
            if ended:
                break
            self._warn(job_id, row)
            if reader_is_gone(self._target):
                return True
            if self._pause(POLL_S):
                self._printer.end()
                return False
        self._printer.end()
        if not self._kept:
            raise not_kept(job_id)
        return True

    def _row(self, job_id: str) -> Row | None:
        """The job's row; `None` where the store has none, and where the server does not answer."""
        if self._rest > 0:
            self._rest -= 1
            return None
        try:
            row = self._store.row(job_id)
            self._away = False
        except InfraError as error:
            if not self._away:
                self._live.happened(f"{printable(error.message)}. Until it does, the record of the run tells its end")
            self._away, self._rest = True, REST
            return None
        return row

    def _has_ended(self, job_id: str, row: Row | None) -> bool:
        if row is not None:
            self._narrator.see(row, self._store.record_of(row), None)
            return row.state.terminal
        # A store that answers and does not know the job never will.
        return not self._away or self._records.find(job_id) is not None or not self._served()

    def _drain(self, job_id: str, row: Row | None) -> None:
        """Print what has come since the last look."""
        file = self._records.open_log(job_id)
        if file is None:
            return
        self._kept = True
        with file:
            size = file.seek(0, 2)
            if self._is_new(row, size):
                self._printer.end()
                self._at = 0
            file.seek(self._at)
            while self._at < size and (piece := file.read(min(PIECE, size - self._at))):
                self._at += len(piece)
                self._printer.put(piece)
        self._target.flush()

    def _is_new(self, row: Row | None, size: int) -> bool:
        """Whether the file holds the output of another attempt than what was printed.

        An attempt empties it before it is noted as spending, so until then it holds what the attempt before left.
        """
        began_anew = size < self._at
        if row is None:
            if began_anew and self._attempt:
                self._attempt += 1
            return began_anew
        if row.spend_ms is None:
            self._attempt = self._attempt or row.attempt - 1
            return False
        known, self._attempt = self._attempt, row.attempt
        return began_anew or 0 < known < row.attempt

    def _warn(self, job_id: str, row: Row | None) -> None:
        """Say once that a job runs of which nothing is kept here."""
        runs = row is not None and row.state is JobState.ACTIVE and row.spend_ms is not None
        if runs and not self._kept and not self._warned:
            self._warned = True
            self._live.happened(
                f"{printable(job_id)} runs, and its output is not kept in {printable(str(self._records.folder))}: its "
                "worker keeps it with PI_CAPTURE_JOB_LOGS=1, on its own machine"
            )

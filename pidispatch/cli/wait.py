"""What one who waits for a job sees of it, from its place in the queue to its end. Nothing here changes the job."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Final

from pidispatch.cli.ended import Ended, ended_as
from pidispatch.cli.view import Live
from pidispatch.config.text import printable
from pidispatch.jobs.rows import JobState, Row
from pidispatch.jobs.store import JobStore
from pidispatch.runs.records import RecordStore
from pidispatch.runs.words import say
from pidispatch.values.epoch import from_ms
from pidispatch.values.errors import DispatchError, InfraError
from pidispatch.values.progress import TurnEnded
from pidispatch.values.reason import Reason
from pidispatch.values.record import RunRecord
from pidispatch.values.verdict import Why

#: Seconds between two looks.
POLL_S: Final = 0.25
#: Looks at a job that ended for its record to be written.
RECORD_LOOKS: Final = 20
#: Waits so many seconds; true where the one who waits is told to go.
Pause = Callable[[float], bool]

#: What stands between a job and its start, as it continues "deferred until ...: ".
_WHY: Final = {
    Why.HOST_BUSY.value: "all job slots of the machine are taken",
    Why.SCOPE_BUSY.value: "another job works in the same folder",
    Why.QUIET_HOURS.value: "the quiet hours of its folder last until then",
    Why.PAUSED.value: "its queue is paused, until: pi-dispatch resume",
    Why.FORGE_LIMITED.value: "its forge answers no more questions for now",
    Why.STOPPED.value: "its worker stopped before anything was spent",
}
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signalled() -> Iterator[Pause]:
    """A pause that a signal ends: it sends the one who waits away, and nothing else."""
    # A handler interrupts its own thread anywhere, also inside of a lock. Only this queue may be touched there.
    received: SimpleQueue[int] = SimpleQueue()

    def receive(number: int, _frame: FrameType | None) -> None:
        received.put(number)

    def pause(seconds: float) -> bool:
        try:
            received.get(timeout=seconds)
        except Empty:
            return False
        # The next one who asks is to go as well.
        received.put(0)
        return True

    # One that is ignored stays ignored: `nohup` and a shell's background jobs ask for that.
    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, receive) for number in heeded}
    try:
        yield pause
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Waiter:
    """Follows jobs in the store. A server that is away is waited for, for as long as it takes.

    `ensure` brings one of our own back, and raises a `DispatchError` where it cannot.
    """

    def __init__(
        self, store: JobStore, ensure: Callable[[], None], records: RecordStore, live: Live, pause: Pause
    ) -> None:
        self._store = store
        self._ensure = ensure
        self._records = records
        self._live = live
        self._pause = pause
        self._away = False
        self._record_looks = RECORD_LOOKS

    def follow(self, job_id: str) -> Ended | None:
        """How the job ended; `None` where the one who waits was told to go.

        Raises `InfraError` for a job that nobody knows (cause `job-gone`), and for a row that cannot be read.
        """
        narrator = Narrator(self._live)
        while True:
            try:
                ended = self._look(job_id, narrator)
            except InfraError as error:
                if error.cause != "store-unreachable":
                    raise
                self._is_away(True)
            else:
                self._is_away(False)
                if ended is not None:
                    return ended
            if self._pause(POLL_S):
                return None

    def _is_away(self, away: bool) -> None:
        if away and not self._away:
            self._live.happened("the server does not answer; a job that runs goes on, and so does this wait")
        elif self._away and not away:
            self._live.happened("the server answers again")
        self._away = away
        if away:
            with contextlib.suppress(DispatchError):
                self._ensure()

    def _look(self, job_id: str, narrator: "Narrator") -> Ended | None:
        row = self._store.row(job_id)
        if row is None:
            return self._gone(job_id)
        record = self._store.record_of(row)
        if not row.state.terminal or record is None:
            progress = self._store.read_progress(job_id) if row.state is JobState.ACTIVE else None
            narrator.see(row, record, progress)
            return None
        late = row.recorded is False
        if late and row.state is not JobState.CANCELLED and record.reason != Reason.WORKER_LOST:
            # The one that ran it writes the record right after the end; what no worker ended is written by a sweep.
            self._record_looks -= 1
            if self._record_looks > 0:
                return None
        return ended_as(record, self._store.told(job_id), self._records, late=late)

    def _gone(self, job_id: str) -> Ended:
        """The job is not in the store, or not any more: what is on record of it."""
        record = self._records.find(job_id)
        if record is None:
            raise InfraError(
                f"the server knows no job {job_id} any more: it lost its data, or the job ended long ago. "
                f"What is on record of it: pi-dispatch show {job_id}",
                "job-gone",
            )
        return ended_as(record, None, self._records)


class Narrator:
    """Says what became of a job since the last look: each thing once an attempt, however often it is so again."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._said: set[tuple[object, ...]] = set()
        self._last: Row | None = None

    def see(self, row: Row, record: RunRecord | None, progress: tuple[int, int] | None) -> None:
        """Say what is new in `row`; `record` is that of the attempt before, `progress` turns and tokens so far."""
        match row.state:
            case JobState.QUEUED:
                self._queued(row)
            case JobState.DEFERRED:
                self._deferred(row, record)
            case JobState.ACTIVE:
                self._active(row, progress)
            case _:
                pass
        self._last = row

    def _once(self, text: str, *key: object) -> None:
        if key not in self._said:
            self._said.add(key)
            self._live.happened(text)

    def _queued(self, row: Row) -> None:
        if self._last is not None and self._last.state is JobState.ACTIVE:
            self._once("its worker was lost before anything was spent; it waits again", "lost", row.gen)
        self._once(f"waiting in {row.queue}", "queued", row.queue)
        self._live.goes_on("waiting for a worker")

    def _deferred(self, row: Row, record: RunRecord | None) -> None:
        until = instant(row.due_ms)
        if row.why == Why.RETRY:
            why = "" if record is None else f" ({'/'.join(filter(None, (record.reason, record.cause)))})"
            self._once(
                f"attempt {row.attempt - 1} of {row.max_attempts} failed{printable(why)}; the next comes at {until}",
                row.attempt,
                row.why,
            )
        else:
            why = _WHY.get(row.why or "", printable(row.why or "it was put off"))
            self._once(f"deferred until {until}: {why}", row.attempt, row.why)
        self._live.goes_on(f"deferred until {until}")

    def _active(self, row: Row, progress: tuple[int, int] | None) -> None:
        # A job that is put off again and again is active for moments in between.
        if self._last is not None and self._last.gen == row.gen and self._last.state is JobState.ACTIVE:
            worker = printable((row.owner or "").partition("#")[0])
            self._once(f"attempt {row.attempt} of {row.max_attempts} runs on {worker}", row.attempt, "runs")
        if row.spend_ms is None:
            self._live.goes_on("checking")
        elif progress is None:
            self._live.goes_on("the agent works")
        elif (row.attempt, *progress) not in self._said:
            self._said.add((row.attempt, *progress))
            self._live.counts(say(TurnEnded(turns=progress[0], tokens=progress[1])))


def instant(due_ms: int | None) -> str:
    """An instant of the server's clock, in milliseconds since 1970, as `12:03:05Z`."""
    return "its time" if due_ms is None else f"{from_ms(due_ms):%H:%M:%SZ}"

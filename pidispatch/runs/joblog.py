"""The whole output of one job as a file, kept where the operator asked for it (docs/reference/record.md)."""

import contextlib
import os
import stat
import threading
from collections.abc import Sequence
from pathlib import Path

from pidispatch.box.run import Sink
from pidispatch.config.log import log
from pidispatch.runs.seams import Output

#: Seconds to wait for a write under way before its file is left to it.
_CLOSE_S = 2.0
_OPEN = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def shown(output: Output, job_id: str) -> Sink:
    """What `output` gives for the job, for a run that goes on when nobody can hear it any more.

    Asked for with the first output; once it fails, that is told to the log and no more is given to it.
    """
    sink: Sink | None = None
    failed = False

    def write(chunk: bytes) -> None:
        nonlocal sink, failed
        if failed:
            return
        try:
            sink = sink or output(job_id)
            sink(chunk)
        except Exception as error:
            failed = True
            with contextlib.suppress(OSError, ValueError):
                log().warning("output_sink_failed", jobId=job_id, cause=type(error).__name__)

    return write


def tee(sinks: Sequence[Sink]) -> Sink:
    """Every chunk to each of `sinks`, in their order."""

    def write(chunk: bytes) -> None:
        for sink in sinks:
            sink(chunk)

    return write


class JobLog:
    """Takes a container's output as bytes and keeps the first `max_bytes` of it at `path`, a `.log` file.

    An older file is overwritten. Nothing here ever raises: what cannot be kept is told once to the log, and the run
    goes on. Past the bound one marker line is written, and no more.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._left = max_bytes
        # Output comes from a thread of its own, and a descriptor that is closed under it may already be another file.
        self._lock = threading.Lock()
        self._closed = False
        self._handle: int | None = None
        try:
            self._handle = _opened(path)
        except OSError as error:
            self._give_up(error)

    def write(self, chunk: bytes) -> None:
        """Keep the next bytes."""
        with self._lock:
            if self._handle is None or not chunk:
                return
            try:
                _write_all(self._handle, chunk[: self._left])
                self._left -= len(chunk)
                if self._left < 0:
                    _write_all(self._handle, self._marker())
                if self._left < 0 or self._closed:
                    self._close()
            except OSError as error:
                self._give_up(error)

    def close(self) -> None:
        """Take no more. Nothing is buffered here, so nothing is waited for but a write under way, and that not long."""
        self._closed = True
        if not self._lock.acquire(timeout=_CLOSE_S):
            return
        try:
            self._close()
        except OSError as error:
            self._give_up(error)
        finally:
            self._lock.release()

    def _marker(self) -> bytes:
        return f"\n[pi-dispatch: PI_JOB_LOG_MAX_BYTES={self._max_bytes} is reached; the rest was not kept]\n".encode()

    def _close(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def _give_up(self, error: OSError) -> None:
        # The log's own reader may be gone as well.
        with contextlib.suppress(OSError, ValueError):
            log().warning("log_sink_error", jobId=self._path.stem, reason=type(error).__name__, errno=error.errno)
        with contextlib.suppress(OSError):
            self._close()


def _opened(path: Path) -> int:
    handle = os.open(path, _OPEN, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("not a regular file")
        os.fchmod(handle, 0o600)
    except OSError:
        os.close(handle)
        raise
    return handle


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]

"""Standard output and error that end nothing: what cannot be printed is lost, and the verb keeps its exit code.

A run is paid for and done before it is shown. A full disk, a reader that went away, a terminal that was closed and a
descriptor that never was open (`>&-`) all lie below every library that prints, so they are met there, once.
"""

import contextlib
import errno
import io
import os
import select
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Forgiving(io.FileIO):
    """A descriptor. The first fault of a write is kept in `lost`, and all that comes after it is dropped."""

    lost: OSError | None = None

    def write(self, data: "ReadableBuffer", /) -> int:
        """How much of `data` is dealt with, in bytes."""
        if self.lost is None:
            try:
                written: int | None = super().write(data)
            except OSError as error:
                self.lost = error
            else:
                if written is not None:
                    return written
                # The descriptor does not block and is full.
                self.lost = BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return memoryview(data).nbytes


def guard_streams() -> None:
    """Put forgiving streams in the place of the program's own, and open those that are not open.

    No character that a stream's encoding does not have ends anything either: it is printed escaped.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            # Takes the lowest free number, which is the stream's own: no file of a run gets it and is printed into.
            setattr(sys, name, open(os.devnull, mode, errors="backslashreplace"))  # noqa: SIM115 - open to the end
        elif mode == "w":
            setattr(sys, name, _guarded(stream))


def _guarded(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    if not isinstance(getattr(stream.buffer, "raw", stream.buffer), io.FileIO):
        # Not a descriptor but somebody's buffer in memory.
        stream.reconfigure(errors="backslashreplace")
        return stream
    # Does not close the descriptor, which stays the original's (`sys.__stdout__`).
    return io.TextIOWrapper(
        io.BufferedWriter(_Forgiving(stream.fileno(), "w", closefd=False)),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def lost_output() -> OSError | None:
    """Write out what is left; why standard output is incomplete, if it is and its reader wanted more."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    lost = raw.lost if isinstance(raw, _Forgiving) else None
    return None if isinstance(lost, BrokenPipeError) else lost


def reader_is_gone(target: TextIO) -> bool:
    """Whether nobody reads what is printed any more, which no write may tell for long."""
    try:
        descriptor = target.fileno()
    except (OSError, ValueError):
        # A buffer in memory.
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))

"""What jobs print and what happens to them, on the worker's standard output: whole lines, each with its job's id."""

import codecs
import sys
import threading
from typing import TextIO

from pidispatch.box.run import Sink
from pidispatch.config.text import printable
from pidispatch.runs.words import say
from pidispatch.values.progress import Progress, TurnEnded

#: Characters of a line that are shown; a job may print without ever ending one.
_LINE_CHARS = 4096


class JobOutput:
    """Gives each job a sink of its own; lines of jobs that run at the same time do not mix."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._lock = threading.Lock()

    def __call__(self, job_id: str) -> Sink:
        """What takes the output of `job_id`, chunk by chunk."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        rest = ""

        def write(chunk: bytes) -> None:
            nonlocal rest
            *lines, rest = (rest + decoder.decode(chunk)).split("\n")
            if len(rest) > _LINE_CHARS:
                lines, rest = [*lines, rest], ""
            for line in lines:
                self._line(job_id, line)

        return write

    def step(self, job_id: str, progress: Progress) -> None:
        """Show what happens to a job beside what it prints; its turns it prints itself."""
        if not isinstance(progress, TurnEnded):
            self._line(job_id, say(progress))

    def say(self, text: str) -> None:
        """Show something that is about no job of now."""
        with self._lock:
            self._stream.write(f"{printable(text)}\n")
            self._stream.flush()

    def _line(self, job_id: str, line: str) -> None:
        with self._lock:
            shown = printable(line[:_LINE_CHARS].rstrip("\r"))
            self._stream.write(f"[{job_id}] {shown}\n")
            self._stream.flush()

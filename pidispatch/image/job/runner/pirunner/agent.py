"""The pi process as the runner sees it: commands in, events out, and an end that always comes.

pi speaks one JSON object per line over stdin and stdout (pi's documentation, "RPC Mode"). Everything that can happen
to the run arrives in one inbox in its order: an event, the end of pi's output, the end of a child, a request to
terminate. So the main thread waits in one place only.
"""

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO

from pirunner import records
from pirunner.records import Record

#: Events that repeat or preview others. They make up most of the stream, and are not even parsed.
_SKIPPED = (b'{"type":"message_update"', b'{"type":"tool_execution_update"')
#: Characters of pi's stderr that are kept for a message.
_STDERR_TAIL = 4000
#: Seconds the end of pi's output may lag behind the end of pi. A child that inherited the pipe can keep it open.
_OUTPUT_LAG_SECONDS = 1.0

#: Requests of extensions that block until they are answered (pi's documentation, "RPC Extension UI").
_DIALOGS = frozenset({"select", "confirm", "input", "editor"})


class Notice(Enum):
    """What the inbox holds besides pi's events."""

    OUTPUT_ENDED = "output-ended"
    CHILD_ENDED = "child-ended"
    TERMINATE = "terminate"


#: Made before pi is started, because a signal may come first.
Inbox = SimpleQueue[Record | Notice]


class AgentGone(Exception):
    """pi ended, or closed its output, while the runner was waiting for it."""


class Terminated(Exception):
    """The runner was asked to end."""


class Agent:
    """One pi process. Use `receive` from the main thread only."""

    def __init__(self, command: Sequence[str], cwd: Path, environ: Mapping[str, str], inbox: Inbox) -> None:
        """Start the process; raises OSError when that fails."""
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command,
            bufsize=1 << 16,
            cwd=cwd,
            env=environ,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            # A signal meant for the runner's process group is the runner's to handle.
            start_new_session=True,
        )
        self._inbox = inbox
        self._outbox: SimpleQueue[bytes | None] = SimpleQueue()
        self._stderr_tail = b""
        self._gone_at: float | None = None
        self._output_ended = False
        self._late: list[Record] = []
        streams = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._threads = [
            threading.Thread(target=target, args=(stream,), daemon=True)
            for target, stream in zip((self._write, self._read, self._drain), streams, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        """pi's process id."""
        return self._process.pid

    # -- towards pi

    def send(self, kind: str, **fields: object) -> None:
        """Queue one command. Never blocks, not even when pi stopped reading; a gone pi swallows it."""
        self._outbox.put(json.dumps({"type": kind, **fields}).encode() + b"\n")

    def _write(self, stdin: IO[bytes]) -> None:
        with suppress(OSError):
            while (data := self._outbox.get()) is not None:
                stdin.write(data)
                stdin.flush()
        with suppress(OSError):
            stdin.close()

    # -- from pi

    def _read(self, stdout: IO[bytes]) -> None:
        # A binary stream splits on line feeds alone; other separators are legal inside pi's strings.
        for line in stdout:
            if not line.startswith(_SKIPPED) and (record := records.parse_record(line)) is not None:
                self._inbox.put(record)
        self._inbox.put(Notice.OUTPUT_ENDED)

    def _drain(self, stderr: IO[bytes]) -> None:
        while chunk := os.read(stderr.fileno(), 1 << 16):
            self._stderr_tail = (self._stderr_tail + chunk)[-_STDERR_TAIL:]

    def receive(self, deadline: float | None = None) -> Record | None:
        """pi's next event, or None when `deadline` (monotonic seconds) passed.

        Raises AgentGone after pi's last event when pi ended, Terminated when the runner was asked to end.
        """
        while True:
            try:
                item = self._inbox.get(timeout=self._patience(deadline))
            except Empty:
                if self._gone_at is not None and time.monotonic() >= self._gone_at:
                    raise AgentGone from None
                return None
            if not isinstance(item, Notice):
                self._answer(item)
                return item
            self._note(item)
            if item is Notice.TERMINATE:
                raise Terminated
            if self._output_ended:
                raise AgentGone

    def _patience(self, deadline: float | None) -> float | None:
        ends = [moment for moment in (deadline, self._gone_at) if moment is not None]
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def _note(self, notice: Notice) -> None:
        if notice is Notice.OUTPUT_ENDED:
            self._output_ended = True
        elif notice is Notice.CHILD_ENDED and self._gone_at is None and self._process.poll() is not None:
            self._gone_at = time.monotonic() + _OUTPUT_LAG_SECONDS

    def _answer(self, record: Record) -> None:
        if record.get("type") == "extension_ui_request" and record.get("method") in _DIALOGS:
            self.send("extension_ui_response", id=record.get("id"), cancelled=True)

    # -- the end

    def stop(self, settle_seconds: float, kill_seconds: float) -> None:
        """End pi: close its stdin, then SIGTERM, then SIGKILL, with the given patience between them.

        A request to terminate that arrives meanwhile shortens the patience. Returns when pi has ended.
        """
        self._outbox.put(None)
        if self._wait(settle_seconds):
            return
        self._process.terminate()
        if self._wait(kill_seconds):
            return
        self._process.kill()
        self._process.wait()

    def _wait(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self._process.poll() is None:
            try:
                item = self._inbox.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                return self._process.poll() is not None
            if item is Notice.TERMINATE:
                return False
            if not isinstance(item, Notice):
                self._late.append(item)
        return True

    def leftovers(self, seconds: float) -> Iterator[Record]:
        """Events that were still on their way when pi ended. Call it once nothing can hold pi's pipes any more."""
        self._threads[1].join(seconds)
        yield from self._late
        with suppress(Empty):
            while True:
                item = self._inbox.get_nowait()
                if not isinstance(item, Notice):
                    yield item

    def last_words(self) -> str:
        """How pi ended and the end of its stderr, for a message."""
        self._threads[2].join(_OUTPUT_LAG_SECONDS)
        # Its output closes a moment before it can be collected.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_OUTPUT_LAG_SECONDS)
        code = self._process.poll()
        ended = "is still running" if code is None else f"ended with code {code}"
        tail = self._stderr_tail.decode("utf-8", "replace").strip()
        return f"pi {ended}: {tail}" if tail else f"pi {ended} and said nothing"

"""The one way to start a program on the host: a list of arguments, a closed environment, a bound and a time-out."""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pidispatch.values.errors import InfraError

_CHUNK = 65536
#: Memory of its own that a program may take; files mapped into it do not count.
_MEMORY_BYTES = 2 * 1024**3
#: Seconds to wait for the rest of an ended program's output; a process that left its group may hold the pipe open.
_DRAIN_S = 5.0


@dataclass(frozen=True)
class Finished:
    """A program that ended. `output` and `errors` are cut at the bound; `truncated` says whether."""

    code: int
    output: bytes
    errors: bytes
    truncated: bool

    @property
    def error_text(self) -> str:
        """Standard error as text, undecodable bytes replaced."""
        return self.errors.decode("utf-8", "replace")


def search_path() -> str:
    """The `PATH` without its relative entries, which would find programs in whatever folder is the current one."""
    return os.pathsep.join(part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(part))


def program(name: str) -> str:
    """Absolute path of a program on the `PATH`, relative entries of it ignored. Raises `InfraError`."""
    found = shutil.which(name, path=search_path())
    if found is None:
        raise InfraError(f"{name} is not installed on this machine; install it and try again", f"no-{name}")
    return found


def run_program(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    timeout_s: float,
    max_bytes: int,
    stdin: bytes = b"",
) -> Finished:
    """Run `argv` (its first part an absolute path) to its end, in a process group of its own.

    Output past `max_bytes` is read and dropped, so that a program never blocks on us. Past `timeout_s` seconds the
    whole group is killed and `InfraError` (cause `timeout`) raised.
    """
    name = Path(argv[0]).name
    try:
        process = subprocess.Popen(
            list(argv),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            close_fds=True,
        )
    except OSError as error:
        raise InfraError(f"{name} cannot be started: {error.strerror}", "not-started") from None
    with contextlib.suppress(ProcessLookupError):
        # A file can be made to look small and unpack to more than this machine has.
        resource.prlimit(process.pid, resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    output, errors = _Reader(process.stdout, max_bytes), _Reader(process.stderr, min(max_bytes, _CHUNK))
    feeder = threading.Thread(target=_feed, args=(process.stdin, stdin), daemon=True)
    feeder.start()
    try:
        code = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        raise InfraError(f"{name} did not end within {timeout_s:g} s and was killed", "timeout") from None
    finally:
        # Whatever the program left behind in its group holds our pipes open and has no business going on.
        _kill_group(process)
    output.thread.join(_DRAIN_S)
    errors.thread.join(_DRAIN_S)
    return Finished(code, bytes(output.kept), bytes(errors.kept), output.truncated)


class _Reader:
    """Drains one pipe in a thread of its own, keeping its first bytes."""

    def __init__(self, pipe: IO[bytes], limit: int) -> None:
        self.kept = bytearray()
        self.truncated = False
        self._pipe = pipe
        self._limit = limit
        self.thread = threading.Thread(target=self._drain, daemon=True)
        self.thread.start()

    def _drain(self) -> None:
        with self._pipe as pipe:
            while chunk := os.read(pipe.fileno(), _CHUNK):
                room = self._limit - len(self.kept)
                self.kept += chunk[:room]
                self.truncated = self.truncated or len(chunk) > room


def _feed(pipe: IO[bytes], data: bytes) -> None:
    try:
        with pipe:
            pipe.write(data)
    except BrokenPipeError:
        return


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()

"""The one way to start a program on the host: a list of arguments, a closed environment, a bound and a time-out."""

import contextlib
import os
import resource
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Protocol, Self

from pidispatch.values.errors import InfraError

_CHUNK = 65536
#: Memory of its own that a program may take; files mapped into it do not count.
_MEMORY_BYTES = 2 * 1024**3
#: Seconds between two looks whether a program has ended, where the system does not tell.
_LOOK_S: Final = 0.02
#: Seconds between two looks whether a program is to be ended: a job that is ended has seconds for it.
_STOP_LOOK_S: Final = 0.2
#: Seconds to wait for the rest of an ended program's output; a process that left its group may hold the pipe open.
_DRAIN_S = 5.0


class Stop(Protocol):
    """Set once a program is not wanted any more, such as a `threading.Event`."""

    def is_set(self) -> bool:
        """Whether it is to be ended."""
        ...


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
    stop: Stop | None = None,
) -> Finished:
    """Run `argv` (its first part an absolute path) to its end, in a process group of its own.

    Output past `max_bytes` is read and dropped, so that a program never blocks on us. Past `timeout_s` seconds the
    whole group is killed and `InfraError` (cause `timeout`) raised; likewise (cause `stopped`) once `stop` is set, and
    where it is from the first nothing is started.
    """
    name = Path(argv[0]).name
    if stop is not None and stop.is_set():
        raise InfraError(f"{name} was not started: it is not wanted any more", "stopped")
    try:
        # Made first: a program that is started must be watched.
        selector = selectors.DefaultSelector()
        process = subprocess.Popen(
            list(argv),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            close_fds=True,
        )
    except OSError as error:
        raise InfraError(f"{name} cannot be started: {error.strerror}", "not-started") from None
    assert process.stdout is not None
    assert process.stderr is not None
    output, errors = _Kept(process.stdout, max_bytes), _Kept(process.stderr, min(max_bytes, _CHUNK))
    with _Exchange(process, (output, errors), stdin, selector, stop) as exchange:
        with contextlib.suppress(ProcessLookupError):
            # A file can be made to look small and unpack to more than this machine has.
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))
        if not exchange.until_exit(timeout_s):
            if exchange.stopped:
                raise InfraError(f"{name} was ended: it is not wanted any more", "stopped")
            raise InfraError(f"{name} did not end within {timeout_s:g} s and was killed", "timeout")
        # Whatever the program left behind in its group holds our pipes open and has no business going on.
        exchange.end_group()
        exchange.until_closed(_DRAIN_S)
    return Finished(process.returncode, bytes(output.data), bytes(errors.data), output.truncated)


class _Kept:
    """The first bytes of one pipe."""

    def __init__(self, pipe: IO[bytes], limit: int) -> None:
        self.pipe = pipe
        self.data = bytearray()
        self.truncated = False
        self._limit = limit

    def read(self) -> bool:
        """Take what is there, and drop what is too much; whether more may come."""
        chunk = os.read(self.pipe.fileno(), _CHUNK)
        room = self._limit - len(self.data)
        self.data += chunk[:room]
        self.truncated = self.truncated or len(chunk) > room
        return bool(chunk)


class _Exchange:
    """All pipes of one program and its exit, watched at once by the thread that called.

    A thread for each pipe would take longer than most programs that are run here. Once it is left, the program and its
    group are gone.
    """

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        outputs: Sequence[_Kept],
        stdin: bytes,
        selector: selectors.BaseSelector,
        stop: Stop | None,
    ) -> None:
        self._process = process
        self._outputs = outputs
        self._rest = memoryview(stdin)
        self._exited = self._group_ended = False
        self._exit_fd: int | None = None
        self._selector = selector
        self._stop = stop

    @property
    def stopped(self) -> bool:
        """Whether the program is not wanted any more."""
        return self._stop is not None and self._stop.is_set()

    def __enter__(self) -> Self:
        try:
            self._watch()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    def _watch(self) -> None:
        for output in self._outputs:
            self._selector.register(output.pipe, selectors.EVENT_READ, output)
        self._exit_fd = _exit_fd(self._process.pid)
        if self._exit_fd is not None:
            self._selector.register(self._exit_fd, selectors.EVENT_READ)
        if self._process.stdin is not None:
            os.set_blocking(self._process.stdin.fileno(), False)
            self._selector.register(self._process.stdin, selectors.EVENT_WRITE)

    def until_exit(self, seconds: float) -> bool:
        """Serve the pipes until the program has ended; `False` where it has not within `seconds`, or is to stop."""
        until = time.monotonic() + seconds
        most = _LOOK_S if self._exit_fd is None else _STOP_LOOK_S if self._stop is not None else seconds
        while not self._exited:
            if (left := until - time.monotonic()) <= 0 or self.stopped:
                return False
            self._serve(min(left, most))
            self._exited = self._exited or (self._exit_fd is None and self._process.poll() is not None)
        return True

    def until_closed(self, seconds: float) -> None:
        """Serve the outputs until nobody can write there any more, for at most `seconds`."""
        until = time.monotonic() + seconds
        while any(output.pipe in self._selector.get_map() for output in self._outputs):
            if (left := until - time.monotonic()) <= 0:
                return
            self._serve(left)

    def _serve(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            if isinstance(key.data, _Kept):
                if not key.data.read():
                    self._selector.unregister(key.fileobj)
            elif key.fd == self._exit_fd:
                self._exited = True
                self._selector.unregister(key.fileobj)
            else:
                self._feed(key.fd)

    def _feed(self, handle: int) -> None:
        try:
            self._rest = self._rest[os.write(handle, self._rest[:_CHUNK]) :]
        except BrokenPipeError:
            self._rest = self._rest[:0]
        if not self._rest and self._process.stdin is not None:
            self._selector.unregister(handle)
            self._process.stdin.close()

    def end_group(self) -> None:
        """End the program and whatever it left behind in its group; a second time changes nothing."""
        if self._group_ended:
            # By now its number may be another one's.
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._group_ended = True

    def _leave(self) -> None:
        self.end_group()
        self._selector.close()
        for pipe in (self._process.stdin, *(output.pipe for output in self._outputs)):
            if pipe is not None:
                pipe.close()
        if self._exit_fd is not None:
            os.close(self._exit_fd)


def _exit_fd(pid: int) -> int | None:
    """What can be read once the process `pid` has ended; `None` where the system has nothing like it."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None

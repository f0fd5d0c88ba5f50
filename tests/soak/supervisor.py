"""A worker that is started again whenever it ends, as systemd does it, and an account of each of its lives."""

import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.server import until

#: Seconds from the end of a worker to its next start.
RESTART_S: Final = 1.0
#: Seconds a worker that was told to stop may take, and one that starts until it consumes.
STOP_S, READY_S = 60, 60
#: What a worker logs that ends itself on purpose, so that it is started anew.
GIVING_UP: Final = ("consumer_deaf", "worker_stuck")


@dataclass
class Life:
    """One process of a worker."""

    process: "subprocess.Popen[bytes]"
    log: Path
    began: float
    #: The signal by which the soak ended it.
    ended_by: signal.Signals | None = None
    #: Seconds it took to end after that.
    took_s: float | None = None

    @property
    def ready(self) -> bool:
        """Whether it ever took jobs."""
        return self._said("worker_started")

    @property
    def gave_up(self) -> bool:
        """Whether it ended itself on purpose."""
        return any(self._said(event) for event in GIVING_UP)

    @property
    def fault(self) -> str | None:
        """Why its end is none that a worker may have; `None` where it lives, or ended as it should."""
        code = self.process.poll()
        if code is None or self.ended_by is signal.SIGKILL:
            return None
        if self.ended_by is not None:
            # One that is told so while it starts dies of the signal itself.
            fine = code == 0 or self.gave_up or (not self.ready and code in (1, -self.ended_by))
            return None if fine else f"told to stop, it ended with {code}"
        # It may refuse to begin without a server, and may give up.
        if code == 1 and (self.gave_up or not self.ready):
            return None
        return f"it ended by itself with {code}"

    def _said(self, event: str) -> bool:
        return f'"event":"{event}"' in self.log.read_text(errors="replace").replace('": "', '":"')


class Supervised:
    """One worker by name. `start` and `end` are called once; faults come in between, from one thread."""

    def __init__(self, name: str, command: list[str], environment: Mapping[str, str], cwd: Path, logs: Path) -> None:
        self.name = name
        self.lives: list[Life] = []
        self._command = command
        self._environment = dict(environment)
        self._cwd = cwd
        self._logs = logs
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"keep-{name}", daemon=True)

    def start(self) -> None:
        """Start it, and wait until it takes jobs."""
        self._thread.start()
        self.await_ready()

    def await_ready(self) -> None:
        """Wait until the process that runs takes jobs. Raises `TimeoutError`."""
        until(lambda: bool(self.lives) and self._lives() and self.lives[-1].ready, f"{self.name} to begin", READY_S)

    def _lives(self) -> bool:
        return self.lives[-1].process.poll() is None

    def _keep(self) -> None:
        while not self._ending.is_set():
            life = self._begin()
            self.lives.append(life)
            life.process.wait()
            self._ending.wait(RESTART_S)

    def _begin(self) -> Life:
        log = self._logs / f"{self.name}-{len(self.lives):03}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                self._command,
                env=self._environment,
                cwd=self._cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        return Life(process, log, time.time())

    @property
    def pid(self) -> int | None:
        """The process that runs now."""
        return self.lives[-1].process.pid if self.lives and self._lives() else None

    def end_by(self, how: signal.Signals) -> bool:
        """Send the signal and wait for the end; whether there was a process. Raises `TimeoutError`."""
        life = self.lives[-1]
        if life.process.poll() is not None:
            return False
        life.ended_by = how
        began = time.monotonic()
        life.process.send_signal(how)
        try:
            life.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self.name} did not end within {STOP_S} s; its log is {life.log}") from None
        life.took_s = time.monotonic() - began
        return True

    def freeze(self, pause: threading.Event, seconds: float) -> bool:
        """Let it stand still for so long, or until `pause` is set; whether there was a process."""
        process = self.lives[-1].process
        if process.poll() is not None:
            return False
        process.send_signal(signal.SIGSTOP)
        try:
            pause.wait(seconds)
        finally:
            process.send_signal(signal.SIGCONT)
        return True

    def end(self) -> None:
        """Have it stop for good, as an operator would. Raises `TimeoutError`."""
        self._ending.set()
        self.end_by(signal.SIGTERM)
        self._thread.join(STOP_S)

    def kill(self) -> None:
        """Be sure that it is gone."""
        self._ending.set()
        for life in self.lives[-1:]:
            with contextlib.suppress(ProcessLookupError):
                life.process.kill()
        if self._thread.is_alive():
            self._thread.join(STOP_S)

"""A thread that does one thing again and again, and goes on whatever happens in it."""

import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from pidispatch.config.log import log
from pidispatch.values.errors import DispatchError


class Ticker:
    """Calls `act` every `every_s` seconds from `start` to `stop`, and `again_s` after a call that failed."""

    def __init__(self, name: str, every_s: float, act: Callable[[], None], again_s: float | None = None) -> None:
        self._name = name
        self._every_s = every_s
        self._again_s = every_s if again_s is None else again_s
        self._act = act
        self._stopping = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"pi-{name}", daemon=True)

    def start(self) -> None:
        """Begin; the first call comes after one interval."""
        self._thread.start()

    def nudge(self) -> None:
        """Have the next call come at once."""
        self._woken.set()

    def stop(self, timeout_s: float = 5.0) -> None:
        """End it; a call that is under way is waited for, within bounds."""
        self._stopping.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        pause = self._every_s
        while not self._stops_within(pause):
            pause = self._again_s
            try:
                self._act()
                pause = self._every_s
            except DispatchError as error:
                log().warning("tick_failed", thread=self._name, cause=error.cause)
            except Exception as error:
                # A mistake of ours must not end what keeps the leases.
                raised = traceback.extract_tb(error.__traceback__)[-1]
                place = f"{Path(raised.filename).name}:{raised.lineno}"
                log().error("tick_broke", thread=self._name, cause=type(error).__name__, at=place)

    def _stops_within(self, pause_s: float) -> bool:
        """Wait, until it is woken at most; whether this is the end."""
        self._woken.wait(pause_s)
        self._woken.clear()
        return self._stopping.is_set()

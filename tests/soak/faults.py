"""Carries out what goes wrong, one fault after the other."""

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.soak.place import Place
from tests.soak.plan import Fault, PlannedFault
from tests.soak.supervisor import Supervised
from tests.support.server import OwnServer


@dataclass(frozen=True)
class Done:
    """A fault that took place. Times are seconds since 1970."""

    kind: Fault
    #: The worker that it met, or `server`.
    whom: str
    began: float
    ended: float
    #: Whether it met anything: a worker may just be between two of its lives.
    met: bool = True


class Faults:
    """Those of one soak, in the order in which they took place."""

    def __init__(self, place: Place, pause: threading.Event) -> None:
        self._place = place
        self._pause = pause
        self.done: list[Done] = []

    def carry_out(self, planned: PlannedFault) -> None:
        """Let one take place, from its begin to its end."""
        began, of_server = time.time(), _OF_SERVER.get(planned.kind)
        if of_server is not None:
            of_server(self._place.server, self._pause, planned.lasts_s)
            self.done.append(Done(planned.kind, "server", began, time.time()))
            return
        worker = next(one for one in self._place.workers if one.name == planned.worker)
        met = self._meet(worker, planned)
        self.done.append(Done(planned.kind, planned.worker, began, time.time(), met))

    def _meet(self, worker: Supervised, planned: PlannedFault) -> bool:
        if planned.kind is Fault.WORKER_FROZEN:
            return worker.freeze(self._pause, planned.lasts_s)
        return worker.end_by(signal.SIGKILL if planned.kind is Fault.WORKER_KILLED else signal.SIGTERM)


def _away(how: signal.Signals) -> Callable[[OwnServer, threading.Event, float], None]:
    def fault(server: OwnServer, pause: threading.Event, seconds: float) -> None:
        server.stop(how)
        pause.wait(seconds)
        server.start()

    return fault


def _frozen(server: OwnServer, pause: threading.Event, seconds: float) -> None:
    server.freeze()
    try:
        pause.wait(seconds)
    finally:
        server.thaw()


_OF_SERVER: Final[dict[Fault, Callable[[OwnServer, threading.Event, float], None]]] = {
    Fault.SERVER_KILLED: _away(signal.SIGKILL),
    Fault.SERVER_STOPPED: _away(signal.SIGTERM),
    Fault.SERVER_FROZEN: _frozen,
}

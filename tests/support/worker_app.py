"""The real application with small limits: `celery -A tests.support.worker_app worker`, and the program of `Post`.

What it is told stands as JSON in PI_TEST_WORKER: `limits` (fields of `Limits`), `engine` (a name that makes one engine
look like another, so that two workers may share it), `kill` (a point at which the process ends itself by SIGKILL, as
`before:acquire` or `after:Engine.create`), `armed` (a file: before it is there nothing is killed), `act` (like `kill`:
points, each with what is done there: `stop` as SIGTERM does, `cancel` of the job in hand), `deaf` (a file: while it is
there nothing is fetched), `broken` (`gate` or `attempt`: it raises for a job whose model is `poison`).
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from celery import current_app
from kombu.transport.redis import QoS

from pidispatch.box.engine import Engine
from pidispatch.gates.folder import FolderMutex
from pidispatch.gates.host import HostSlots
from pidispatch.jobs.calls import Calls
from pidispatch.jobs.keys import CANCEL_REQUEST
from pidispatch.runs.attempt import Attempt
from pidispatch.values.job import LocalJob
from pidispatch.values.limits import Limits
from pidispatch.worker.app import make_app
from pidispatch.worker.consumer import FetchGate
from pidispatch.worker.deliver import Deliverer
from pidispatch.worker.program import run_worker
from pidispatch.worker.station import station_of
from tests.support.server import until

VARIABLE = "PI_TEST_WORKER"
TOLD: dict[str, Any] = json.loads(os.environ.get(VARIABLE, "{}"))
LIMITS = Limits(**TOLD.get("limits", {}))
#: Classes whose methods can be points beside the scripts, by the name they go by in a point.
_CLASSES: dict[str, type[Any]] = {"Engine": Engine, "FolderMutex": FolderMutex, "QoS": QoS}


def engine_points() -> list[str]:
    """Every public name of the engine room, which only its methods call the engine by."""
    return sorted(name for name in vars(Engine) if not name.startswith("_"))


def _die_at(point: str, armed: str | None) -> None:
    """End this process by SIGKILL right before or right after the named call, the first time it is made when armed."""
    when, _, name = point.partition(":")

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def made(*arguments: Any, **options: Any) -> Any:
            if armed is not None and not os.path.exists(armed):
                return call(*arguments, **options)
            if when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            answer = call(*arguments, **options)
            os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return made

    _wrap(name, dying)


def _act_at(point: str, act: str) -> None:
    """Do something right before or right after the named call, the first time it is made."""
    when, _, name = point.partition(":")
    todo = [{"stop": _stop, "cancel": _cancel}[act]]

    def acting(call: Callable[..., Any]) -> Callable[..., Any]:
        def made(*arguments: Any, **options: Any) -> Any:
            if when == "before" and todo:
                todo.pop()(*arguments)
            answer = call(*arguments, **options)
            if when == "after" and todo:
                todo.pop()(*arguments)
            return answer

        return made

    _wrap(name, acting)


def _stop(*_: Any) -> None:
    """Have this worker told to stop, and go on once it has heard it and told all jobs that it holds."""
    os.kill(os.getpid(), signal.SIGTERM)
    station = station_of(current_app)
    assert station is not None
    until(station._stopping.is_set, "the worker to hear that it stops")
    until(lambda: all(thread.name != "pi-stop" for thread in threading.enumerate()), "the worker to tell its jobs")


def _cancel(calls: Calls, _: str, job_id: str, *__: Any) -> None:
    """Request to cancel the job that a script is about."""
    calls._client.set(calls._key(CANCEL_REQUEST, job_id), "operator-cancel", px=60_000)


def _wrap(name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put something around a delivery, a method (`Engine.create`), or a script of the store."""
    if name == "deliver":
        Deliverer.__call__ = around(Deliverer.__call__)  # type: ignore[method-assign]
        return
    owner, _, method = name.partition(".")
    if method:
        found = _CLASSES[owner]
        made_of_it = around(getattr(found, method))
        # What is called on the class itself is bound to it already.
        bound = isinstance(vars(found)[method], classmethod)
        setattr(found, method, staticmethod(made_of_it) if bound else made_of_it)
        return
    script = Calls._script

    def made(self: Calls, called: str, *arguments: str | int) -> Any:
        return (around(script) if called == name else script)(self, called, *arguments)

    Calls._script = made  # type: ignore[method-assign,assignment]


def _rename_engine(name: str) -> None:
    facts = Engine.facts
    Engine.facts = lambda self: facts(self).model_copy(update={"id": name})  # type: ignore[method-assign]


def _deafen(file: Path) -> None:
    start = FetchGate.start

    def started(self: FetchGate, parent: Any) -> None:
        start(self, parent)
        qos = parent.task_consumer.channel.qos
        may_consume = qos.can_consume
        qos.can_consume = lambda: not file.exists() and may_consume()

    FetchGate.start = started  # type: ignore[method-assign]


def _break(what: str) -> None:
    where, method = {"gate": (HostSlots, "check"), "attempt": (Attempt, "__call__")}[what]
    call = getattr(where, method)

    def broken(self: Any, job: LocalJob, *arguments: Any) -> Any:
        if job.model == "poison":
            raise ValueError("a mistake in the code")
        return call(self, job, *arguments)

    setattr(where, method, broken)


if TOLD.get("engine"):
    _rename_engine(TOLD["engine"])
if TOLD.get("kill"):
    _die_at(TOLD["kill"], TOLD.get("armed"))
for point, act in TOLD.get("act", {}).items():
    _act_at(point, act)
if TOLD.get("deaf"):
    _deafen(Path(TOLD["deaf"]))
if TOLD.get("broken"):
    _break(TOLD["broken"])


def __getattr__(name: str) -> Any:
    if name == "app":
        globals()["app"] = made = make_app(LIMITS)
        return made
    raise AttributeError(name)


if __name__ == "__main__":
    sys.exit(run_worker(LIMITS))

"""What a killed program left on the engine: a container and its network, ended, read and removed."""

from docker.models.containers import Container

from pidispatch.box.engine import Engine, State
from pidispatch.box.faults import ENGINE_FAULTS, describe, fault
from pidispatch.box.run import ContainerEnd
from pidispatch.box.tail import Tail
from pidispatch.config.log import log
from pidispatch.values.base import Value
from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits

_UNSTARTED = "created"
_ENDED = ("exited", "dead")
#: Lines of output that an end is read from.
_LINES = 100


class Leftover(Value):
    """How a container that nobody watched was found."""

    #: Whether it was ever started, and so may have spent.
    started: bool
    #: It had ended before we came; otherwise we ended it.
    by_itself: bool
    end: ContainerEnd


def remove_leftover(engine: Engine, name: str, neighbour: str | None, limits: Limits) -> Leftover | None:
    """End and remove the container `name` and its network; what it was, `None` where there is none.

    Raises `InfraError` where the engine does not say that the container is gone.
    """
    container = engine.find(name)
    found = None
    if container is not None:
        found = _end(engine, container, name, limits)
        if failed := engine.remove(container):
            raise InfraError(f"the container {name} cannot be removed ({failed})", "leftover")
    if neighbour is not None and (failed := engine.remove_network_named(f"{name}-net", neighbour)):
        log().warning("remove_network_failed", jobId=name, fault=failed)
    return found


def _end(engine: Engine, container: Container, name: str, limits: Limits) -> Leftover:
    first = _state(engine, container)
    if first.status == _UNSTARTED:
        return Leftover(started=False, by_itself=False, end=ContainerEnd(code=0))
    by_itself = first.status in _ENDED
    if not by_itself and (failed := engine.stop(name, limits.stop_grace_s)):
        raise InfraError(f"the container {name} cannot be stopped ({failed})", "leftover")
    last = _state(engine, container)
    tail = Tail(limits, lambda _: None)
    try:
        for chunk in engine.last_output(container, _LINES):
            tail.write(chunk)
    except ENGINE_FAULTS as error:
        log().debug("output_unreadable", jobId=name, fault=describe(error))
    end = ContainerEnd(code=last.exit_code, oom_killed=last.oom_killed, tail=tail.text())
    return Leftover(started=True, by_itself=by_itself, end=end)


def _state(engine: Engine, container: Container) -> State:
    try:
        return engine.state(container)
    except ENGINE_FAULTS as error:
        raise fault("the container engine does not answer for a container that was left", error) from None

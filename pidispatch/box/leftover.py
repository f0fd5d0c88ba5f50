"""What a killed program left on the engine: a container and its network, ended, read and removed."""

from collections.abc import Callable

from docker.models.containers import Container

from pidispatch.box.engine import Engine, State
from pidispatch.box.faults import ENGINE_FAULTS, fault
from pidispatch.box.run import ENDED, UNSTARTED, ContainerEnd, kept_output
from pidispatch.config.log import log
from pidispatch.values.base import Value
from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits


class Leftover(Value):
    """How a container that nobody watched was found."""

    #: Whether it was ever started, and so may have spent.
    started: bool
    #: It had ended before we came; otherwise we ended it.
    by_itself: bool
    end: ContainerEnd


def remove_leftover(
    engine: Engine,
    name: str,
    neighbour: str | None,
    deployment: str,
    limits: Limits,
    ended: Callable[[Leftover], None],
) -> Leftover | None:
    """End and remove the container `name` and its network; what it was, `None` where there is none of `deployment`'s.

    `ended` is told while the container is still there. Raises `InfraError` where the engine does not say that the
    container is gone.
    """
    container = None if engine.is_gone(name, deployment) else engine.find(name)
    found = None
    if container is not None:
        found = _end(engine, container, name, limits)
        ended(found)
        if failed := engine.remove(container):
            raise InfraError(f"the container {name} cannot be removed ({failed})", "leftover")
    if neighbour is not None and (failed := engine.remove_network_named(f"{name}-net", neighbour)):
        log().warning("remove_network_failed", jobId=name, fault=failed)
    return found


def _end(engine: Engine, container: Container, name: str, limits: Limits) -> Leftover:
    first = _state(engine, container)
    if first.status == UNSTARTED:
        return Leftover(started=False, by_itself=False, end=ContainerEnd(code=0))
    by_itself = first.status in ENDED
    if not by_itself and (failed := engine.stop(name, limits.stop_grace_s)):
        raise InfraError(f"the container {name} cannot be stopped ({failed})", "leftover")
    last = _state(engine, container)
    end = ContainerEnd(code=last.exit_code, oom_killed=last.oom_killed, tail=kept_output(engine, container, limits))
    return Leftover(started=True, by_itself=by_itself, end=end)


def _state(engine: Engine, container: Container) -> State:
    try:
        return engine.state(container)
    except ENGINE_FAULTS as error:
        raise fault("the container engine does not answer for a container that was left", error) from None

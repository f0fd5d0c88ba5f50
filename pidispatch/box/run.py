"""One container from its creation to its removal: who watches it, what ends it, and what came of it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import docker.errors
from docker.models.containers import Container

from pidispatch.box.abort import Abort
from pidispatch.box.engine import Engine, State
from pidispatch.box.exitline import last_exit
from pidispatch.box.faults import ENGINE_FAULTS, describe
from pidispatch.box.spec import ContainerSpec
from pidispatch.box.tail import Tail
from pidispatch.config.log import log
from pidispatch.values import names
from pidispatch.values.base import Value
from pidispatch.values.clock import Clock
from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits
from pidispatch.values.progress import ContainerStarted, ProgressSink, Stopping
from pidispatch.values.reason import AbortReason

#: States of a container that ran and of one that never did, in the engine's words.
ENDED: Final = ("exited", "dead")
UNSTARTED: Final = "created"
_ABORTED_CODE = 137
_RETRY_S = 0.25
#: Lines asked for where the followed output held no exit line.
_KEPT_LINES = 100


#: Takes the output of a job as it comes.
Sink = Callable[[bytes], None]


class Neighbour(Value):
    """The one container a job can reach."""

    id: str
    #: Its name inside the job's network.
    alias: str


class ContainerEnd(Value):
    """How a container that was to run ended."""

    #: Exit status; 137 for a job that was ended before its container was started.
    code: int
    #: Who ended it, as it stood when the container ended; `None` when it ended by itself.
    aborted: AbortReason | None = None
    #: The engine was lost while the container ran; its status is not known.
    detached: bool = False
    oom_killed: bool = False
    tail: str = ""
    #: Seconds from start to end; `None` when it was not started.
    seconds: float | None = None


def _unheard(_: object) -> None:
    """Nobody asked to be told."""


@dataclass(frozen=True)
class Hooks:
    """What is told of a container on its way. But for `spending`, none of these may raise."""

    #: It is about to be made, and may cost something from then on. What this raises ends the run before that.
    spending: Callable[[], None] = lambda: None
    #: Gets all its output.
    sink: Sink = _unheard
    #: How it ended, told while the container that says so is still there.
    ended: Callable[[ContainerEnd], None] = _unheard
    #: The engine said that neither the container nor its network is there any more.
    gone: Callable[[], None] = lambda: None


def run_container(
    engine: Engine,
    spec: ContainerSpec,
    neighbour: Neighbour | None,
    *,
    abort: Abort,
    progress: ProgressSink,
    clock: Clock,
    hooks: Hooks | None = None,
) -> ContainerEnd:
    """Run the container of `spec`, and remove it and its network whatever happens.

    Without a `neighbour` the job is on the engine's default network. Raises `InfraError` with the cause
    `container-never-started` when nothing ran.
    """
    hooks = hooks or Hooks()
    #: What the engine did not say is gone.
    left: list[str] = []
    try:
        if (unstarted := _unstarted(abort)) is not None:
            return unstarted
        with _network(engine, spec, neighbour, left):
            if (unstarted := _unstarted(abort)) is not None:
                return unstarted
            with _container(engine, spec, left, hooks.spending) as container:
                end = _Run(engine, container, spec, abort, progress, clock, hooks.sink).result()
                hooks.ended(end)
        return end
    finally:
        if not left:
            hooks.gone()


def _unstarted(abort: Abort) -> ContainerEnd | None:
    """The end of a job that was ended before anything was made for it."""
    return None if abort.reason is None else ContainerEnd(code=_ABORTED_CODE, aborted=abort.reason)


@contextmanager
def _container(
    engine: Engine, spec: ContainerSpec, left: list[str], spending: Callable[[], None]
) -> Iterator[Container]:
    spending()
    try:
        container = engine.create(spec)
    except InfraError:
        # An answer that was lost may have left one, with the job's environment in it.
        if not engine.is_gone(spec.name, spec.deployment):
            left.append(spec.name)
        raise
    try:
        yield container
    finally:
        if failed := engine.remove(container):
            left.append(spec.name)
            log().warning("remove_container_failed", jobId=_job(spec), fault=failed)


@contextmanager
def _network(engine: Engine, spec: ContainerSpec, neighbour: Neighbour | None, left: list[str]) -> Iterator[None]:
    if spec.network is None or neighbour is None:
        yield
        return
    network = engine.create_network(spec.network, spec.deployment)
    try:
        engine.connect_neighbour(network, neighbour.id, neighbour.alias)
        yield
    finally:
        if failed := engine.remove_network(network, neighbour.id):
            left.append(spec.network)
            log().warning("remove_network_failed", jobId=_job(spec), fault=failed)


def _job(spec: ContainerSpec) -> str:
    """The job's id as names and logs carry it."""
    return spec.name.removeprefix(names.JOB_PREFIX)


def kept_output(engine: Engine, container: Container, limits: Limits) -> str:
    """The end of an ended container's output as the engine kept it; empty where it does not say."""
    kept = Tail(limits, lambda _: None)
    try:
        for chunk in engine.last_output(container, _KEPT_LINES):
            kept.write(chunk)
    except ENGINE_FAULTS as error:
        log().debug("output_unreadable", container=container.name, fault=describe(error))
    return kept.text()


class _Run:
    """One started container and the two threads that watch it."""

    def __init__(
        self,
        engine: Engine,
        container: Container,
        spec: ContainerSpec,
        abort: Abort,
        progress: ProgressSink,
        clock: Clock,
        sink: Sink,
    ) -> None:
        self._engine = engine
        self._container = container
        self._spec = spec
        self._limits = spec.limits
        self._abort = abort
        self._progress = progress
        self._clock = clock
        self._tail = Tail(spec.limits, progress)
        self._sink = sink
        self._changed = threading.Event()
        self._code: int | None = None
        self._lost: str | None = None
        self._waiter = threading.Thread(target=self._wait_for_exit, daemon=True)
        self._started = 0.0
        self._job = _job(spec)

    def result(self) -> ContainerEnd:
        """Start it and see it to its end."""
        # Both stand before the start, or a container that ends within milliseconds would be missed.
        output = self._engine.output(self._container)
        self._pump = threading.Thread(target=self._pump_output, args=(output,), daemon=True)
        self._pump.start()
        self._waiter.start()
        self._abort.listen(self._changed.set)
        if self._abort.reason is not None:
            return ContainerEnd(code=_ABORTED_CODE, aborted=self._abort.reason)
        self._started = self._clock.monotonic()
        if self._start():
            self._progress(ContainerStarted(name=self._spec.name))
        while self._code is None and self._lost is None and self._abort.reason is None:
            if not self._changed.wait(self._limits.look_every_s):
                self._look()
            self._changed.clear()
        if self._code is None and self._lost is None:
            self._stop()
        if self._lost is not None:
            return self._detached()
        return self._end()

    def _start(self) -> bool:
        """Start it; `False` where nobody can say whether it runs. Raises `InfraError` where it certainly does not."""
        try:
            self._engine.start(self._container)
        except InfraError as error:
            state = self._state()
            if state is not None and state.status == UNSTARTED:
                raise
            if state is None:
                self._lost = error.message
                return False
            # A late answer is none the worse: the container runs, and may already have spent.
            log().warning("start_answered_late", jobId=self._job)
        return True

    def _end(self) -> ContainerEnd:
        aborted = self._abort.reason
        seconds = self._clock.monotonic() - self._started
        self._pump.join(self._limits.drain_s)
        tail = self._tail.text()
        if self._code is None:
            # The stop did not take, so the engine has nothing more to say within any bound.
            return ContainerEnd(code=_ABORTED_CODE, aborted=aborted, tail=tail, seconds=seconds)
        if last_exit(tail) is None:
            # What is followed can miss an end within milliseconds.
            tail = kept_output(self._engine, self._container, self._limits) or tail
        state = self._state()
        oom_killed = state is not None and state.oom_killed
        return ContainerEnd(code=self._code, aborted=aborted, oom_killed=oom_killed, tail=tail, seconds=seconds)

    def _stop(self) -> None:
        """Stop the container by its name and give it a bounded time to be gone."""
        self._progress(Stopping(reason=str(self._abort.reason)))
        if failed := self._engine.stop(self._spec.name, self._limits.stop_grace_s):
            log().warning("stop_container_failed", jobId=self._job, fault=failed)
        deadline = self._clock.monotonic() + self._limits.stop_take_s
        while self._code is None and self._lost is None:
            left = deadline - self._clock.monotonic()
            if left <= 0:
                log().error("stop_did_not_take", job=self._job, graceMs=int(self._limits.stop_take_s * 1000))
                return
            self._changed.clear()
            if not self._changed.wait(min(left, _RETRY_S)):
                self._look()

    def _detached(self) -> ContainerEnd:
        """The engine was lost. What runs there must not go on unwatched: stop and remove it, within bounds."""
        log().error("container_detached", jobId=self._job, fault=self._lost)
        seconds = self._clock.monotonic() - self._started
        deadline = self._clock.monotonic() + self._limits.detached_s
        pace = threading.Event()
        while self._left_there() and self._clock.monotonic() < deadline:
            pace.wait(_RETRY_S)
        return ContainerEnd(code=1, aborted=self._abort.reason, detached=True, tail=self._tail.text(), seconds=seconds)

    def _left_there(self) -> bool:
        """Try to stop and remove the container; whether that failed."""
        stopped = self._engine.stop(self._spec.name, self._limits.stop_grace_s)
        return stopped is not None or self._engine.remove(self._container) is not None

    def _pump_output(self, output: Iterator[bytes]) -> None:
        try:
            for chunk in output:
                self._tail.write(chunk)
                self._sink(chunk)
        except ENGINE_FAULTS as error:
            log().debug("output_lost", jobId=self._job, fault=describe(error))
        # The end of the output is not the end of the job, but a reason to look.
        self._look()

    def _wait_for_exit(self) -> None:
        try:
            self._code = self._engine.wait(self._container)
        except ENGINE_FAULTS as error:
            if not self._look():
                self._lost = describe(error)
        self._changed.set()

    def _look(self) -> bool:
        """Ask for the state, for an exit that the waiting thread missed. `False` when there was no answer."""
        state = self._state()
        if state is not None and state.status in ENDED and self._code is None:
            self._code = state.exit_code
            self._changed.set()
        return state is not None

    def _state(self) -> State | None:
        try:
            return self._engine.state(self._container)
        except docker.errors.NotFound:
            return None
        except ENGINE_FAULTS as error:
            log().debug("inspect_failed", jobId=self._job, fault=describe(error))
            return None

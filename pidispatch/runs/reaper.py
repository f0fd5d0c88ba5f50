"""The boot reaper: what job containers and networks are left on the engine is settled and removed before a job runs.

Whoever calls it is the engine's only worker, so whatever carries the deployment's label is a dead program's
(docs/explanation/ladder.md). What a job directory explains is the sweep's (`pidispatch.runs.sweep`) and stays.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pidispatch.box.engine import Engine
from pidispatch.box.facts import JobContainer
from pidispatch.box.leftover import Leftover, remove_leftover
from pidispatch.config.log import log
from pidispatch.runs.classify import classify_left
from pidispatch.runs.note import noted_containers
from pidispatch.values import names
from pidispatch.values.clock import Clock
from pidispatch.values.errors import DispatchError
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import InfraFailed
from pidispatch.values.reason import Reason
from pidispatch.values.record import Result


@dataclass(frozen=True)
class Stray:
    """A container of a job that nothing on this machine explains any more."""

    job_id: str
    #: Which attempt at the job it was, from 1.
    attempt: int
    #: The engine's word for it as it was found: `running`, `exited`, `created`, ...
    state: str
    #: How it ended; `worker-lost` where that cannot be told, `container-never-started` where it was only created.
    result: Result
    #: Whether it was started, and so may have spent.
    started: bool


#: Keeps what is known of a stray container. It is told while the container is still there, which stays where it raises.
Settle = Callable[[Stray], None]


def reap(
    engine: Engine, deployment: str, jobs_dir: Path, settle: Settle, limits: Limits, clock: Clock
) -> tuple[str, ...]:
    """Settle and remove every stray container and network of `deployment`; names of those that could not be.

    Raises `InfraError` where the engine does not list them. One that fails stops no other.
    """
    # What is there is looked at first, the notes after it: jobs may run meanwhile, whose notes stand before they make
    # anything on the engine.
    containers = engine.job_containers(deployment)
    explained = noted_containers(jobs_dir)
    strays = [one for one in containers if one.name not in explained]
    failed = [one.name for one in strays if not _reaped(engine, one, deployment, settle, limits, clock)]
    networks = engine.job_networks(deployment)
    explained = noted_containers(jobs_dir)
    for network in networks:
        if network.removesuffix("-net") not in explained and not _cleared(engine, network):
            failed.append(network)
    return tuple(failed)


def _reaped(
    engine: Engine, container: JobContainer, deployment: str, settle: Settle, limits: Limits, clock: Clock
) -> bool:
    def ended(left: Leftover) -> None:
        # Of one whose labels are not a job's there is nobody to tell anything of.
        if container.job_id is not None:
            result = _result(container, left).model_copy(update={"ended_at": clock.now()})
            settle(Stray(container.job_id, container.attempt, container.state, result, left.started))

    job = container.job_id or container.name.removeprefix(names.JOB_PREFIX)
    try:
        remove_leftover(engine, container.name, None, deployment, limits, ended)
    except Exception as error:
        cause = error.cause if isinstance(error, DispatchError) else type(error).__name__
        log().error("reaper_failed", jobId=job, cause=cause)
        return False
    log().warning("reaped_container", jobId=job, state=container.state)
    return True


def _result(container: JobContainer, left: Leftover) -> Result:
    begun = Result.begin(container.created_at, container.provider, container.model)
    if not left.started:
        return begun.ending(InfraFailed(reason=Reason.CONTAINER_NEVER_STARTED))
    outcome, telemetry = classify_left(left.end, cut_off=not left.by_itself)
    return begun.ending(outcome).model_copy(
        update={
            "spent": True,
            "exit_code": left.end.code,
            "telemetry": telemetry,
            "image_digest": container.image_digest,
        }
    )


def _cleared(engine: Engine, network: str) -> bool:
    job = network.removeprefix(names.JOB_PREFIX).removesuffix("-net")
    if failed := engine.clear_network(network):
        log().error("reaper_failed", jobId=job, cause="network", fault=failed)
        return False
    log().warning("reaped_network", jobId=job)
    return True

"""The server of the queue, what is stored on it, and who takes jobs from it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pidispatch.cli.checks.row import Finding, passed, warned
from pidispatch.cli.checks.scene import Asleep, Scene
from pidispatch.cli.handing_in import missing_worker
from pidispatch.jobs.route import route
from pidispatch.jobs.rows import WorkerSeen
from pidispatch.jobs.setup import FORMAT
from pidispatch.values.job import LocalJob
from pidispatch.values.limits import Limits
from pidispatch.workspace.jobdir import read_deployment_id

_KEEP: Final = "set on the server: appendonly yes, maxmemory-policy noeviction (docs/how-to/server.md)"


def server(scene: Scene) -> Iterator[Finding]:
    """Whether it answers and can serve. Raises where it does not."""
    found = scene.server()
    if isinstance(found, Asleep):
        yield passed(f"pi-dispatch's own, {found.address.shown}: does not run, and is started when it is needed")
        return
    whose = "pi-dispatch's own" if found.own else "named by VALKEY_URL"
    yield passed(f"{whose}, {found.address.shown}: {found.facts.product} {found.facts.version} answers")


def durability(scene: Scene) -> Iterator[Finding]:
    """Whether it keeps what it is told."""
    facts = scene.reached().facts
    found = f"appendonly {'yes' if facts.appendonly else 'no'}, maxmemory-policy {facts.maxmemory_policy}"
    if facts.durable:
        yield passed(found)
    else:
        yield warned(f"{found}: a job, a lock or what was counted can be lost", _KEEP)


def store(scene: Scene) -> Iterator[Finding]:
    """Whether this version reads it, and the state folder belongs to it. Raises `ConfigError` where not."""
    reached = scene.reached()
    reached.store.check_format()
    own, theirs = read_deployment_id(scene.settings("PI_STATE_DIR").state_dir), reached.store.deployment()
    if own and theirs and own != theirs:
        # Refused in the words of who starts; nothing is written where both have an id.
        reached.store.open(own)
    if theirs is None:
        yield passed(f"empty; the first program gives it the id {own}" if own else "empty; the first program begins it")
    else:
        yield passed(f"format {FORMAT}, deployment {theirs}" + ("" if own else ", which PI_STATE_DIR takes over"))


def workers(scene: Scene) -> Iterator[Finding]:
    """Who takes the jobs that are handed in here."""
    alive = scene.workers()
    settings = scene.settings("PI_WORKER_NAME")
    queue = route(LocalJob(id="check", folder=Path("/"), task="none"), settings)
    if (missing := missing_worker(alive, queue, Limits())) is not None:
        found, _, remedy = missing.partition(": ")
        yield warned(found, remedy)
    if alive:
        yield passed("; ".join(_worker(one) for one in alive))


def _worker(seen: WorkerSeen) -> str:
    told = seen.fields
    return (
        f"{seen.name}: {told.get('running', '?')} of {told.get('slots', '?')} slots taken, said so "
        f"{seen.age_ms / 1000:.0f} s ago"
    )

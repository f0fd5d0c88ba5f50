"""The container engine, and on it what every job needs: image, user, egress proxy."""

import os
from collections.abc import Iterator
from typing import Final

from pidispatch.box.admission import refuse_forge
from pidispatch.box.egress import EgressProxy, EgressStatus
from pidispatch.box.engine import EngineFacts, ImageFacts
from pidispatch.box.host import host_facts
from pidispatch.box.spec import IMAGE_USER
from pidispatch.box.user import HostFacts, decide_user, refuse_mapping
from pidispatch.cli.checks.row import Finding, Told, failed, passed, warned
from pidispatch.cli.checks.rules import images_of, places, some
from pidispatch.cli.checks.scene import Scene
from pidispatch.config.clock import SystemClock
from pidispatch.config.text import printable
from pidispatch.values import names
from pidispatch.values.errors import InfraError
from pidispatch.values.forge import JobKind
from pidispatch.values.outcome import Refused
from pidispatch.workspace.locks import engine_lock

_UP: Final = "pi-dispatch egress up"
_NAMED_IMAGE: Final = (
    "bring it onto this engine (images are never pulled), as with: pi-dispatch image build --tag REF; or name another "
    'with "image" in the entry, which without it uses PI_JOB_IMAGE'
)


def engine(scene: Scene) -> Iterator[Finding]:
    """Whether it answers, and maps users in a way that can work. Raises where it does not answer."""
    found = scene.engine()
    if (refused := refuse_mapping(_host(found.facts))) is not None:
        yield _refusal(refused)
    else:
        yield passed(f"version {found.version} answers, id {found.facts.id or 'unknown'}")


def lock(scene: Scene) -> Iterator[Finding]:
    """Whether a worker that starts now could have the engine. Raises where nobody could tell."""
    own = scene.connected().facts.id
    serving = [one.name for one in scene.workers() if own and one.fields.get("engine") == own]
    if serving:
        # It holds the lock, which is not touched: a worker that starts in that moment would be refused.
        yield passed(f"held by the worker {', '.join(serving)}")
        return
    engine_lock(own).release()
    yield passed("free: no worker serves this engine")


def image(scene: Scene) -> Iterator[Finding]:
    """Whether it is on the engine, and what its labels claim."""
    reference = scene.settings("PI_JOB_IMAGE").job_image
    found = scene.connected().engine.image(reference)
    yield _refusal(found) if isinstance(found, Refused) else _claims(reference, found)


def _claims(reference: str, image: ImageFacts) -> Finding:
    capabilities = ", ".join(sorted(image.capabilities)) or "no capability"
    forges = "" if image.forges is None else f"; forges: {', '.join(sorted(image.forges))}"
    refused = refuse_forge(reference, image, JobKind.LOCAL)
    return _refusal(refused) if refused else passed(f"{reference} ({image.digest[:19]}): {capabilities}{forges}")


def named_images(scene: Scene) -> Iterator[Finding]:
    """The images that entries of the triggers file name: whether each is on the engine, and serves the entry's jobs."""
    named = images_of(scene)
    if not named:
        return
    engine = scene.connected().engine
    good = []
    for reference, entries in named.items():
        found = engine.image(reference)
        refused: dict[Refused, list[int]] = {}
        for at, kind in entries:
            if one := found if isinstance(found, Refused) else refuse_forge(reference, found, kind):
                refused.setdefault(one, []).append(at)
        for one, where in refused.items():
            yield failed(f"{_refusal(one).found}; named by the triggers {places(where)}", _NAMED_IMAGE)
        if not refused:
            good.append(printable(reference))
    if good:
        yield passed(f"on the engine: {some(good)}")


def job_user(scene: Scene) -> Iterator[Finding]:
    """As whom jobs run."""
    connected = scene.connected()
    host = _host(connected.facts)
    try:
        found = connected.engine.image(scene.settings("PI_JOB_IMAGE").job_image)
    except InfraError:
        raise Told from None
    if isinstance(found, Refused) or refuse_mapping(host) is not None:
        raise Told
    any_uid = names.CAPABILITY_ANY_UID in found.capabilities
    if host.euid != 0:
        user = decide_user(host, any_uid=any_uid)
        yield _refusal(user) if isinstance(user, Refused) else passed(f"{user.uid}:{user.gid}")
    elif any_uid:
        yield passed("the owner of each job's folder, as this account is root; a folder of root's is refused")
    else:
        yield warned(
            f"the image runs as {IMAGE_USER.uid} alone, so only jobs on folders of that user's are not refused",
            "use an image with the capability anyUid, such as that of: pi-dispatch image build",
        )


def egress(scene: Scene) -> Iterator[Finding]:
    """The one neighbour of every job, and what it lets through."""
    settings = scene.settings("PI_EGRESS", "PI_EGRESS_PROXY")
    if not settings.egress:
        yield warned(
            "PI_EGRESS=0: jobs reach the internet and whatever else this machine can reach",
            f"unset PI_EGRESS, and bring the proxy up: {_UP}",
        )
        return
    connected, name = scene.connected(), settings.egress_proxy
    neighbour = connected.engine.neighbour(name)
    if isinstance(neighbour, Refused):
        yield _refusal(neighbour)
        return
    yield from _lists(name, EgressProxy(connected.engine.client, name, SystemClock()).status())


def _lists(name: str, found: EgressStatus) -> Iterator[Finding]:
    if not found.ours:
        yield passed(f"{name} runs; pi-dispatch did not make it, so what it lets through is not known")
        return
    if not found.accepting:
        yield failed(f"{name} runs, but does not accept connections", f"read its log: docker logs {name}; then: {_UP}")
        return
    opened = f"; of these private addresses too: {_hosts(found.private)}" if found.private else ""
    yield passed(f"{name} accepts; allowed: {_hosts(found.allowed)}{opened}")
    if found.refused is not None:
        yield warned(
            f"the last edit of its lists is refused and changed nothing: {'; '.join(found.refused.faults)}",
            "mend the entry; the proxy takes the list over by itself",
        )


def _hosts(hosts: tuple[str, ...]) -> str:
    return some(hosts) or "none"


def _refusal(refused: Refused) -> Finding:
    """In the words that a job would be refused with."""
    cause = f" ({refused.cause})" if refused.cause else ""
    return failed(
        f"{refused.reason.value}{cause}: {refused.detail or refused.reason.meaning}",
        refused.remedy or refused.reason.remedy,
    )


def _host(facts: EngineFacts) -> HostFacts:
    """For a folder that stands in nobody's way."""
    return host_facts(facts, os.geteuid() or IMAGE_USER.uid, os.getegid() or IMAGE_USER.gid)

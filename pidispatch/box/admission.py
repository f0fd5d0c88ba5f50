"""Whether an image serves a job, judged by what its labels say (docs/reference/job-image.md)."""

from typing import Final, NamedTuple

from pidispatch.box.engine import ImageFacts
from pidispatch.values import names
from pidispatch.values.forge import JobKind
from pidispatch.values.job import ForgeJob, Job
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason


class _Need(NamedTuple):
    """What a job may need an image to declare."""

    capability: str
    reason: Reason
    #: What would go wrong without it.
    why: str
    remedy: str


_REPLICAS: Final = _Need(
    names.CAPABILITY_REPLICAS,
    Reason.JOB_IMAGE_REPLICAS_UNSUPPORTED,
    "nothing in it would keep the jobs that work on this side by side from pushing over one another",
    "build the image anew (pi-dispatch image build), or name one with this capability in the rule's run.image",
)
_COMMANDS: Final = _Need(
    names.CAPABILITY_COMMANDS,
    Reason.JOB_IMAGE_COMMANDS_UNSUPPORTED,
    "the command would be unknown in it, and no work would be done",
    "build an image that has the command, or name one in the rule's run.image, or give the rule a flow",
)


def refuse_image(reference: str, image: ImageFacts, job: Job) -> Refused | None:
    """The refusal of an image that does not serve the job's forge, or lacks what the job needs; the first that holds.

    A list of forges shuts out the ones that are not in it. A list of capabilities admits only what is in it.
    """
    if refused := refuse_forge(reference, image, job.kind):
        return refused
    lacking = (need for need in _needs(job) if need.capability not in image.capabilities)
    return next((_lacks(reference, image, need) for need in lacking), None)


def refuse_forge(reference: str, image: ImageFacts, kind: str) -> Refused | None:
    """The refusal of an image that lists the forges it serves and not the job's; an image without a list serves all.

    `kind` is the kind of the job: `local`, for which no forge is needed, or the name of a forge.
    """
    if kind == JobKind.LOCAL or image.forges is None or kind in image.forges:
        return None
    declared = ", ".join(sorted(image.forges))
    return Refused(
        reason=Reason.JOB_IMAGE_FORGE_UNSUPPORTED,
        detail=f"the image {reference!r} serves {declared}, and this is a job of {kind}",
        remedy=f"name an image that serves {kind} in the rule's run.image: without one it gets PI_JOB_IMAGE",
    )


def _needs(job: Job) -> tuple[_Need, ...]:
    if not isinstance(job, ForgeJob):
        return ()
    asked = ((_REPLICAS, job.replica), (_COMMANDS, job.command))
    return tuple(need for need, value in asked if value is not None)


def _lacks(reference: str, image: ImageFacts, need: _Need) -> Refused:
    declared = ", ".join(sorted(image.capabilities))
    has = f"declares the capabilities {declared}" if declared else "declares no capabilities"
    return Refused(
        reason=need.reason,
        detail=f"the image {reference!r} {has}, and this job needs {need.capability}: {need.why}",
        remedy=need.remedy,
    )

"""Whether an image serves a job, judged by what its labels say (docs/reference/job-image.md)."""

from pidispatch.box.engine import ImageFacts
from pidispatch.values.forge import JobKind
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason


def refuse_image(reference: str, image: ImageFacts, kind: str) -> Refused | None:
    """The refusal of an image that lists the forges it serves and not the job's; an image without a list serves all.

    `kind` is the kind of the job: `local`, for which no forge is needed, or the name of a forge.
    """
    if kind == JobKind.LOCAL or image.forges is None or kind in image.forges:
        return None
    declared = ", ".join(sorted(image.forges))
    return Refused(
        reason=Reason.JOB_IMAGE_FORGE_UNSUPPORTED,
        detail=f"the image {reference!r} serves {declared}, and this is a job of {kind}",
    )

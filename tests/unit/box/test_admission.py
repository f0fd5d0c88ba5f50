"""Whether an image serves a job's forge, by its label."""

import pytest

from pidispatch.box.admission import refuse_image
from pidispatch.box.engine import ImageFacts


def image(*forges: str) -> ImageFacts:
    return ImageFacts(digest="sha256:1", capabilities=frozenset(), forges=frozenset(forges) or None)


@pytest.mark.example("ch3 E6", "an image without a list of forges serves every one; a list shuts out what it lacks")
def test_the_label_of_forges() -> None:
    assert refuse_image("pi-job", image(), "gitlab") is None
    refused = refuse_image("pi-job", image("github"), "gitlab")
    assert refused is not None
    assert refused.reason.value == "job-image-forge-unsupported"
    assert refused.detail == "the image 'pi-job' serves github, and this is a job of gitlab"


def test_a_local_job_needs_no_forge() -> None:
    assert refuse_image("pi-job", image("github"), "local") is None


def test_a_listed_forge_is_served() -> None:
    assert refuse_image("pi-job", image("github", "gitlab"), "gitlab") is None

"""Whether an image serves a job, by its labels."""

from typing import Any

import pytest

from pidispatch.box.admission import refuse_forge, refuse_image
from pidispatch.box.engine import ImageFacts
from pidispatch.values.job import ForgeJob, LocalJob
from pidispatch.values.outcome import Refused

FOLDER = LocalJob.model_validate({"id": "1", "folder": "/f", "task": "t"})


def image(*capabilities: str, forges: tuple[str, ...] = ()) -> ImageFacts:
    return ImageFacts(digest="sha256:1", capabilities=frozenset(capabilities), forges=frozenset(forges) or None)


def verdict(facts: ImageFacts, kind: str = "github", **changes: Any) -> Refused | None:
    """What an image with `facts` is told for a job of a forge."""
    origin = {
        "event": "issues",
        "action": "labeled",
        "delivery_id": "d",
        "sender": {"id": 1},
        "matched": {"type": "label", "index": 0},
    }
    fields: dict[str, Any] = {
        "id": "gh-1",
        "kind": kind,
        "repo": "o/r",
        "target": {"type": "issue", "number": 7},
        "trigger": origin,
    }
    named = {} if "command" in changes else {"flow": "fix"}
    return refuse_image("pi-job", facts, ForgeJob.model_validate(fields | named | changes))


@pytest.mark.example("ch3 E6", "an image without a list of forges serves every one; a list shuts out what it lacks")
def test_the_label_of_forges() -> None:
    assert verdict(image(), "gitlab") is None
    refused = verdict(image(forges=("github",)), "gitlab")
    assert refused is not None
    assert refused.reason.value == "job-image-forge-unsupported"
    assert refused.detail == "the image 'pi-job' serves github, and this is a job of gitlab"
    assert (
        refused.remedy == "name an image that serves gitlab in the rule's run.image: without one it gets PI_JOB_IMAGE"
    )
    assert refuse_forge("pi-job", image(forges=("github",)), "gitlab") == refused


@pytest.mark.example("ch3 E6", "one of several jobs for an event needs an image without labels to have `replicas`")
def test_a_replica_needs_guardrails_that_keep_it_to_its_branch() -> None:
    refused = verdict(image(), replica=2, replicas=3)
    assert refused is not None
    assert refused.reason.value == "job-image-replicas-unsupported"
    assert refused.detail is not None
    assert refused.detail.startswith(
        "the image 'pi-job' declares no capabilities, and this job needs replicas: nothing in it would keep"
    )
    assert refused.remedy is not None
    assert "pi-dispatch image build" in refused.remedy
    assert verdict(image("replicas"), replica=2, replicas=3) is None


@pytest.mark.example("ch3 E6", "an image with `replicas` alone is refused to a replica that is a command")
def test_a_command_needs_an_image_that_has_commands() -> None:
    refused = verdict(image("replicas", "anyUid"), replica=1, replicas=2, command="review all")
    assert refused is not None
    assert refused.reason.value == "job-image-commands-unsupported"
    assert refused.detail == (
        "the image 'pi-job' declares the capabilities anyUid, replicas, and this job needs commands: "
        "the command would be unknown in it, and no work would be done"
    )
    assert "review" not in f"{refused.detail} {refused.remedy}"
    assert verdict(image("commands"), command="review all") is None


def test_the_first_that_holds_is_said() -> None:
    named: dict[str, Any] = {"replica": 1, "replicas": 2, "command": "review"}
    refusals = [
        verdict(image(forges=("gitlab",)), **named),
        verdict(image(forges=("github",)), **named),
        verdict(image("replicas"), **named),
        verdict(image("replicas", "commands"), **named),
    ]
    assert [refused.reason.value if refused else None for refused in refusals] == [
        "job-image-forge-unsupported",
        "job-image-replicas-unsupported",
        "job-image-commands-unsupported",
        None,
    ]


def test_a_job_on_a_folder_needs_no_forge_and_no_capability() -> None:
    assert refuse_image("pi-job", image(forges=("github",)), FOLDER) is None


def test_a_listed_forge_is_served() -> None:
    assert verdict(image(forges=("github", "gitlab")), "gitlab") is None

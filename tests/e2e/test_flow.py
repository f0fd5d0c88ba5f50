"""A flow: the skill that a job names comes from the commit and is loaded before the first token."""

import json

import docker

from pidispatch.box.abort import Abort
from pidispatch.box.engine import Engine
from pidispatch.box.run import Neighbour, run_container
from pidispatch.box.spec import JobUser
from pidispatch.config.clock import SystemClock
from pidispatch.runs.classify import classify
from pidispatch.values.outcome import Completed
from tests.support.program import Stage
from tests.support.repository import Repository, give
from tests.support.spec import agent_spec

SKILL = "---\nname: fix\ndescription: Mends what is broken.\n---\nAlways mend the cause, never the symptom.\n"


def told(stage: Stage) -> str:
    """What the model was told in the one request of this stage."""
    [request] = stage.asked()
    assert isinstance(request.body, dict)
    return json.dumps(request.body)


def test_a_flow_of_the_commit_is_followed(stage: Stage, repository: Repository) -> None:
    repository.write(".pi/skills/fix/SKILL.md", SKILL)
    repository.write(".pi/APPEND_SYSTEM.md", "Speak like a sailor.\n")
    repository.commit()
    # What lies in the folder beside the commit instructs nobody.
    repository.write(".pi/skills/fix/SKILL.md", SKILL.replace("the cause", "the wages"))
    ran = stage.run_job(repository.path, "skillecho", "--flow", "fix", "--force")

    assert (ran.code, ran.document["flow"]) == (0, "fix"), ran
    request = told(stage)
    assert "Always mend the cause" in request
    assert "wages" not in request
    assert "Do as scripted, " in request
    assert "Speak like a sailor." in request


def test_a_flow_that_is_not_loaded_spends_nothing(stage: Stage, repository: Repository) -> None:
    """A skill without a description is one that the agent does not load, and says nothing about."""
    repository.write(".pi/skills/fix/SKILL.md", "---\nname: fix\n---\nAlways mend the cause.\n")
    repository.commit()
    ran = stage.run_job(repository.path, "skillecho", "--flow", "fix")

    assert (ran.code, ran.document["reason"], ran.document["exitCode"]) == (2, "flow-not-loaded", 2), ran
    assert "front matter" in ran.document["remedy"]
    assert stage.requests() == 0


def test_a_flow_of_the_workspace_alone_is_refused(stage: Stage, repository: Repository) -> None:
    repository.write(".pi/skills/fix/SKILL.md", SKILL)
    ran = stage.run_job(repository.path, "skillecho", "--flow", "fix", "--force")

    assert (ran.code, ran.document["reason"], ran.document["cause"]) == (2, "config-refused", "flow-missing"), ran
    assert "it holds no flow" in ran.document["why"]
    assert stage.requests() == 0


def test_a_flow_that_the_prompt_does_not_call_is_only_noted(
    stage: Stage, engine: docker.DockerClient, repository: Repository
) -> None:
    """A schedule whose repository has no such skill (yet) goes on; the runner says so."""
    job = stage.home / "job"
    job.mkdir()
    (job / "prompt.md").write_text("Mend the greeting.")
    give(job)
    owner = repository.path.stat()
    user = JobUser(uid=owner.st_uid, gid=owner.st_gid, explicit=True)
    mounts = {"/job": job, "/workspace": repository.path, "/opt/pi-global": stage.overlay}
    spec = agent_spec(
        stage.image, mounts, model="skillecho", neighbour=stage.model.name, key=stage.key, user=user, flow="fix"
    )
    neighbour = Neighbour(id=str(stage.model.container.id), alias=stage.model.name)
    end = run_container(Engine(engine), spec, neighbour, abort=Abort(), progress=lambda _: None, clock=SystemClock())

    assert classify(end)[0] == Completed()
    assert '"event":"flow_not_loaded"' in end.tail
    assert stage.requests() == 1

"""A flow: the skill that a job names must be loaded before the first token, with a job directory staged here."""

import json

import docker

from pidispatch.box.abort import Abort
from pidispatch.box.engine import Engine
from pidispatch.box.run import ContainerEnd, Neighbour, run_container
from pidispatch.box.spec import JobUser
from pidispatch.config.clock import SystemClock
from pidispatch.runs.classify import classify
from pidispatch.values.outcome import Completed, Refused
from pidispatch.values.reason import Reason
from tests.support.program import Stage
from tests.support.repository import Repository, give
from tests.support.spec import agent_spec

SKILL = "---\nname: fix\ndescription: Mends what is broken.\n---\nAlways mend the cause, never the symptom.\n"


def run_with(
    stage: Stage, engine: docker.DockerClient, repository: Repository, *, prompt: str, skill: str | None, flow: str
) -> ContainerEnd:
    """Run the runner on a job directory with `prompt` and, if given, the skill `fix`."""
    job = stage.home / "job"
    (job / "pi" / "skills" / "fix").mkdir(parents=True)
    (job / "prompt.md").write_text(prompt)
    if skill is not None:
        (job / "pi" / "skills" / "fix" / "SKILL.md").write_text(skill)
    give(job)
    owner = repository.path.stat()
    user = JobUser(uid=owner.st_uid, gid=owner.st_gid, explicit=True)
    mounts = {"/job": job, "/workspace": repository.path, "/opt/pi-global": stage.overlay}
    spec = agent_spec(
        stage.image, mounts, model="skillecho", neighbour=stage.model.name, key=stage.key, user=user, flow=flow
    )
    neighbour = Neighbour(id=str(stage.model.container.id), alias=stage.model.name)
    return run_container(Engine(engine), spec, neighbour, abort=Abort(), progress=lambda _: None, clock=SystemClock())


def test_a_flow_that_is_there_is_followed(stage: Stage, engine: docker.DockerClient, repository: Repository) -> None:
    end = run_with(stage, engine, repository, prompt="/skill:fix the greeting", skill=SKILL, flow="fix")

    assert classify(end)[0] == Completed()
    [request] = stage.model.log.requests(key=stage.key)
    assert isinstance(request.body, dict)
    told = json.dumps(request.body["messages"])
    assert "Always mend the cause" in told
    assert "the greeting" in told


def test_a_flow_that_is_not_loaded_spends_nothing(
    stage: Stage, engine: docker.DockerClient, repository: Repository
) -> None:
    """A skill without a description is one that the agent does not load, and says nothing about."""
    undescribed = "---\nname: fix\n---\nAlways mend the cause.\n"
    end = run_with(stage, engine, repository, prompt="/skill:fix the greeting", skill=undescribed, flow="fix")

    assert classify(end)[0] == Refused(reason=Reason.FLOW_NOT_LOADED)
    assert end.code == 2
    assert stage.requests() == 0


def test_a_flow_of_the_workspace_alone_is_not_taken(
    stage: Stage, engine: docker.DockerClient, repository: Repository
) -> None:
    repository.write(".pi/skills/fix/SKILL.md", SKILL)
    end = run_with(stage, engine, repository, prompt="/skill:fix the greeting", skill=None, flow="fix")

    assert classify(end)[0] == Refused(reason=Reason.FLOW_NOT_LOADED)
    assert stage.requests() == 0


def test_a_flow_that_the_prompt_does_not_call_is_only_noted(
    stage: Stage, engine: docker.DockerClient, repository: Repository
) -> None:
    end = run_with(stage, engine, repository, prompt="Mend the greeting.", skill=None, flow="fix")

    assert classify(end)[0] == Completed()
    assert '"event":"flow_not_loaded"' in end.tail
    assert stage.requests() == 1

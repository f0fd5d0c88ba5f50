"""Skills that a rule brings along: the agent has them beside the repository's own, which they do not displace."""

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

#: Folder of a skill, its description and its text. The first two have the same name.
SKILLS = (
    ("pi/skills/fix", "Mends as the repository says.", "Mend the cause."),
    ("trigger-skills/fix", "Mends as the rule says.", "Mend the symptom."),
    ("trigger-skills/tidy", "Tidies up.", "Always sweep under the carpet."),
)


def test_a_flow_of_the_rule_is_followed_and_displaces_none_of_the_repository(
    stage: Stage, engine: docker.DockerClient, repository: Repository
) -> None:
    job = stage.home / "job"
    for folder, description, text in SKILLS:
        place = job / folder
        place.mkdir(parents=True)
        (place / "SKILL.md").write_text(f"---\nname: {place.name}\ndescription: {description}\n---\n{text}\n")
    (job / "prompt.md").write_text("/skill:tidy The greeting is a mess.")
    give(job)
    owner = repository.path.stat()
    user = JobUser(uid=owner.st_uid, gid=owner.st_gid, explicit=True)
    mounts = {"/job": job, "/workspace": repository.path, "/opt/pi-global": stage.overlay}
    spec = agent_spec(
        stage.image, mounts, model="skillecho", neighbour=stage.model.name, key=stage.key, user=user, flow="tidy"
    )
    neighbour = Neighbour(id=str(stage.model.container.id), alias=stage.model.name)
    end = run_container(Engine(engine), spec, neighbour, abort=Abort(), progress=lambda _: None, clock=SystemClock())

    assert classify(end)[0] == Completed(), end.tail
    assert "flow_not_loaded" not in end.tail
    [request] = stage.asked()
    told = json.dumps(request.body)
    assert "Always sweep under the carpet." in told
    assert "Mends as the repository says." in told
    assert "Mends as the rule says." not in told

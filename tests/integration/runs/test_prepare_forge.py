"""The workspace of a job of a forge, from a real git server: what is made, what is refused, what is left of it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pidispatch.box.engine import EngineFacts, ImageFacts
from pidispatch.box.spec import JobUser
from pidispatch.forges.protocol import Branch, Token
from pidispatch.runs.note import read_note
from pidispatch.runs.prepare import container_spec, prepare
from pidispatch.values.errors import InfraError
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import AbortReason, Reason
from tests.fakes.github.edge import Edge
from tests.fakes.github.faults import Fault
from tests.support.account import SaidAccount
from tests.support.forge import FILES
from tests.support.oneshots import fired_by, rule
from tests.unit.runs.place import Place

REPO = "acme/web"
FACTS = EngineFacts(
    id="e", here=True, readable=True, desktop=False, security_options=(), socket_uid=None, socket_gid=None
)


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[Edge]:
    """A forge with one repository."""
    with Edge(tmp_path / "edge") as made:
        made.repository(REPO, FILES)
        yield made


class Served(Place):
    """An attempt at a job of the edge that has climbed up to its workspace."""

    def __init__(self, folder: Path, edge: Edge, sha: str | None = None, **job: Any) -> None:
        super().__init__(folder, PI_JOBS_DIR=str(folder / "jobs"), PI_STATE_DIR=str(folder / "state"))
        site = self.site
        site.job = fired_by(rule(), **{"flow": "fix", **job})
        account = SaidAccount()
        account.clone_url = lambda repo: f"{edge.git_url}/{repo}.git"  # type: ignore[method-assign]
        site.account = account
        site.token = Token(edge.person("alice"))
        site.branch = Branch("main", sha or edge.state.repository(REPO).git.branches()["main"], True)
        site.user = JobUser(uid=1001, gid=1001, explicit=False)
        site.stored = {}
        site.engine_facts = FACTS
        site.image = ImageFacts(digest="sha256:1", capabilities=frozenset())

    def left(self) -> list[str]:
        """What is left in the folder of the jobs once the attempt has ended."""
        self.site.cleanup.close()
        return [name for name in os.listdir(self.site.settings.jobs_dir) if not name.startswith(".")]


def test_a_clone_is_made_and_belongs_to_the_jobs_user(tmp_path: Path, edge: Edge) -> None:
    place = Served(tmp_path, edge, instructions="Be brief.")
    site = place.site
    assert prepare(site) == f"{site.branch.sha[:12]}, flows of .pi: fix, triage"
    workspace = site.job_dir.workspace
    assert site.folder.path == workspace
    assert (workspace / "greet.py").read_text() == FILES["greet.py"]
    assert {path.lstat().st_uid for path in workspace.rglob("*")} == ({1001} if os.geteuid() == 0 else {os.geteuid()})
    assert not site.job_dir.outbox.exists()
    prompt = site.job_dir.prompt.read_text()
    assert prompt.startswith("/skill:fix ")
    assert "Be brief." in prompt
    event = json.loads(site.job_dir.event.read_text())
    assert (event["repository"], event["issue"]["number"]) == ({"full_name": REPO}, 40)
    note = read_note(site.job_dir.note)
    assert note is not None
    assert (note.job, note.folder) == (site.job.bare(), workspace)
    assert "private" not in site.job_dir.note.read_text()
    spec = container_spec(site)
    assert [mount.target for mount in spec.mounts] == ["/job", "/workspace"]
    assert spec.env["GITHUB_TOKEN"] == spec.env["GH_TOKEN"] == str(site.token and site.token.value)
    assert place.left() == []


def test_the_skills_of_the_rule_come_along_and_a_flow_may_be_one_of_them(tmp_path: Path, edge: Edge) -> None:
    (tmp_path / "skills" / "deploy").mkdir(parents=True)
    (tmp_path / "skills" / "deploy" / "SKILL.md").write_text("---\nname: deploy\ndescription: Deploys.\n---\n")
    place = Served(tmp_path, edge, flow="deploy", skills_dir=str(tmp_path / "skills"))
    assert isinstance(prepare(place.site), str)
    assert (place.site.job_dir.trigger_skills / "deploy" / "SKILL.md").is_file()
    assert place.site.job_dir.prompt.read_text().startswith("/skill:deploy ")


def test_without_its_flow_the_job_goes_on_and_the_box_is_told_its_name(tmp_path: Path, edge: Edge) -> None:
    place = Served(tmp_path, edge, flow="absent")
    assert isinstance(prepare(place.site), str)
    assert not place.site.job_dir.prompt.read_text().startswith("/skill:")
    assert container_spec(place.site).env["PI_FLOW"] == "absent"


def test_a_command_is_the_whole_prompt(tmp_path: Path, edge: Edge) -> None:
    place = Served(tmp_path, edge, flow=None, command="wf deploy")
    assert isinstance(prepare(place.site), str)
    assert place.site.job_dir.prompt.read_text() == "/wf deploy"
    assert container_spec(place.site).env["PI_COMMAND"] == "wf deploy"


@pytest.mark.example("ch3 E14", "a gone commit is a policy refusal, its job directory is removed, nothing is counted")
def test_a_commit_that_is_gone_leaves_nothing(tmp_path: Path, edge: Edge) -> None:
    place = Served(tmp_path, edge, sha="0" * 40)
    found = prepare(place.site)
    assert isinstance(found, Refused)
    assert found.reason is Reason.SHA_GONE
    assert (place.left(), place.site.charged, place.site.spent) == ([], {}, False)


def test_what_of_pi_or_of_the_rules_skills_cannot_travel_refuses_the_job(tmp_path: Path, edge: Edge) -> None:
    (tmp_path / "skills").mkdir()
    place = Served(tmp_path, edge, skills_dir=str(tmp_path / "skills"))
    found = prepare(place.site)
    assert isinstance(found, Refused)
    assert found.reason is Reason.SKILLS_DIR_EMPTY
    edge.push("main", {f".pi/skills/fix/{number}.md": "x" for number in range(70)}, REPO)
    found = prepare(Served(tmp_path, edge).site)
    assert isinstance(found, Refused)
    assert found.reason is Reason.PI_TOO_MANY_FILES


def test_a_clone_that_fails_is_a_fault_and_leaves_nothing(tmp_path: Path, edge: Edge) -> None:
    edge.fault(f"/{REPO}.git/", Fault.BAD_GATEWAY)
    place = Served(tmp_path, edge)
    with pytest.raises(InfraError) as caught:
        prepare(place.site)
    assert caught.value.cause == "clone-failed"
    assert place.left() == []


def test_a_job_that_is_ended_while_it_is_cloned_is_not_a_failed_one(tmp_path: Path, edge: Edge) -> None:
    place = Served(tmp_path, edge)
    place.site.abort.set(AbortReason.SHUTDOWN)
    assert prepare(place.site) == ""
    assert place.left() == []

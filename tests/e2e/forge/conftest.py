"""What the tests from an event to a pull request share: a deployment for all of them, a repository for each."""

from collections.abc import Iterator
from typing import Any

import docker
import pytest

from tests.image.assemble import ensure_edge_job
from tests.support.forge import Forge, deployed, label_rule
from tests.support.model import ModelContainer
from tests.support.program import WorkerRun

RULES: list[dict[str, Any]] = [
    label_rule("pi:fix", "pullrequest"),
    label_rule("pi:two", "pullrequest", replicas=2),
    label_rule("pi:main", "pushmain"),
    label_rule("pi:late", "waitthenpush"),
    label_rule("pi:nowhere", "pullrequest", image="pi-job:nowhere"),
    {
        "on": {"type": "label", "any": ["pi:command"]},
        "run": {"kind": "github", "command": "wf deploy", "model": "pullrequest"},
    },
    {"on": {"type": "comment", "phrase": "@pi"}, "run": {"kind": "github", "flow": "fix", "model": "pullrequest"}},
    {
        "on": {"type": "pull_request", "action": ["review_submitted"], "reviewState": ["changes_requested"]},
        "run": {"kind": "github", "flow": "triage", "model": "review"},
    },
    {
        "on": {"type": "issue", "action": ["closed"], "number": 1, "once": True},
        "run": {"kind": "github", "flow": "fix", "model": "pullrequest"},
    },
]


@pytest.fixture(scope="session")
def edge_job(engine: docker.DockerClient) -> str:
    """The job image that trusts the tests' authority."""
    return ensure_edge_job(engine)


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory, edge_job: str, model: ModelContainer) -> Iterator[Forge]:
    """A deployment at which nothing runs yet, and its edge."""
    with deployed(tmp_path_factory.mktemp("forge"), edge_job, model, RULES) as made:
        yield made


@pytest.fixture(scope="module")
def forge(idle: Forge) -> Iterator[Forge]:
    """The same with a worker and a receiver."""
    with idle.worker() as worker, idle.receiver() as receiver:
        idle.at_work = (worker, receiver)
        yield idle


@pytest.fixture
def programs(forge: Forge) -> tuple[WorkerRun, WorkerRun]:
    """Worker and receiver."""
    return forge.at_work

"""What can be seen of a job from outside: in Flower, in task events, on the server, in the logs. Never a text of it."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pidispatch.jobs.rows import JobState
from tests.support.flower import Flower, FlowerProgram
from tests.support.post import Post, Worker
from tests.support.repository import make_repository
from tests.support.server import OwnServer, until
from tests.support.watch import Watch, decoded

#: Of Flower's answers that are no page or document of one job or worker.
PLACES = (
    *("/", "/workers?json=1", "/tasks", "/tasks?state=RETRY", "/broker", "/metrics", "/healthcheck"),
    *("/api/workers?refresh=1", "/api/tasks", "/api/task/types", "/api/queues/length"),
    "/tasks/datatable?draw=1&start=0&length=100&order[0][column]=0&order[0][dir]=asc&columns[0][data]=received",
)


@dataclass(frozen=True)
class Marks:
    """What must be seen nowhere; each of it is like nothing else."""

    task: str
    parent: str
    key: str

    @property
    def all(self) -> tuple[str, ...]:
        """Each of them."""
        return (self.task, self.parent, self.key)


@dataclass
class Scene:
    """A worker with its Flower, and jobs whose tasks, folders and provider key are marked."""

    post: Post
    worker: Worker
    flower: Flower
    marks: Marks

    def hand_in(self, model: str, folder: Path | None = None) -> str:
        """Hand in such a job; its id."""
        job = self.post.job(model, folder or self.folder())
        return self.post.submit(job.model_copy(update={"task": f"Please mend {self.marks.task}", "flow": "tidy"}))

    def folder(self) -> Path:
        """A folder whose last part alone may be seen."""
        flow = {".pi/skills/tidy/SKILL.md": "---\nname: tidy\ndescription: Tidies.\n---\nTidy.\n"}
        return make_repository(self.post.folder / self.marks.parent / f"site-{secrets.token_hex(2)}", flow).path

    def shown(self, *job_ids: str) -> dict[str, str]:
        """Every answer of Flower's, by its place."""
        workers = self.flower.ask("/api/workers?refresh=1").document
        assert workers
        places = [
            *PLACES,
            *(f"/worker/{name}" for name in workers),
            *(f"/{what}/{job_id}" for job_id in job_ids for what in ("task", "api/task/info")),
        ]
        answers = {place: self.flower.ask(place) for place in places}
        assert {place: answer.status for place, answer in answers.items()} == dict.fromkeys(places, 200)
        return {place: answer.text for place, answer in answers.items()}


@pytest.fixture
def marks() -> Marks:
    """Of this test alone."""
    own = secrets.token_hex(4)
    return Marks(f"MARKED-TASK-{own}", f"MARKED-PARENT-{own}", f"MARKED-KEY-{own}")


@pytest.fixture
def watch(post: Post, server: OwnServer) -> Iterator[Watch]:
    """Of everything that happens in the test."""
    with Watch(post, server) as own:
        yield own


@pytest.fixture
def scene(post: Post, watch: Watch, marks: Marks, tmp_path: Path) -> Iterator[Scene]:
    """With everything at work."""
    worker = post.worker(limits={"retry_base_ms": 4000, "scope_busy_recheck_ms": 5000}, ANTHROPIC_API_KEY=marks.key)
    with FlowerProgram(post.environment(), tmp_path).running() as flower:
        flower.await_worker(watch.beat)
        yield Scene(post, worker, flower, marks)


@pytest.mark.example(
    "ch5 s4 no text outside of the row",
    "Of jobs that ran, failed, were held or cancelled, Flower, task events, broker and logs show id and label alone.",
)
def test_a_job_is_seen_by_its_id_and_label_alone(scene: Scene, watch: Watch) -> None:
    post, flower = scene.post, scene.flower
    busy = scene.folder()
    running = scene.hand_in("sleep-60", busy)
    post.await_starts(running)
    held = [scene.hand_in("ok", busy) for _ in range(2)]
    for job_id in held:
        flower.await_task(job_id, "RETRY")
    seen = scene.shown(running, *held)
    flower.ask(f"/api/task/revoke/{held[0]}", method="POST")
    flower.ask(f"/api/task/revoke/{running}?terminate=true", method="POST")
    ended = [scene.hand_in(model) for model in ("ok", "policy", "fail")]
    ids = [running, *held, *ended]
    ends = {job_id: post.await_end(job_id, seconds=90).state for job_id in ids}
    assert list(ends.values()) == [
        *(JobState.COMPLETED, JobState.CANCELLED, JobState.COMPLETED),
        *(JobState.COMPLETED, JobState.COMPLETED, JobState.FAILED),
    ]
    for job_id in ids:
        flower.await_task(job_id, "SUCCESS", "FAILURE", "REVOKED")
    seen |= {f"{place} at the end": text for place, text in scene.shown(*ids).items()}
    seen |= {
        "events": json.dumps(watch.events),
        "server": decoded("\n".join(sorted(watch.kept))),
        "the worker's log": scene.worker.log,
        "Flower's log": flower.log,
    }
    _assert_looked(scene, watch, seen, held[1], ended[0])
    for where, text in seen.items():
        for mark in scene.marks.all:
            assert mark not in text, f"{where}: {mark}"
    # Where they belong.
    data = post.row(running).data
    assert scene.marks.task in data
    assert scene.marks.parent in data


def _assert_looked(scene: Scene, watch: Watch, seen: dict[str, str], held: str, done: str) -> None:
    """That the look went to where a text of a job would be."""
    label = scene.post.row(done).label
    assert label.startswith("local site-")
    assert label.endswith(" tidy")
    told = {event["args"] for event in watch.events if event["type"] == "task-received" and event.get("uuid") == done}
    assert told == {f"({done}, {label})"}
    # Whoever hands in tells it after the ticket can be fetched.
    assert sorted(watch.of(done)) == ["task-received", "task-sent", "task-started", "task-succeeded"]
    assert "task-retried" in watch.of(held)
    assert watch.types <= {"hash", "zset", "set", "list", "string", "none"}
    # A ticket that sleeps.
    assert any("unacked " in one and held in one for one in watch.kept)
    everywhere = ("/api/tasks", f"/task/{held}", "/tasks/datatable", f"/api/task/info/{held}", "events", "server")
    for where in everywhere:
        texts = [text for place, text in seen.items() if place.startswith(where)]
        assert any(held in text for text in texts), where
    assert label in decoded(seen["server"])
    assert held in seen["the worker's log"]
    assert held not in seen["/metrics at the end"]
    assert "Revoking task" in seen["Flower's log"]
    until(lambda: scene.flower.ask("/api/task/types").document["task-types"], "Flower to name the task")

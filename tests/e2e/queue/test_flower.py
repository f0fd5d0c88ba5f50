"""What can be seen of a job from outside: in Flower, in task events, on the server, in the log. Never a text of it."""

import base64
import json
import secrets
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import redis

from pidispatch.jobs.producer import TASK, publish
from pidispatch.jobs.rows import JobState, Ticket
from pidispatch.worker.task import TICK
from tests.support.post import Post
from tests.support.program import CELERY
from tests.support.repository import make_repository
from tests.support.server import OwnServer, content, free_port, until

MARK = "MARKED-ISSUE-TEXT"
ACCOUNT = "operator:a-password"


class Flower:
    """A Flower beside the worker, behind a password."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def ask(self, path: str, *, account: str | None = ACCOUNT, method: str = "GET") -> Any:
        """What it answers, as JSON. Raises `HTTPError`."""
        request = urllib.request.Request(self._url + path, method=method)
        if account is not None:
            request.add_header("Authorization", f"Basic {base64.b64encode(account.encode()).decode()}")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def status(self, account: str | None) -> int:
        """The status of its answer to this account."""
        try:
            self.ask("/api/workers", account=account)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code
        return 200

    def up(self) -> bool:
        """Whether it answers."""
        try:
            return self.status(None) > 0
        except OSError:
            return False


@contextmanager
def flower_of(post: Post, folder: Path) -> Iterator[Flower]:
    port = free_port()
    command = [CELERY, "-A", "pidispatch", "flower", "--address=127.0.0.1", f"--port={port}"]
    with (folder / "flower.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, f"--basic-auth={ACCOUNT}"],
            env=post.environment(),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    flower = Flower(port)
    try:
        until(flower.up, f"Flower; {(folder / 'flower.log')} says why not", 60)
        yield flower
    finally:
        process.terminate()
        process.wait(30)


class Watch:
    """Every task event, as any monitor hears them, and everything on the server beside the rows."""

    def __init__(self, post: Post, server: OwnServer) -> None:
        self.events: list[dict[str, Any]] = []
        self.kept: set[str] = set()
        self._prefix = post.prefix
        self._app = post.producer()
        self._client = server.client()
        self._end = threading.Event()
        self._listening = threading.Event()
        self._threads = [threading.Thread(target=act, daemon=True) for act in (self._hear, self._look)]

    def _hear(self) -> None:
        with self._app.connection_for_read() as connection:
            receiver = self._app.events.Receiver(connection, handlers={"*": self.events.append})
            with receiver.consumer_context() as (own, _, _):
                self._listening.set()
                while not self._end.is_set():
                    with suppress(TimeoutError):
                        own.drain_events(timeout=0.2)

    def _look(self) -> None:
        while not self._end.wait(0.05):
            for name in self._client.scan_iter("*"):
                if not name.startswith(f"{self._prefix}job:"):
                    # It may be gone by now, and another kind of key under its name.
                    with suppress(redis.ResponseError):
                        self.kept.add(f"{name} {content(self._client, name)}")

    def __enter__(self) -> "Watch":
        for thread in self._threads:
            thread.start()
        assert self._listening.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(10)
        self._client.close()
        self._app.close()


def decoded(text: str) -> str:
    """`text`, and beside it whatever in it is base64, as the bodies of messages are."""
    found = [text]
    for word in text.replace('"', " ").replace("'", " ").split():
        try:
            found.append(base64.b64decode(word, validate=True).decode())
        except (ValueError, UnicodeDecodeError):
            continue
    return "\n".join(found)


@pytest.mark.example(
    "ch5 s4 no text outside of the row",
    "Of a job whose attempt failed and of one that slept, Flower, task events, broker and log show id and label alone.",
)
def test_a_job_is_seen_by_its_id_and_label_alone(post: Post, server: OwnServer, tmp_path: Path) -> None:
    flow = {".pi/skills/tidy/SKILL.md": "---\nname: tidy\ndescription: Tidies.\n---\nTidy.\n"}
    folder = make_repository(post.folder / "repos" / f"site-{secrets.token_hex(2)}", flow).path
    worker = post.worker(limits={"retry_base_ms": 4000})
    with Watch(post, server) as watch, flower_of(post, tmp_path) as flower:
        until(lambda: _heard_by(flower, post), "Flower to listen", 60)
        ids = [
            post.submit(post.job(model, folder).model_copy(update={"task": f"Please mend {MARK}", "flow": "tidy"}))
            for model in ("sleep-2", "fail", "ok")
        ]
        ends = [post.await_end(one, seconds=90) for one in ids]
        tasks = until(lambda: _ended_in(flower, ids), "Flower to show how they ended", 30)
        shown = json.dumps([tasks, flower.ask("/api/workers"), *(flower.ask(f"/api/task/info/{one}") for one in ids)])
        codes = [flower.status(None), flower.status("operator:wrong"), flower.status(ACCOUNT)]
    assert [row.state for row in ends] == [JobState.COMPLETED, JobState.FAILED, JobState.COMPLETED]
    assert codes == [401, 401, 200]
    label = f"local {folder.name} tidy"
    assert {tasks[one]["name"] for one in ids} == {TASK}
    # The tickets by which a worker hears itself would only hide the jobs.
    assert TICK not in {one["name"] for one in tasks.values()}
    assert {tasks[one]["args"] for one in ids} == {f"({one}, {label})" for one in ids}
    assert {tasks[one]["kwargs"] for one in ids} == {"{}"}
    kinds = {event["type"] for event in watch.events}
    assert {"task-sent", "task-received", "task-started", "task-retried", "task-succeeded"} <= kinds
    told = {event["args"] for event in watch.events if event["type"] == "task-received" and event.get("uuid") in ids}
    assert told == {f"({one}, {label})" for one in ids}
    # So that the look went where the tickets were, also those of a job that sleeps.
    assert any("unacked " in one and ids[1] in one for one in watch.kept)
    seen = {
        "Flower": shown,
        "events": str(watch.events),
        "server": decoded("\n".join(watch.kept)),
        "log": worker.log,
    }
    for where, text in seen.items():
        assert ids[0] in text, where
        assert MARK not in text, where
        assert str(folder) not in text, where
    assert MARK in post.row(ids[0]).data


def _heard_by(flower: Flower, post: Post) -> bool:
    """Whether Flower, which answers before it listens, hears of a ticket that is published now."""
    ticket = Ticket(job_id=f"probe-{secrets.token_hex(4)}", gen=0, queue="pi-jobs", label="probe")
    publish(post.producer(), ticket)
    with suppress(TimeoutError):
        return until(lambda: ticket.job_id in flower.ask("/api/tasks"), "Flower to hear of it", 2)
    return False


def _ended_in(flower: Flower, ids: list[str]) -> dict[str, Any] | None:
    """Flower's tasks, once all of these have ended there."""
    tasks: dict[str, Any] = flower.ask("/api/tasks")
    ended = {"SUCCESS", "FAILURE"}
    return tasks if all(one in tasks and tasks[one]["state"] in ended for one in ids) else None

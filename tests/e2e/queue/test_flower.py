"""Flower beside a worker: whom it lets in, how it shows jobs, and what its buttons do. The record has the last word."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from pidispatch.jobs.producer import TASK
from pidispatch.jobs.rows import JobState
from pidispatch.worker.tick import TICK
from tests.support.flower import Flower, FlowerProgram
from tests.support.post import Post, let_pass
from tests.support.server import OwnServer, until

#: Far longer than a test goes on.
HELD = {"scope_busy_recheck_ms": 600_000}
GIVEN = ("/healthcheck", "/metrics", "/static/css/flower.css", "/logout")


@pytest.fixture
def flower(post: Post, tmp_path: Path) -> Iterator[Flower]:
    """One that listens to the worker of the test, which is started here."""
    post.worker(limits=HELD)
    with post.producer() as app, FlowerProgram(post.environment(), tmp_path).running() as own:
        own.await_worker(app.control.heartbeat)
        yield own


def revoke(flower: Flower, job_id: str, *, terminate: bool) -> None:
    """Press the button Terminate, or Revoke."""
    answer = flower.ask(f"/api/task/revoke/{job_id}{'?terminate=true' if terminate else ''}", method="POST")
    assert (answer.status, answer.document) == (200, {"message": f"Revoked '{job_id}'"})


def running(post: Post, flower: Flower) -> str:
    """A job whose container runs, and of which Flower knows that it does; its id."""
    job_id = post.submit(post.job("sleep-60"))
    post.await_starts(job_id)
    flower.await_task(job_id, "STARTED")
    return job_id


def settled(post: Post) -> None:
    """No container is left, and no ticket that somebody could run."""
    until(lambda: post.left() == [], "the containers to be gone", 30)
    assert post.tickets("pi-jobs@w1") == []


@pytest.mark.example(
    "ch5 s8 flower account", "Flower answers nobody without its password: no page, no API, no command."
)
def test_without_an_account_it_answers_nobody(post: Post, flower: Flower) -> None:
    job_id = running(post, flower)
    worker = next(iter(flower.ask("/api/workers?refresh=1").document))
    pages = ["/", "/workers?json=1", f"/worker/{worker}", "/tasks", "/tasks/datatable", f"/task/{job_id}", "/broker"]
    asked = ["workers", "tasks", "task/types", "queues/length", f"task/info/{job_id}", f"task/result/{job_id}"]
    told = [
        *(f"task/{what}/{job_id}" for what in ("revoke", "abort")),
        *(f"task/{what}/{TASK}" for what in ("apply", "async-apply", "send-task", "timeout", "rate-limit")),
        *(f"worker/{what}/{worker}" for what in ("shutdown", "pool/restart", "pool/grow", "pool/shrink")),
        *(f"worker/queue/{what}/{worker}" for what in ("add-consumer", "cancel-consumer")),
    ]
    user, _, password = flower.account.partition(":")
    for account in (None, f"{user}:", f"{user}:wrong", f"other:{password}"):
        for path in [*pages, *(f"/api/{one}" for one in asked)]:
            assert flower.ask_as(account, path).status == 401, path
        for path in told:
            assert flower.ask_as(account, f"/api/{path}", method="POST").status == 401, path
    assert [flower.ask(path).status for path in pages if "datatable" not in path] == [200] * 6
    assert password not in flower.log
    # What it gives to anybody. Of jobs that is how many there are.
    for path in GIVEN:
        answer = flower.ask_as(None, path)
        assert answer.status == 200, path
        assert job_id not in answer.text
    # The job goes on: nobody's word was heard.
    assert post.row(job_id).state is JobState.ACTIVE


def test_every_job_is_shown_by_its_id_and_label(post: Post, flower: Flower) -> None:
    folder = post.repository("site")
    models = {"ok": ("SUCCESS", "'completed'"), "policy": ("SUCCESS", "'policy runner-policy'")}
    jobs = [post.job(model, folder) for model in models]
    for job in jobs:
        post.submit_and_await(job)
    for job, (state, result) in zip(jobs, models.values(), strict=True):
        task = flower.await_task(job.id, state)
        assert (task["uuid"], task["name"], task["result"]) == (job.id, TASK, result)
        assert (task["args"], task["kwargs"]) == (f"({job.id}, local site -)", "{}")
        assert task["worker"].startswith("w1@")
        # That it was sent is told after it was: a quick worker has received it by then.
        assert task["sent"]
        assert task["received"] <= task["started"] <= task["succeeded"]
        assert 0 < task["runtime"] < 60
    listed = flower.ask("/api/tasks").document
    # The tickets by which a worker hears itself would only hide the jobs.
    assert TICK not in {task["name"] for task in listed.values()}
    assert sorted(listed) == sorted(job.id for job in jobs)


@pytest.mark.example(
    "ch5 s8 flower terminate", "Flower's Terminate ends a running job: its container goes, it has a record."
)
def test_a_running_job_is_terminated(post: Post, flower: Flower) -> None:
    # In the state at which its page has the button.
    job_id = running(post, flower)
    assert 'id="task-terminate"' in flower.ask(f"/task/{job_id}").text
    revoke(flower, job_id, terminate=True)
    row = post.await_end(job_id)
    assert (row.state, row.reason) == (JobState.COMPLETED, "operator-cancel")
    record = post.record(job_id)
    assert (record["outcome"], record["reason"], record["budgetReserved"]) == ("policy", "operator-cancel", True)
    # It returned, and Flower calls that a success; the result says how.
    assert flower.await_task(job_id, "SUCCESS")["result"] == "'policy operator-cancel'"
    settled(post)
    assert post.starts.of(job_id) == 1


@pytest.mark.example("ch5 s8 flower revoke", "A held job is shown as RETRY until its ETA; Flower's Revoke cancels it.")
def test_a_held_job_is_seen_as_such_and_revoked(post: Post, flower: Flower) -> None:
    folder = post.repository("site")
    first = post.submit(post.job("sleep-60", folder))
    post.await_starts(first)
    job_id = post.submit(post.job("ok", folder))
    due = post.await_state(job_id, JobState.DEFERRED).due_ms
    task = flower.await_task(job_id, "RETRY")
    until(lambda: post.fetched().count(job_id) == 1, "the worker to hold it")
    # Also once it is fetched, as a ticket that is to be run later.
    until(lambda: flower.task(job_id)["eta"], "Flower to know for when")
    task = flower.await_task(job_id, "RETRY")
    assert due is not None
    assert abs(datetime.fromisoformat(task["eta"]).timestamp() - due / 1000) < 5
    assert (task["args"], task["traceback"]) == (f"({job_id}, local site -)", None)
    assert 'id="task-revoke"' in flower.ask(f"/task/{job_id}").text
    revoke(flower, job_id, terminate=False)
    row = post.await_end(job_id)
    assert (row.state, row.reason) == (JobState.CANCELLED, "operator-cancel")
    record = post.record(job_id)
    assert (record["outcome"], record["reason"], record["exitCode"]) == ("policy", "operator-cancel", None)
    assert record["budgetReserved"] is False
    revoke(flower, first, terminate=True)
    post.await_end(first)
    settled(post)
    assert post.starts.of(job_id) == 0


def test_it_hears_again_after_the_server_was_away(post: Post, server: OwnServer, flower: Flower) -> None:
    server.stop()
    let_pass(3)
    server.start()
    with post.producer() as app:

        def heard() -> bool:
            job_id = post.submit_and_await(post.job())
            app.control.heartbeat()
            return bool(flower.task(job_id))

        assert until(heard, f"Flower to hear of a job; it says {flower.log[-1500:]}", 60)


def test_of_a_server_that_is_away_it_says_so(post: Post, server: OwnServer, tmp_path: Path) -> None:
    server.stop()
    program = FlowerProgram(post.environment(), tmp_path)
    with (tmp_path / "log").open("wb") as log, program.start(log) as process:
        assert process.wait(60) == 1
    said = (tmp_path / "log").read_text()
    assert said.startswith("pi-dispatch: ")
    assert "does not answer" in said

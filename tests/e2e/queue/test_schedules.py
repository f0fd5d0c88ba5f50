"""Schedules under real workers: however many there are, one container for each occurrence."""

import json
from pathlib import Path

import pytest

from tests.support.post import Post
from tests.support.server import until

#: Occurrences that are waited for.
COUNT = 4


def schedule(post: Post, pattern: str, **run: object) -> Path:
    """A file with one schedule, `often`, on a folder of its own."""
    on = {"type": "cron", "id": "often", "pattern": pattern}
    told = {"kind": "local", "folder": str(post.repository()), "flow": "tidy", "task": "tidy up", "model": "ok", **run}
    file = post.folder / "triggers.json"
    file.write_text(json.dumps({"triggers": [{"on": on, "run": told}]}))
    return file


def occurrences(post: Post) -> list[str]:
    """The ids of the jobs that are recorded."""
    return [job_id for job_id in post.records() if job_id.startswith("repeat")]


@pytest.mark.example("ch5 s9 two schedulers", "Two workers with one triggers file start each occurrence once.")
def test_two_workers_start_each_occurrence_once(post: Post) -> None:
    file = str(schedule(post, "*/3 * * * * *"))
    workers = [post.worker(name, PI_TRIGGERS_FILE=file) for name in ("w1", "w2")]
    until(lambda: len(occurrences(post)) >= COUNT, "some occurrences", 90)
    for worker in workers:
        worker.stop()
    fired = [event for worker in workers for event in worker.events("schedule_fired")]
    accepted = [event["jobId"] for event in fired if event["status"] == "submitted"]
    assert len(accepted) == len(set(accepted)) >= COUNT
    instants = [int(str(job_id).rpartition(":")[2]) for job_id in accepted]
    assert {instant % 3000 for instant in instants} == {0}
    assert sorted(instants) == list(range(min(instants), max(instants) + 1, 3000))
    for job_id in accepted:
        assert post.starts.of(str(job_id)) <= 1
    record = post.record(str(accepted[0]))
    assert (record["outcome"], record["triggerType"], record["triggerIndex"]) == ("completed", "cron", 0)


def test_an_edit_is_taken_over_and_a_bad_one_is_not(post: Post) -> None:
    file = schedule(post, "0 0 1 1 *")
    worker = post.worker(PI_TRIGGERS_FILE=str(file))
    worker.await_event("triggers_watching")
    good = file.read_text().replace("0 0 1 1 *", "* * * * * *")
    file.write_text("{")
    worker.await_event("triggers_reload_invalid")
    assert occurrences(post) == []
    file.write_text(good)
    worker.await_event("triggers_reloaded")
    until(lambda: occurrences(post), "the first occurrence", 40)


def test_a_worker_does_not_start_on_a_file_that_is_broken(post: Post) -> None:
    file = schedule(post, "0 0 1 1 *", folder="/nowhere/at/all")
    worker = post.worker(ready=False, PI_TRIGGERS_FILE=str(file), PI_WORKER_NAME=None)
    assert worker.await_end(40) == 2
    assert 'cron trigger "often", field "run.folder": there is no such folder' in worker.log

"""`logs --follow` beside a real worker: from before the job's start to its end, and away from it by Ctrl-C."""

import signal
import subprocess

from pidispatch.jobs.rows import JobState
from tests.support.post import ROOT, Post
from tests.support.program import PROGRAM, await_line


def follow(post: Post, job_id: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [PROGRAM, "logs", "-f", job_id],
        env=post.environment(),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_job_is_followed_from_its_queue_to_its_end(post: Post) -> None:
    job_id = post.submit(post.job("sleep-3"))
    with follow(post, job_id) as process:
        try:
            await_line(process, f"waiting in {post.row(job_id).queue}")
            post.worker(PI_CAPTURE_JOB_LOGS="1")
            assert process.stdout is not None
            # Before its end: the job sleeps now.
            assert '"event":"turn"' in process.stdout.readline()
            assert post.row(job_id).state is JobState.ACTIVE
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0
    assert '"event":"exit"' in out.splitlines()[-1]
    assert "attempt 1 of 2 runs on w1" in err
    assert post.await_end(job_id).state is JobState.COMPLETED


def test_both_attempts_are_followed(post: Post) -> None:
    job_id = post.submit(post.job("flaky"))
    with follow(post, job_id) as process:
        try:
            await_line(process, "waiting in")
            post.worker(PI_CAPTURE_JOB_LOGS="1")
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0
    assert [line.count('"reason":"infra"') for line in out.splitlines() if '"exit"' in line] == [1, 0]
    assert out.count('"event":"turn"') == 2
    assert "attempt 1 of 2 failed" in err


def test_whoever_leaves_leaves_the_job_alone(post: Post) -> None:
    post.worker(PI_CAPTURE_JOB_LOGS="1")
    job_id = post.submit(post.job("sleep-60"))
    with follow(post, job_id) as process:
        try:
            assert process.stdout is not None
            assert '"event":"turn"' in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 1
    assert f"If the job runs it goes on; cancel it with: pi-dispatch cancel {job_id}" in err
    assert post.row(job_id).state is JobState.ACTIVE


def test_a_reader_that_has_seen_enough_ends_it(post: Post) -> None:
    post.worker(PI_CAPTURE_JOB_LOGS="1")
    job_id = post.submit(post.job("sleep-60"))
    with follow(post, job_id) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            process.stdout.close()
            assert process.wait(30) == 0
        finally:
            process.kill()
    assert post.row(job_id).state is JobState.ACTIVE

"""Caps under real workers: how many containers the engine itself saw, and what the counters say of them."""

from contextlib import closing
from typing import Any

import pytest

from pidispatch.jobs.rows import JobState
from tests.support.matrix import check_money
from tests.support.post import Post

#: Jobs that share a cap.
JOBS, CAP = 10, 3


def counters(post: Post) -> dict[str, int]:
    """Every counter of money, without the prefix."""
    assert post.server is not None
    with closing(post.server.client()) as client:
        found: Any = {name: client.get(name) for name in client.scan_iter(f"{post.prefix}budget:*")}
    return {str(name).removeprefix(post.prefix): int(amount) for name, amount in found.items()}


def money_is_right(post: Post, ids: list[str]) -> None:
    """The counters are the sum of the records."""
    assert post.server is not None
    with closing(post.server.client()) as client:
        check_money(client, post.prefix, [post.record(job_id) for job_id in ids])


@pytest.mark.example("ch2 EX-2", "two workers at two engines and ten jobs at a cap of three: three containers")
def test_two_workers_share_a_cap(post: Post) -> None:
    ids = [post.submit(post.job("ok"), queue="pi-jobs") for _ in range(JOBS)]
    for name in ("w1", "w2"):
        post.worker(name, PI_DAILY_CAP=str(CAP), PI_WEEKLY_CAP=None, PI_MONTHLY_CAP=None)
    rows = [post.await_end(job_id, 120) for job_id in ids]
    assert {row.state for row in rows} == {JobState.COMPLETED}
    ran = [row.id for row in rows if row.reason is None]
    refused = [row for row in rows if row.reason == "over-budget"]
    assert (len(ran), len(refused)) == (CAP, JOBS - CAP)
    for job_id in ran:
        post.await_starts(job_id)
    assert sum(post.starts.of(job_id) for job_id in ids) == CAP
    day = [amount for key, amount in counters(post).items() if key.count(":") == 1]
    assert sum(day) == JOBS
    for row in refused:
        record = post.record(row.id)
        assert (record["outcome"], record["cause"], record["budgetReserved"]) == ("policy", "day", True)
        assert record["exitCode"] is None
    money_is_right(post, ids)


@pytest.mark.example("ch2 EX-12", "tokens are added when the container has ended, and the next run is refused")
def test_a_run_fills_the_days_tokens(post: Post) -> None:
    # The stub's runs use 7 tokens.
    worker = post.worker("w1", PI_DAILY_TOKEN_CAP="7")
    first = post.submit_and_await(post.job("ok"))
    second = post.submit_and_await(post.job("ok"))
    assert post.record(first)["outcome"] == "completed"
    assert post.record(second)["reason"] == "daily-token-cap"
    assert post.starts.of(second) == 0
    booked = {key: amount for key, amount in post.record(first)["charged"].items() if ":t:" in key}
    assert list(booked.values()) == [7]
    [said] = worker.events("over_token_budget")
    assert (said["jobId"], said["spent"], said["cap"]) == (second, 7, 7)
    money_is_right(post, [first, second])


@pytest.mark.example("ch2 EX-10", "a run that fails twice takes two slots")
def test_each_attempt_takes_a_slot(post: Post) -> None:
    post.worker("w1", PI_WEEKLY_CAP=None, PI_MONTHLY_CAP=None)
    job_id = post.submit_and_await(post.job("fail"))
    record = post.record(job_id)
    assert (record["outcome"], record["attempt"], len(record["attempts"])) == ("failed", 2, 1)
    [day] = [amount for key, amount in counters(post).items() if key.count(":") == 1]
    assert day == 2
    money_is_right(post, [job_id])


def test_a_refused_job_leaves_its_folder_and_its_room_as_they_were(post: Post) -> None:
    post.worker("w1", PI_DAILY_CAP="1")
    folder = post.repository()
    first = post.submit_and_await(post.job("ok", folder))
    second = post.submit_and_await(post.job("ok", folder))
    assert post.record(first)["reason"] is None
    assert post.record(second)["reason"] == "over-budget"
    assert post.left() == []
    assert not [*post.folder.glob("w*/jobs/*job-*")]

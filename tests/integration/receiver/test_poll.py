"""The poller: what it sees on GitHub becomes what a webhook would have told, and goes the same way."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pidispatch.values.forge import JobKind
from tests.fakes.github.edge import Edge
from tests.fakes.github.faults import Fault
from tests.support.poll import REPO, PollBox
from tests.support.receiver import label

Poll = Callable[..., PollBox]
COMMENT = {"on": {"type": "comment", "phrase": "@pi"}, "run": {"kind": "github", "flow": "triage"}}
CLOSE = {"on": {"type": "issue", "action": ["closed"]}, "run": {"kind": "github", "flow": "deploy"}}


def pulls(*actions: str, **on: Any) -> dict[str, Any]:
    """A rule for pull requests."""
    return {"on": {"type": "pull_request", "action": list(actions), **on}, "run": {"kind": "github", "flow": "review"}}


def test_a_first_look_starts_nothing_and_the_next_one_what_is_new(poll: Poll, edge: Edge) -> None:
    for number in range(1, 4):
        edge.issue()
        edge.label(number)
    box = poll(label())
    box.cycle(2)
    assert box.inbox.jobs() == []
    edge.issue()
    edge.label(4)
    event = edge.state.repository(REPO).events[-1].id
    box.cycle()
    assert box.inbox.jobs() == [f"gh-poll-e{event}"]
    edge.comment(1)
    box.cycle()
    assert len(box.inbox.jobs()) == 1


@pytest.mark.example(
    "ch1 E16", "The first look at 30 labelled issues starts nothing; what is new is named by its event or its commit."
)
def test_e16_what_is_polled(poll: Poll, edge: Edge) -> None:
    for number in range(1, 31):
        edge.issue()
        edge.label(number)
    pull = edge.pull("mend")
    box = poll(label(), pulls("synchronize"))
    box.pushed_by_people()
    box.cycle()
    assert box.inbox.jobs() == []
    edge.issue()
    edge.state._ids = 553
    edge.label(32)
    before = cursor(box, "events")
    box.cycle()
    assert box.inbox.jobs() == ["gh-poll-e555"]
    # Killed once the job was handed in and before that was noted.
    box.inbox.client.set(f"pi:poll:{REPO}:cursor:events", before)
    box.inbox.client.delete(f"pi:poll:{REPO}:etag:events")
    box.cycle()
    assert box.inbox.jobs() == ["gh-poll-e555"]
    assert [one.verdict for one in box.inbox.deliveries(2)] == ["queued", "duplicate"]
    sha = edge.push("mend", {"more.txt": "more"})
    box.cycle()
    assert box.inbox.jobs() == ["gh-poll-e555", f"gh-poll-pr{pull.number}-{sha[:7]}"]


def cursor(box: PollBox, part: str) -> str:
    """Up to where something is dealt with."""
    return str(box.inbox.client.get(f"pi:poll:{REPO}:cursor:{part}"))


def test_a_job_has_what_one_of_a_webhook_has(poll: Poll, edge: Edge) -> None:
    """The same act, told by a webhook to one deployment and seen by the poller of another."""
    box = poll(label(), COMMENT, pulls("opened", "review_submitted"), CLOSE)
    box.cycle()
    hook = edge.hook("http://127.0.0.1:9/")
    edge.issue()
    edge.label(1)
    edge.pull("mend")
    edge.label(2, "wip")
    edge.comment(1, "@pi please")
    edge.comment(2, "@pi please")
    edge.review(2)
    edge.close(1)
    box.cycle()
    polled = [box.inbox.job(one) for one in box.inbox.jobs()]
    names = {(one.trigger.event, one.trigger.action, one.target.type) for one in polled}
    assert names == {
        ("issues", "labeled", "issue"),
        ("issue_comment", "created", "issue"),
        ("issue_comment", "created", "pull_request"),
        ("pull_request", "opened", "pull_request"),
        ("issues", "closed", "issue"),
    }, "what was done to the pull request besides is coalesced"
    box.inbox.client.flushall()
    told = {}
    for delivery in edge.deliveries():
        assert delivery.hook is hook
        # Else most of them would be coalesced, as what was polled was.
        for held in box.inbox.client.scan_iter("pi:dedup:*"):
            box.inbox.client.delete(held)
        if box.inbox.post(delivery.payload, delivery.event, delivery.guid).status == 202:
            job = box.inbox.job(f"gh-{delivery.guid}")
            told[job.trigger.event, job.trigger.action, job.target.number] = job
    for one in polled:
        other = told[one.trigger.event, one.trigger.action, one.target.number]
        trigger = one.trigger.model_copy(update={"delivery_id": other.trigger.delivery_id})
        assert one.model_copy(update={"id": other.id, "trigger": trigger}) == other


def test_comments_are_told_once_and_as_they_were_written(poll: Poll, edge: Edge) -> None:
    edge.issue()
    edge.issue()
    edge.comment(1, "@pi old")
    box = poll(COMMENT)
    box.cycle()
    repository = edge.state.repository(REPO)
    edge.comment(1, "no phrase")
    box.cycle()
    comment = repository.issues[1].comments[-1]
    comment.body, comment.updated = "@pi edited", edge.state.instant()
    old = repository.issues[1].comments[0]
    old.body, old.updated = "@pi edited too", edge.state.instant()
    edge.comment(2, "@pi who may not", by="mallory")
    edge.comment(2, "@pi by itself", by="pi-bot")
    box.cycle(2)
    assert box.inbox.jobs() == []
    assert [one.delivery.reason for one in box.inbox.deliveries(3)] == [
        "no-trigger-phrase",
        "author-not-allowed",
        "self",
    ]
    edge.comment(2, "@pi fix")
    box.cycle()
    [job] = box.inbox.jobs()
    assert job == f"gh-poll-c{repository.issues[2].comments[-1].id}"
    assert box.inbox.job(job).trigger.comment is not None


def test_what_is_gone_by_the_time_it_is_looked_at_is_dropped(poll: Poll, edge: Edge) -> None:
    edge.issue()
    edge.pull("mend")
    box = poll(COMMENT, pulls("labeled", any=["pi:fix"]))
    box.cycle()
    edge.comment(1, "@pi fix")
    edge.label(2)
    edge.fault(f"/repos/{REPO}/issues/1$", Fault.GONE)
    edge.fault(f"/repos/{REPO}/pulls/2$", Fault.NOT_FOUND)
    box.cycle(2)
    assert [one.delivery.reason for one in box.inbox.deliveries(2)] == ["missing-pull-request", "missing-issue-number"]


def permission(edge: Edge) -> int:
    """How often it was asked who may."""
    return sum(path.endswith("/permission") for path in edge.paths())


def test_who_closed_is_asked_about_only_where_a_rule_is_about_it(poll: Poll, edge: Edge) -> None:
    edge.issue()
    edge.issue()
    edge.issue()
    box = poll(label())
    box.cycle()
    edge.close(1)
    box.cycle()
    box.inbox.edit([CLOSE])
    box.cycle()
    assert permission(edge) == 0, "what was closed before is past"
    edge.close(2)
    edge.close(3, by="mallory")
    box.cycle()
    assert permission(edge) == 2
    [job] = box.inbox.jobs()
    assert box.inbox.job(job).target.number == 2
    assert [one.delivery.reason for one in box.inbox.deliveries(2)] == [None, "closer-not-allowed"]


def test_a_closed_pull_request_is_one(poll: Poll, edge: Edge) -> None:
    edge.pull("mend")
    box = poll(pulls("closed"))
    box.cycle()
    edge.close(1)
    box.cycle()
    [job] = box.inbox.jobs()
    found = box.inbox.job(job)
    assert (found.target.type, found.trigger.action) == ("pull_request", "closed")
    assert found.target.head is not None


def test_whether_somebody_may_is_asked_again_for_five_cycles(
    poll: Poll, edge: Edge, logs: list[dict[str, Any]]
) -> None:
    for _ in range(3):
        edge.issue()
    box = poll(CLOSE, label())
    box.cycle()
    edge.fault(f"/repos/{REPO}/collaborators", Fault.SERVER_ERROR, 4)
    edge.close(1)
    edge.label(2)
    box.cycle(4)
    assert len(box.inbox.jobs()) == 1, "the other is not held up, nor told again"
    box.cycle()
    assert len(box.inbox.jobs()) == 2
    told = [one.verdict for one in box.inbox.deliveries(6)]
    assert sorted(told) == ["queued", "queued", "retry", "retry", "retry", "retry"]
    edge.fault(f"/repos/{REPO}/collaborators", Fault.SERVER_ERROR)
    edge.close(3)
    box.cycle(7)
    assert len(box.inbox.jobs()) == 2
    assert [one["reason"] for one in logs if one["event"] == "poll_lookup_given_up"] == ["permission-lookup-failed"]
    last = box.inbox.deliveries(12)[6:]
    assert sorted((one.verdict, one.delivery.reason) for one in last) == [
        ("dropped", "permission-lookup-failed"),
        *[("retry", "permission-lookup-failed")] * 5,
    ]


def test_pull_requests(poll: Poll, edge: Edge) -> None:
    edge.pull("old")
    box = poll(pulls("opened", "synchronize", "reopened"))
    box.pushed_by_people()
    box.cycle()
    first = edge.pull("mend").sha
    edge.pull("spam", by="mallory")
    edge.pull("own", by="pi-bot")
    box.cycle()
    assert box.inbox.jobs() == [f"gh-poll-pr2-{first[:7]}"]
    assert [one.delivery.reason for one in box.inbox.deliveries(3)] == [None, "pr-author-not-allowed", "self"]
    second = edge.push("old", {"a.txt": "a"})
    box.cycle()
    assert box.inbox.jobs() == sorted([f"gh-poll-pr2-{first[:7]}", f"gh-poll-pr1-{second[:7]}"])
    edge.push("old", {"b.txt": "b"}, by="pi-bot")
    edge.close(2)
    box.cycle()
    assert [one.delivery.reason for one in box.inbox.deliveries(5)[4:]] == ["self"], "what it pushes starts nothing"
    edge.reopen(2)
    box.cycle()
    last = box.inbox.deliveries(6)[-1]
    assert (last.delivery.action, last.verdict) == ("reopened", "duplicate"), "the same commit is the same delivery"
    box.cycle(2)
    assert len(box.inbox.deliveries(6)) == 6
    assert "closed" not in box.inbox.client.hvals(f"pi:poll:{REPO}:prs")


def test_a_push_of_which_nobody_knows_who_did_it_is_dropped_after_five_cycles(poll: Poll, edge: Edge) -> None:
    edge.pull("mend")
    box = poll(pulls("synchronize"))
    box.cycle()
    edge.push("mend", {"a.txt": "a"})
    box.cycle(4)
    assert box.inbox.store.deliveries(JobKind.GITHUB, 10) == []
    box.cycle(2)
    assert [one.delivery.reason for one in box.inbox.deliveries(1)] == ["missing-sender-id"]
    box.pushed_by_people()
    sha = edge.push("mend", {"b.txt": "b"})
    box.cycle()
    assert box.inbox.jobs() == [f"gh-poll-pr1-{sha[:7]}"]


def test_reviews(poll: Poll, edge: Edge) -> None:
    edge.pull("mend")
    edge.review(1)
    rule = pulls("review_submitted", reviewState=["changes_requested"])
    box = poll(label())
    box.cycle()
    assert not [path for path in edge.paths() if path.endswith("/reviews")], "no rule is about them"
    box.inbox.edit([rule])
    box.cycle()
    assert box.inbox.jobs() == []
    edge.review(1, by="mallory")
    found = edge.review(1)
    box.cycle(2)
    assert box.inbox.jobs() == [f"gh-poll-rv{found.id}"]
    assert box.inbox.job(f"gh-poll-rv{found.id}").trigger.action == "submitted"
    # What made no job is logged by a thread of its own.
    assert {one.delivery.reason for one in box.inbox.deliveries(2)} == {"review-author-not-allowed", None}
    box.inbox.edit([label()])
    box.cycle()
    assert box.inbox.client.exists(f"pi:poll:{REPO}:cursor:reviews", f"pi:poll:{REPO}:etag:reviews") == 0


def test_replicas_fan_out(poll: Poll, edge: Edge) -> None:
    edge.issue()
    box = poll(label(replicas=2))
    box.cycle()
    edge.label(1)
    box.cycle()
    event = edge.state.repository(REPO).events[-1].id
    assert box.inbox.jobs() == [f"gh-poll-e{event}-r1", f"gh-poll-e{event}-r2"]


def test_where_nothing_is_new_it_costs_nothing(poll: Poll, edge: Edge) -> None:
    edge.issue()
    edge.pull("mend")
    edge.review(2)
    edge.comment(1)
    box = poll(label(), pulls("review_submitted"))
    # Comments are asked for in another order the first time.
    box.cycle(2)
    edge.asked.clear()
    used = edge.state.rate.used
    box.cycle()
    assert [one.status for one in edge.asked] == [304] * 4
    assert edge.state.rate.used == used
    edge.comment(1)
    box.cycle()
    assert [one.status for one in edge.asked[4:]].count(304) >= 2


def test_it_is_called_as_github_calls_it(poll: Poll, edge: Edge) -> None:
    edge.issue()
    box = poll(label(), repositories=("ACME/Web",))
    box.cycle()
    edge.label(1)
    box.cycle()
    [job] = box.inbox.jobs()
    assert box.inbox.job(job).repo == REPO
    assert box.inbox.client.keys("pi:dedup:*") == [f"pi:dedup:{REPO}#1:fix"]


def test_all_that_is_known_ends_together(poll: Poll, edge: Edge) -> None:
    edge.pull("mend")
    edge.review(1)
    box = poll(pulls("review_submitted"))
    box.cycle(2)
    names = sorted(box.inbox.client.keys("pi:poll:*"))
    for name in names:
        box.inbox.client.pexpire(name, 60_000)
    box.cycle()
    assert names == sorted(f"pi:poll:{REPO}:{name}" for name in KNOWN)
    left = [int(str(box.inbox.client.pttl(name))) for name in names]
    assert all(35 * 86_400_000 - 60_000 < one <= 35 * 86_400_000 for one in left)


KNOWN = [
    "cursor:events",
    "cursor:comments",
    "cursor:prs",
    "cursor:reviews",
    "etag:events",
    "etag:pulls",
    "etag:reviews",
    "etag:comments",
    "prs",
]


@pytest.mark.example(
    "ch8 F1", "Two receivers and the poller hear of one label in the same second: one job, and the log says it of each."
)
def test_f1_receivers_and_the_poller_make_one_job(poll: Poll, edge: Edge, inbox: Callable[..., Any]) -> None:
    for _ in range(36):
        edge.issue()
    box = poll(label())
    others = [inbox(label(), variables=edge.pat_variables()) for _ in range(2)]
    box.cycle()
    for _ in others:
        edge.hook("http://127.0.0.1:9/", "issues")
    edge.label(36)
    deliveries = edge.deliveries()
    with ThreadPoolExecutor(3) as at_once:
        polled = at_once.submit(box.cycle)
        posted = [
            at_once.submit(other.post, one.payload, one.event, one.guid)
            for other, one in zip(others, deliveries, strict=True)
        ]
        polled.result(30)
        answers = [one.result(30).told for one in posted]
    [job] = box.inbox.jobs()
    assert box.inbox.job(job).target.number == 36
    coalesced = (202, {"status": "coalesced", "job": job})
    assert all(answer in ((202, {"status": "queued"}), coalesced) for answer in answers)
    event = edge.state.repository(REPO).events[-1].id
    told = box.inbox.deliveries(3)
    assert {one.delivery.id for one in told} == {f"poll-e{event}", *(one.guid for one in deliveries)}
    assert sorted(one.verdict for one in told) == ["coalesced", "coalesced", "queued"]
    assert {one.job_id for one in told} == {job}
    # Sent again, it is the same: also by the poller after a crash.
    assert others[0].post(deliveries[0].payload, deliveries[0].event, deliveries[0].guid).status == 202
    assert box.inbox.jobs() == [job]

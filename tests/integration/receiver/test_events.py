"""From a signed delivery to a job in the store: the worked examples."""

from pathlib import Path
from typing import Any

import pytest

from pidispatch.jobs.rows import JobState
from pidispatch.values.event import Drop
from pidispatch.values.job import Matched
from pidispatch.values.limits import Limits
from tests.fakes.github import payloads
from tests.fakes.github.server import Fault
from tests.support.receiver import GUID, QUEUE, Inbox, guid, label
from tests.support.round_trips import round_trips
from tests.support.server import until

QUEUED = (202, {"status": "queued"})
DROPPED = (204, None)
ONESHOT = {
    "on": {"type": "issue", "action": ["closed"], "number": 40, "once": True},
    "run": {"kind": "github", "flow": "deploy"},
}
COMMENT = {"on": {"type": "comment", "phrase": "@pi"}, "run": {"kind": "github", "flow": "triage"}}
REVIEW = {
    "on": {"type": "pull_request", "action": ["review_submitted"], "reviewState": ["changes_requested"]},
    "run": {"kind": "github", "flow": "mend"},
}

Logs = list[dict[str, Any]]


def dropped(logs: Logs) -> list[str]:
    """Why deliveries were dropped, in order."""
    return [one["reason"] for one in logs if one["event"] == "dropped"]


@pytest.mark.example("ch1 E1", "A signed label event becomes one job, whose data holds no login.")
def test_e1_a_label_makes_a_job(inbox: Any, logs: Logs) -> None:
    box: Inbox = inbox(label())
    assert len(payloads.LABELED) == 198
    answered = box.post(payloads.LABELED, x_hub_signature_256=payloads.LABELED_SIGNATURE)
    assert answered.told == QUEUED
    assert box.jobs() == [f"gh-{GUID}"]
    job = box.job(f"gh-{GUID}")
    assert job.matched == Matched(index=0, type="label", label="pi:fix")
    assert (job.flow, job.repo, job.target.number, job.trigger.sender.id) == ("fix", "acme/web", 7, 1001)
    row = box.store.row(job.id)
    assert row is not None
    assert (row.state, row.queue, row.dedup_key) == (JobState.QUEUED, QUEUE, "acme/web#7:fix")
    assert "login" not in job.stored()
    assert "alice" not in job.stored()
    assert [one.job_id for one in box.published] == [job.id]
    [told] = [one for one in logs if one["event"] == "enqueued"]
    assert told == {
        "event": "enqueued",
        "delivery": GUID,
        "repo": "acme/web",
        "target": 7,
        "flow": "fix",
        "replicas": 1,
        "log_level": "info",
    }
    [entry] = box.deliveries(1)
    assert (entry.verdict, entry.job_id) == ("queued", job.id)
    assert (entry.delivery.event, entry.delivery.action, entry.delivery.target) == ("issues", "labeled", "acme/web#7")
    assert entry.delivery.trigger == 0
    assert "footer" not in str(logs)
    assert "alice" not in str(logs)


@pytest.mark.example("ch1 E1 a", "The same delivery again is answered as before, and makes no second job.")
def test_e1a_a_redelivery_makes_no_job(inbox: Any, logs: Logs) -> None:
    box: Inbox = inbox(label())
    assert [box.post(payloads.LABELED).told for _ in range(2)] == [QUEUED, QUEUED]
    assert box.jobs() == [f"gh-{GUID}"]
    assert [one.verdict for one in box.deliveries(2)] == ["queued", "duplicate"]
    assert [one["event"] for one in logs if one["event"] in ("enqueued", "redelivered")] == ["enqueued", "redelivered"]
    # Whoever took it first may not have come to announce it, so a job that waits still is announced again.
    box.desk.close(5)
    assert [one.job_id for one in box.published] == [f"gh-{GUID}"] * 2


def test_a_redelivery_of_a_job_that_runs_announces_nothing(inbox: Any) -> None:
    box: Inbox = inbox(label())
    box.post(payloads.LABELED)
    box.store.acquire(f"gh-{GUID}", 0, "w#e#1")
    assert box.post(payloads.LABELED).told == QUEUED
    box.desk.close(5)
    assert len(box.published) == 1


@pytest.mark.example("ch1 E1 b", "The same wish in another delivery, within ten minutes, makes no job and says which.")
def test_e1b_the_same_wish_within_the_window_is_coalesced(inbox: Any, logs: Logs) -> None:
    box: Inbox = inbox(label())
    box.post(payloads.LABELED)
    answered = box.post(payloads.LABELED, delivery=guid("2"))
    assert answered.told == (202, {"status": "coalesced", "job": f"gh-{GUID}"})
    assert box.jobs() == [f"gh-{GUID}"]
    assert [one["event"] for one in logs if one["event"] in ("enqueued", "coalesced")] == ["enqueued", "coalesced"]
    second = box.deliveries(2)[1]
    assert (second.verdict, second.job_id, second.delivery.id) == ("coalesced", f"gh-{GUID}", guid("2"))


@pytest.mark.example("ch1 E1 c", "After ten minutes and a millisecond it makes a new one.")
def test_e1c_the_same_wish_after_the_window_is_a_new_job(inbox: Any) -> None:
    box: Inbox = inbox(label())
    box.post(payloads.LABELED)
    later: Inbox = inbox(label(), offset_ms=Limits().dedup_ms + 1)
    assert later.post(payloads.LABELED, delivery=guid("2")).told == QUEUED
    assert box.jobs() == [f"gh-{GUID}", f"gh-{guid('2')}"]


@pytest.mark.example("ch1 E1 d", "A body of which one byte is another is not read.")
def test_e1d_a_changed_byte_is_refused(inbox: Any) -> None:
    box: Inbox = inbox(label())
    body = payloads.LABELED.replace(b"Broken", b"broken")
    answered = box.post(body, x_hub_signature_256=payloads.LABELED_SIGNATURE)
    assert answered.told == (401, {"error": "invalid signature"})
    assert box.jobs() == []


@pytest.mark.example("ch1 E1 e f g", "This deployment's own event, one without a number of who did it, other labels.")
@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (payloads.issues(sender=9001), Drop.SELF),
        (payloads.issues() | {"sender": {"id": "1001"}}, Drop.MISSING_SENDER_ID),
        (payloads.issues(labels=["pi:docs"]), Drop.NO_ALLOWLISTED_LABEL),
    ],
)
def test_e1_what_is_dropped(inbox: Any, logs: Logs, payload: dict[str, Any], reason: Drop) -> None:
    box: Inbox = inbox(label())
    assert box.post(payload).told == DROPPED
    assert dropped(logs) == [reason.value]
    assert box.jobs() == []
    [entry] = box.deliveries(1)
    assert (entry.verdict, entry.delivery.reason, entry.job_id) == ("dropped", reason.value, None)


@pytest.mark.example("ch1 E3", "A comment fires the comment rule, and may name another flow that is known.")
def test_e3_a_comment_and_the_flow_it_names(inbox: Any, logs: Logs) -> None:
    box: Inbox = inbox(COMMENT, label(), label(flow="deploy", kind="gitlab"))
    for digit, (text, flow) in enumerate(
        [("@pi please", "triage"), ("@pi fix now", "fix"), ("@pi deploy", "deploy"), ("@pi rm", "triage")], 1
    ):
        given = payloads.issue_comment(text, number=digit)
        assert box.post(given, "issue_comment", guid(str(digit))).told == QUEUED
        job = box.job(f"gh-{guid(str(digit))}")
        assert job.flow == flow
        row = box.store.row(job.id)
        assert row is not None
        assert row.dedup_key == f"acme/web#{digit}:{flow}"
        assert job.matched == Matched(index=0, type="comment", phrase="@pi")
        assert job.trigger.comment is not None
        assert (job.trigger.comment.body, job.trigger.comment.author_association) == (text, "MEMBER")
    stranger = payloads.issue_comment("@pi please", association="NONE")
    assert box.post(stranger, "issue_comment", guid("7")).told == DROPPED
    assert box.post(payloads.issue_comment("hello"), "issue_comment", guid("8")).told == DROPPED
    assert dropped(logs) == [Drop.AUTHOR_NOT_ALLOWED, Drop.NO_TRIGGER_PHRASE]
    assert box.post(payloads.issue_comment(number=9, on_pull=True), "issue_comment", guid("9")).told == QUEUED
    target = box.job(f"gh-{guid('9')}").target
    assert (target.type, target.number, target.head) == ("pull_request", 9, None)


@pytest.mark.example("ch1 E3 command", "A command rule is no flow, and no word of a comment makes it one.")
def test_e3_a_command(inbox: Any, logs: Logs) -> None:
    box: Inbox = inbox({**COMMENT, "run": {"kind": "github", "command": "wf deploy"}}, label())
    assert box.post(payloads.issue_comment("@pi fix"), "issue_comment").told == QUEUED
    job = box.job(f"gh-{GUID}")
    assert (job.command, job.flow) == ("wf deploy", None)
    row = box.store.row(job.id)
    assert row is not None
    assert row.dedup_key == "acme/web#9:cmd:wf deploy"
    assert next(one for one in logs if one["event"] == "enqueued")["flow"] is None


@pytest.mark.example("ch1 E4", "Two replicas are two jobs; where the second could not be taken, a redelivery makes it.")
def test_e4_replicas(inbox: Any, logs: Logs) -> None:
    box: Inbox = inbox(label(replicas=2))
    # Of the wrong type, so that the store refuses the second.
    box.client.lpush("pi:dedup:acme/web#7:fix:r2", "in the way")
    assert box.post(payloads.LABELED).told == (503, {"error": "enqueue-failed"})
    assert [one["cause"] for one in logs if one["event"] == "enqueue_failed"] == ["store-error"]
    assert box.jobs() == [f"gh-{GUID}-r1"]
    box.client.delete("pi:dedup:acme/web#7:fix:r2")
    assert box.post(payloads.LABELED).told == QUEUED
    assert box.jobs() == [f"gh-{GUID}-r1", f"gh-{GUID}-r2"]
    for number, job_id in enumerate(box.jobs(), 1):
        job, row = box.job(job_id), box.store.row(job_id)
        assert row is not None
        assert (job.replica, job.replicas, row.dedup_key) == (number, 2, f"acme/web#7:fix:r{number}")
    assert box.post(payloads.LABELED).told == QUEUED
    other = box.post(payloads.LABELED, delivery=guid("2"))
    assert other.told == (202, {"status": "coalesced", "job": f"gh-{GUID}-r1"})
    assert len(box.jobs()) == 2
    box.desk.close(5)
    assert {one.job_id for one in box.published} == set(box.jobs())
    verdicts = [one.verdict for one in box.deliveries(8)]
    assert sorted(verdicts) == ["coalesced"] * 2 + ["duplicate"] * 3 + ["queued"] * 2 + ["retry"]


def test_a_rule_says_everything_that_a_job_carries(inbox: Any) -> None:
    run: dict[str, Any] = {
        "provider": "openai",
        "model": "gpt-5.4-mini",
        "maxTurns": 7,
        "maxTokens": 1000,
        "image": "pi-job:other",
        "instructions": "Keep the style.",
        "skillsDir": "/srv/skills",
    }
    box: Inbox = inbox(label(**run))
    box.post(payloads.LABELED)
    job = box.job(f"gh-{GUID}")
    assert (job.provider, job.model, job.max_turns, job.max_tokens) == ("openai", "gpt-5.4-mini", 7, 1000)
    assert (job.image, job.instructions, job.skills_dir) == ("pi-job:other", "Keep the style.", "/srv/skills")
    assert (job.replica, job.replicas, job.oneshot) == (None, None, None)
    assert job.breaker == box.rules.all[0].breaker


@pytest.mark.example("ch1 E5", "A review fires by its verdict, and the reviewer's word is the one that counts.")
def test_e5_reviews(inbox: Any, logs: Logs) -> None:
    box: Inbox = inbox(REVIEW)
    given = payloads.pull_request_review()
    assert box.post(given, "pull_request_review").told == QUEUED
    job = box.job(f"gh-{GUID}")
    assert (job.matched.action, job.trigger.action) == ("review_submitted", "submitted")
    assert job.trigger.review is not None
    assert job.trigger.review.state == "changes_requested"
    for digit, given in enumerate(
        [
            payloads.pull_request_review(reviewer="NONE"),
            payloads.pull_request_review("approved"),
            payloads.pull_request_review("commented", body="  "),
        ],
        2,
    ):
        assert box.post(given, "pull_request_review", guid(str(digit))).told == DROPPED
    assert dropped(logs) == [Drop.REVIEW_AUTHOR_NOT_ALLOWED, Drop.REVIEW_STATE_NOT_MATCHED, Drop.NO_REVIEW_BODY]


@pytest.mark.example("ch1 E6", "A one-shot close asks who closed it, and only of an item that a rule is about.")
def test_e6_a_close(inbox: Any, logs: Logs, github: Any) -> None:
    github.permissions[("acme/web", "bob")] = "write"
    box: Inbox = inbox(label("a"), label("b"), label("c"), ONESHOT)
    before = len(github.asked)
    assert box.post(payloads.closed(41)).told == DROPPED
    assert dropped(logs) == [Drop.CLOSE_NUMBER_NOT_MATCHED]
    assert len(github.asked) == before
    assert box.post(payloads.closed(), delivery=guid("2")).told == QUEUED
    job = box.job(f"gh-{guid('2')}")
    assert job.matched == Matched(index=3, type="issue", action="closed", number=40, once=True)
    assert job.oneshot == box.rules.all[3].oneshot
    row = box.store.row(job.id)
    assert row is not None
    assert row.dedup_key == "acme/web#40:closed:deploy"
    assert [one.path for one in github.asked[before:]] == ["/repos/acme/web/collaborators/bob/permission"]
    assert "bob" not in job.stored()


@pytest.mark.example("ch1 E6 authority", "One who may only read starts nothing; where GitHub does not say, 503.")
def test_e6_who_may_close(inbox: Any, logs: Logs, github: Any) -> None:
    github.permissions[("acme/web", "bob")] = "read"
    box: Inbox = inbox(ONESHOT)
    assert box.post(payloads.closed()).told == DROPPED
    assert dropped(logs) == [Drop.CLOSER_NOT_ALLOWED]
    github.faults["/repos/"] = Fault.SERVER_ERROR
    assert box.post(payloads.closed(), delivery=guid("2")).told == (503, {"error": "permission-lookup-failed"})
    assert box.jobs() == []
    second = box.deliveries(2)[1]
    assert (second.verdict, second.delivery.reason) == ("retry", "permission-lookup-failed")
    [told] = [one for one in logs if one["event"] == "lookup_failed"]
    assert told["delivery"] == guid("2")
    assert "bob" not in str(logs)


@pytest.mark.example("ch1 E6 label before close", "A label job of the same item and flow does not swallow the close.")
def test_e6_a_label_job_does_not_swallow_a_close(inbox: Any, github: Any) -> None:
    github.permissions[("acme/web", "bob")] = "admin"
    box: Inbox = inbox(label(flow="deploy"), ONESHOT)
    assert box.post(payloads.issues(number=40)).told == QUEUED
    assert box.post(payloads.closed(), delivery=guid("2")).told == QUEUED
    assert len(box.jobs()) == 2


def test_a_spent_one_shot_makes_way_for_the_next_rule(inbox: Any, github: Any, logs: Logs) -> None:
    """The file may still show it armed: the store knows better, and who closed it is asked about once."""
    github.permissions[("acme/web", "bob")] = "write"
    any_close = {"on": {"type": "issue", "action": ["closed"]}, "run": {"kind": "github", "flow": "tidy"}}
    box: Inbox = inbox(ONESHOT, any_close)
    assert box.rules.all[0].oneshot is not None
    box.client.set(f"pi:oneshot:{box.rules.all[0].oneshot}", '{"at":1,"jobId":"gh-0"}')
    before = len(github.asked)
    assert box.post(payloads.closed()).told == QUEUED
    assert box.job(f"gh-{GUID}").matched == Matched(index=1, type="issue", action="closed", number=40)
    assert len(github.asked) == before + 1
    box.edit([ONESHOT])
    assert box.post(payloads.closed(), delivery=guid("2")).told == DROPPED
    assert dropped(logs) == [Drop.NO_MATCHING_CLOSE_TRIGGER]


def test_a_paused_trigger_takes_nothing(inbox: Any, logs: Logs) -> None:
    box: Inbox = inbox(label())
    box.client.set(f"pi:trigger:paused:{box.rules.all[0].breaker}", "{}")
    assert box.post(payloads.LABELED).told == DROPPED
    assert dropped(logs) == [Drop.TRIGGER_PAUSED]
    [entry] = box.deliveries(1)
    assert (entry.verdict, entry.delivery.reason) == ("dropped", "trigger-paused")
    assert box.jobs() == []


@pytest.mark.example("ch8 F2", "One pull request that tells of itself three times in a second is one run.")
def test_f2_three_events_of_one_pull_request(inbox: Any) -> None:
    rule = {
        "on": {"type": "pull_request", "action": ["opened", "labeled", "synchronize"], "any": ["pi:review"]},
        "run": {"kind": "github", "flow": "review"},
    }
    box: Inbox = inbox(rule)
    answers = [
        box.post(payloads.pull_request(action, labels=["pi:review"]), "pull_request", guid(str(digit))).told
        for digit, action in enumerate(["opened", "labeled", "synchronize"], 1)
    ]
    survivor = {"status": "coalesced", "job": f"gh-{GUID}"}
    assert answers == [QUEUED, (202, survivor), (202, survivor)]
    assert box.jobs() == [f"gh-{GUID}"]
    assert [one.verdict for one in box.deliveries(3)] == ["queued", "coalesced", "coalesced"]


@pytest.mark.example("ch8 F10 receiver", "What is authentic is never answered 4xx, so that no forge gives up the hook.")
def test_f10_what_a_forge_is_told(inbox: Any, logs: Logs) -> None:
    box: Inbox = inbox(COMMENT)
    unmatched = box.post(payloads.issue_comment("hello"), "issue_comment")
    stranger = box.post(payloads.issue_comment(association="NONE"), "issue_comment", guid("2"))
    forged = box.post(payloads.issue_comment(), "issue_comment", guid("3"), x_hub_signature_256="sha256=00")
    assert [unmatched.status, stranger.status, forged.status] == [204, 204, 401]
    assert dropped(logs) == [Drop.NO_TRIGGER_PHRASE, Drop.AUTHOR_NOT_ALLOWED]
    [told] = [one for one in logs if one["event"] == "delivery_refused"]
    assert (told["status"], told["error"], told["delivery"]) == (401, "invalid signature", guid("3"))


def test_an_event_is_one_round_trip_and_one_publish(inbox: Any, tmp_path: Path) -> None:
    """Beside the words of tickets to those who watch, which go out many at a time and can be turned off."""
    (tmp_path / "celeryconfig.py").write_text("task_send_sent_event = False\n")
    variables = {"PI_CELERY_CONFIG": str(tmp_path / "celeryconfig.py")}
    box: Inbox = inbox(label(), celery=True, variables=variables)
    box.post(payloads.LABELED)
    until(lambda: box.published, "the first ticket")
    with round_trips() as asked:
        assert box.post(payloads.issues(number=8), delivery=guid("2")).told == QUEUED
        until(lambda: len(box.published) == 2, "the second ticket")
    assert asked.times == 2
    assert box.client.llen(f"pi:{QUEUE}") == 2


def test_rules_of_one_forge_take_no_event_of_another(inbox: Any, logs: Logs) -> None:
    box: Inbox = inbox(label(kind="gitlab"))
    assert box.post(payloads.LABELED).told == DROPPED
    assert dropped(logs) == [Drop.NO_ALLOWLISTED_LABEL]

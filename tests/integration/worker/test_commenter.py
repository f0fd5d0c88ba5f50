"""The comments on items, from the end of a job to the one that stands there, whoever is killed or hangs in between."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn, cast

import pytest

from pidispatch.config.clock import SystemClock
from pidispatch.forges.protocol import Account
from pidispatch.jobs.endings import cancelled_record
from pidispatch.jobs.rows import Acquired
from pidispatch.runs.comments import FAILED, marker
from pidispatch.values.errors import ConfigError, DispatchError, InfraError, RateLimited
from pidispatch.values.forge import JobKind
from pidispatch.values.job import ForgeJob, Target
from pidispatch.values.outcome import Completed, InfraFailed, Outcome, Refused
from pidispatch.values.reason import Reason
from pidispatch.values.record import RunRecord
from pidispatch.worker.commenter import Commenter
from pidispatch.worker.delivery import End
from pidispatch.worker.hook import Recorder
from pidispatch.worker.orders import Orders
from pidispatch.worker.sweeper import Sweeper
from tests.integration.worker.bench import LIMITS, QUEUE, Bench
from tests.support.clock import FakeClock
from tests.support.ends import NOW, record_of, result_of
from tests.support.oneshots import fired_by, rule

BROKEN = InfraFailed(reason=Reason.INFRA, cause="exit-1", detail="a private text")
ABSENT = Refused(reason=Reason.JOB_IMAGE_MISSING, detail="there is no image 'acme/x:1' on this engine")
HELD = Refused(reason=Reason.SOFT_HOLD, cause="day", detail="new starts are held")
WAIT_S = 30
Logs = list[dict[str, object]]


@dataclass
class Item:
    """The issue `acme/web#40` at a forge. What befalls one who comments there is told by `befalls`, call by call."""

    comments: list[str] = field(default_factory=list)
    befalls: list[Exception | None] = field(default_factory=list)
    asked: list[datetime] = field(default_factory=list)
    posting: Callable[[], None] = lambda: None
    posted: Callable[[], None] = lambda: None

    def comment(self, repo: str, target: Target, text: str, marker: str, since: datetime) -> None:
        """Leave one, as an account does."""
        assert (repo, target.type, target.number) == ("acme/web", "issue", 40)
        assert marker in text
        self.asked.append(since)
        if (fault := self.befalls.pop(0) if self.befalls else None) is not None:
            raise fault
        if any(marker in one for one in self.comments):
            return
        self.posting()
        self.comments.append(text)
        self.posted()


class Desk:
    """A worker whose records are commented on."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.item = Item()
        self.clock = FakeClock(NOW)
        self.nudges = 0
        self.commenter = self.another()
        bench.recorder = Recorder(bench.store, bench.records, comment=self.commenter)

    def another(self, name: str = "build-1", accounts: Callable[[JobKind], Any] | None = None) -> Commenter:
        """A commenter of a worker of this name."""
        found = accounts or (lambda _: cast(Account, self.item))
        commenter = Commenter(self.bench.store, found, LIMITS, self.clock, name)
        commenter.nudge = self._nudged
        return commenter

    def _nudged(self) -> None:
        self.nudges += 1

    def submit(self, job_id: str = "gh-1") -> ForgeJob:
        """Accept a job about the item."""
        job = fired_by(rule(), 0, job_id, oneshot=None)
        assert self.bench.store.submit(job, queue=QUEUE).status == "submitted"
        return job

    def ends(self, outcome: Outcome, job_id: str = "gh-1", *, spent: bool = False) -> End:
        """Let the attempt at it end so."""
        self.bench.ended_with(outcome, spent=spent)
        return self.bench.deliver(job_id).end

    def due(self, *jobs: str) -> None:
        """The time of these has come, and no lease is left."""
        for job_id in jobs:
            self.bench.client.zadd("pi:comments:due", {job_id: 1}, xx=True)
            self.bench.client.delete(f"pi:comment:lock:{job_id}")

    def sweep(self, job_id: str = "gh-1") -> None:
        """Write the record that is missing."""
        self.bench.client.zadd("pi:jobs:unrecorded", {job_id: 1})
        Sweeper(self.bench.store, lambda _: None, self.bench.recorder)()

    @property
    def noted(self) -> list[str]:
        """Jobs of which something waits to be said."""
        return self.bench.store.remarks_due()


@pytest.fixture
def desk(bench: Bench) -> Desk:
    return Desk(bench)


def told(logs: Logs) -> list[dict[str, object]]:
    """What was logged of comments."""
    return [{name: one[name] for name in one if name != "log_level"} for one in logs if "comment" in str(one["event"])]


def test_a_refusal_leaves_one_comment_in_its_exact_words(desk: Desk, logs: Logs) -> None:
    desk.submit()
    assert desk.ends(ABSENT) is End.RETURNED
    assert (desk.nudges, desk.item.comments) == (1, []), "the job's own thread asks nobody"
    desk.commenter.post()
    [said] = desk.item.comments
    assert "There is no image 'acme/x:1' on this engine." in said
    assert said.endswith(f"The job was not run.\n\n{marker('gh-1')}")
    assert desk.item.asked == [NOW - timedelta(hours=1)]
    desk.commenter.post()
    assert (len(desk.item.asked), desk.noted) == (1, [])
    assert told(logs) == [{"event": "comment_posted", "jobId": "gh-1"}]


def test_a_completed_job_and_an_attempt_that_another_one_follows_leave_none(desk: Desk, logs: Logs) -> None:
    for job_id in ("gh-1", "gh-2"):
        desk.submit(job_id)
    assert desk.ends(Completed(), "gh-1", spent=True) is End.RETURNED
    assert desk.ends(BROKEN, "gh-2", spent=True) is End.AGAIN
    assert (desk.noted, desk.nudges, told(logs)) == ([], 0, [])
    # The second one is the last.
    assert desk.ends(BROKEN, "gh-2", spent=True) is End.FAILED
    desk.commenter.post()
    [said] = desk.item.comments
    assert said.startswith(f"pi-dispatch: {FAILED}")
    assert "private" not in said


def test_the_record_of_an_earlier_attempt_that_is_written_late_says_nothing(desk: Desk) -> None:
    desk.submit()
    desk.bench.ended_with(BROKEN)
    delivery = desk.bench.deliverer("gh-1", desk.bench.row("gh-1").gen)
    delivery.release()
    assert not desk.bench.row("gh-1").recorded
    desk.sweep()
    assert desk.bench.row("gh-1").recorded
    assert desk.noted == []


def test_a_record_of_an_attempt_before_the_last_says_nothing(desk: Desk) -> None:
    job = desk.submit()
    assert desk.ends(BROKEN, spent=True) is End.AGAIN
    assert desk.ends(BROKEN, spent=True) is End.FAILED
    desk.bench.client.delete("pi:comment:gh-1", "pi:comments:due")
    desk.commenter(RunRecord.of(job, result_of(BROKEN), "build-1"), job)
    assert desk.noted == []


def test_a_job_that_was_lost_with_its_worker_is_spoken_of_by_who_sweeps(desk: Desk) -> None:
    desk.submit()
    taken = desk.bench.store.acquire("gh-1", 0, "gone#engine#1")
    assert isinstance(taken, Acquired)
    desk.bench.store.spend(taken.lease)
    desk.bench.client.delete("pi:job:lock:gh-1")
    desk.bench.client.zadd("pi:jobs:active", {"gh-1": 1})
    assert desk.bench.store.sweep(rest=False).lost == ("gh-1",)
    desk.sweep()
    desk.commenter.post()
    [said] = desk.item.comments
    assert said.startswith(f"pi-dispatch: {FAILED}")


def test_a_job_that_is_cancelled_while_it_waits_is_spoken_of(desk: Desk) -> None:
    desk.submit()
    Orders(desk.bench.store, desk.bench.leases, desk.bench.recorder, "build-1").cancel_waiting("gh-1")
    job = desk.submit("gh-2")
    elsewhere = cancelled_record(job, desk.bench.row("gh-2"), datetime.now(UTC), "elsewhere")
    assert desk.bench.store.cancel("gh-2", elsewhere).changed
    desk.sweep("gh-2")
    desk.commenter.post()
    assert ["An operator cancelled this job" in one for one in desk.item.comments] == [True, True]


def test_a_record_that_is_written_a_second_time_says_nothing_twice(desk: Desk) -> None:
    job = desk.submit()
    desk.ends(HELD)
    desk.commenter.post()
    record = desk.bench.records.find("gh-1")
    assert record is not None
    for _ in range(2):
        desk.bench.recorder.ended(record, job, HELD)
        desk.due("gh-1")
        desk.commenter.post()
    assert (len(desk.item.comments), desk.noted) == (1, [])


def test_a_server_that_lost_its_data_has_nothing_said_twice(desk: Desk) -> None:
    job = desk.submit()
    desk.ends(HELD)
    desk.commenter.post()
    record = desk.bench.records.find("gh-1")
    assert record is not None
    desk.bench.forget()
    desk.clock.instant += timedelta(days=3)
    desk.commenter(record, job)
    desk.commenter.post()
    assert len(desk.item.comments) == 1
    assert desk.item.asked[0] == desk.item.asked[1], "it looks as far back as before"


def test_a_job_on_a_folder_is_spoken_of_in_the_log(desk: Desk, logs: Logs) -> None:
    outcomes: list[Outcome] = [HELD, Completed(), BROKEN]
    for number, outcome in enumerate(outcomes):
        desk.bench.submit(f"local-{number}")
        desk.ends(outcome, f"local-{number}")
    assert desk.noted == []
    assert told(logs) == [{"event": "comment", "jobId": "local-0", "reason": "soft-hold"}]
    assert desk.ends(BROKEN, "local-2") is End.FAILED
    assert told(logs)[1:] == [{"event": "comment", "jobId": "local-2", "reason": "infra"}]
    desk.commenter(record_of("local-9", HELD))
    assert [one["jobId"] for one in told(logs)[2:]] == ["local-9"]
    assert not list(desk.bench.client.scan_iter("pi:comment*"))


def test_of_two_workers_at_once_one_posts(desk: Desk) -> None:
    desk.submit()
    desk.ends(HELD)
    inside, go_on = threading.Event(), threading.Event()

    def hang() -> None:
        inside.set()
        assert go_on.wait(WAIT_S)

    desk.item.posting = hang
    first = threading.Thread(target=desk.commenter.post)
    first.start()
    assert inside.wait(WAIT_S)
    desk.another("build-2").post()
    assert desk.item.comments == []
    go_on.set()
    first.join(WAIT_S)
    assert (len(desk.item.comments), len(desk.item.asked), desk.noted) == (1, 1, [])


class Killed(BaseException):
    """What no net catches."""


def test_killed_after_the_post_the_next_worker_finds_it_and_posts_none(desk: Desk, logs: Logs) -> None:
    desk.submit()
    desk.ends(HELD)

    def die() -> NoReturn:
        raise Killed

    desk.item.posted = die
    with pytest.raises(Killed):
        desk.commenter.post()
    other = desk.another("build-2")
    other.post()
    assert len(desk.item.asked) == 1, "the one that had it may still be at it"
    desk.due("gh-1")
    other.post()
    assert (len(desk.item.comments), len(desk.item.asked), desk.noted) == (1, 2, [])
    assert told(logs) == [{"event": "comment_posted", "jobId": "gh-1"}]


def test_a_forge_that_fails_is_asked_again_less_and_less_often_and_in_the_end_no_more(desk: Desk, logs: Logs) -> None:
    desk.submit()
    desk.ends(HELD)
    desk.item.befalls = [InfraError("bad gateway at /srv", "forge-unanswered")] * 9
    for _ in range(8):
        desk.commenter.post()
        assert desk.noted == []
        desk.due("gh-1")
    delays = [one["delayMs"] for one in told(logs)]
    assert delays == [60_000, 120_000, 240_000, 480_000, 960_000, 1_920_000, 3_600_000, 3_600_000]
    assert told(logs)[0] == {
        "event": "comment_delayed",
        "jobId": "gh-1",
        "cause": "forge-unanswered",
        "delayMs": 60_000,
    }
    # It was taken first a day ago, but for less than the pause that is next.
    since = int(desk.bench.client.hget("pi:comment:gh-1", "first"))
    desk.bench.client.hset("pi:comment:gh-1", "first", since - 86_400_000 + 3_000_000)
    desk.commenter.post()
    assert told(logs)[-1] == {
        "event": "comment_given_up",
        "jobId": "gh-1",
        "cause": "forge-unanswered",
        "tries": 9,
    }
    desk.due("gh-1")
    desk.commenter.post()
    assert (desk.item.comments, len(desk.item.asked), desk.noted) == ([], 9, [])


@pytest.mark.parametrize(("left_s", "delay_ms"), [(900, 900_000), (5, 60_000), (-5, 60_000), (9_999, 3_600_000)])
def test_a_used_up_rate_limit_is_waited_for_by_all_comments_for_that_forge(
    desk: Desk, logs: Logs, left_s: int, delay_ms: int
) -> None:
    for number in (1, 2):
        desk.submit(f"gh-{number}")
        desk.ends(HELD, f"gh-{number}")
    desk.item.befalls = [RateLimited("no more", NOW + timedelta(seconds=left_s))]
    desk.commenter.post()
    assert len(desk.item.asked) == 1
    assert told(logs) == [
        {"event": "comment_delayed", "jobId": f"gh-{number}", "cause": "forge-rate-limited", "delayMs": delay_ms}
        for number in (1, 2)
    ]
    desk.due("gh-1", "gh-2")
    desk.commenter.post()
    assert len(desk.item.comments) == 2


def test_a_forge_that_refuses_is_asked_no_more(desk: Desk, logs: Logs) -> None:
    for number in (1, 2):
        desk.submit(f"gh-{number}")
        desk.ends(HELD, f"gh-{number}")
    desk.item.befalls = [ConfigError("no such item", "forge-refused")]
    desk.commenter.post()
    assert told(logs) == [
        {"event": "comment_refused", "jobId": "gh-1", "cause": "forge-refused"},
        {"event": "comment_posted", "jobId": "gh-2"},
    ]
    desk.due("gh-1")
    desk.commenter.post()
    assert (len(desk.item.comments), desk.noted) == (1, [])


def test_a_worker_without_an_account_leaves_it_to_one_that_has_one(desk: Desk, logs: Logs) -> None:
    desk.submit()
    desk.ends(HELD)

    def none(_: JobKind) -> NoReturn:
        raise ConfigError("no credential", "setting")

    desk.another("build-2", none).post()
    assert told(logs) == [{"event": "comment_delayed", "jobId": "gh-1", "cause": "setting", "delayMs": 60_000}]
    desk.due("gh-1")
    desk.commenter.post()
    assert len(desk.item.comments) == 1


def test_a_mistake_of_our_own_is_told_by_name_and_place_and_keeps_no_other_comment(desk: Desk, logs: Logs) -> None:
    for number in (1, 2):
        desk.submit(f"gh-{number}")
        desk.ends(HELD, f"gh-{number}")
    desk.item.befalls = [RuntimeError("a private text")]
    desk.commenter.post()
    broke, delayed, posted = told(logs)
    assert str(broke.pop("at")).startswith("test_commenter.py:")
    assert broke == {"event": "comment_broke", "cause": "RuntimeError"}
    assert (delayed["event"], delayed["jobId"], delayed["cause"]) == ("comment_delayed", "gh-1", "RuntimeError")
    assert posted == {"event": "comment_posted", "jobId": "gh-2"}
    assert "private" not in str(logs)


def test_a_server_that_is_away_costs_the_comment_and_no_record(desk: Desk, logs: Logs) -> None:
    job = desk.submit()
    record = RunRecord.of(job, result_of(HELD, spent=False), "build-1")
    with desk.bench.away():
        assert desk.bench.recorder.ended(record, job, HELD) is True
        with pytest.raises(InfraError):
            desk.commenter.post()
    assert told(logs) == [{"event": "comment_unstored", "jobId": "gh-1", "cause": "store-unreachable"}]
    assert desk.bench.records.find("gh-1") is not None


def test_without_a_row_nobody_knows_the_item(desk: Desk, logs: Logs) -> None:
    job = desk.submit()
    record = RunRecord.of(job, result_of(BROKEN), "build-1", 2)
    desk.bench.forget()
    desk.commenter(record)
    assert told(logs) == [{"event": "comment_unaddressed", "jobId": "gh-1", "reason": "infra"}]
    # Who ran it knows it: no other attempt comes of a row that is gone.
    desk.commenter(record, job)
    desk.commenter.post()
    assert len(desk.item.comments) == 1


def test_a_row_that_cannot_be_read_is_spoken_of_nowhere(desk: Desk, logs: Logs) -> None:
    desk.submit()
    desk.bench.client.hset("pi:job:gh-1", "data", "{}")
    assert desk.bench.deliver("gh-1").end is End.RETURNED
    assert told(logs) == [{"event": "comment_unstored", "jobId": "gh-1", "cause": "row-unreadable"}]


def test_it_is_said_after_the_record_and_before_the_word_that_it_stands(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[bool, bool, object]] = []

    def look(record: RunRecord, _: object, outcome: Outcome | None) -> None:
        seen.append(
            (desk.bench.records.find(record.job_id) is not None, bool(desk.bench.row("gh-1").recorded), outcome)
        )

    desk.bench.recorder = Recorder(desk.bench.store, desk.bench.records, comment=look)
    desk.submit()
    desk.ends(HELD)
    assert seen == [(True, False, HELD)]
    assert desk.bench.row("gh-1").recorded

    def full(_: RunRecord) -> NoReturn:
        raise InfraError("no room", "record-unwritable")

    monkeypatch.setattr(desk.bench.records, "add", full)
    desk.submit("gh-2")
    desk.ends(HELD, "gh-2")
    assert len(seen) == 1, "whoever writes the record says it"


def test_an_end_without_an_instant_was_now(desk: Desk) -> None:
    job = desk.submit()
    record = RunRecord.of(job, result_of(HELD), "build-1").model_copy(update={"ended_at": None})
    desk.clock.instant = NOW + timedelta(hours=5)
    desk.commenter(record, job)
    desk.commenter.post()
    assert desk.item.asked == [NOW + timedelta(hours=4)]


def test_one_that_has_no_thread_yet_only_notes(bench: Bench) -> None:
    def none(_: JobKind) -> NoReturn:
        raise DispatchError("nobody asks")

    commenter = Commenter(bench.store, none, LIMITS, SystemClock(), "build-1")
    job = fired_by(rule(), oneshot=None)
    commenter(RunRecord.of(job, result_of(HELD), "build-1"), job)
    assert bench.store.remarks_due() == ["gh-1"]

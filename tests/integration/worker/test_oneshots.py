"""Rules that fire once, from the job to its marks: the store's, and the one in the triggers file."""

import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import pytest

from pidispatch.box.engine import Engine
from pidispatch.config.clock import SystemClock
from pidispatch.jobs.endings import cancelled_record
from pidispatch.jobs.rows import Acquired, JobState
from pidispatch.runs.attempt import Attempt
from pidispatch.triggers.writer import Patience
from pidispatch.values.errors import InfraError
from pidispatch.values.job import ForgeJob
from pidispatch.values.outcome import Completed, InfraFailed, Outcome, Refused
from pidispatch.values.reason import Reason
from pidispatch.values.record import RunRecord
from pidispatch.worker.delivery import Delivery, End
from pidispatch.worker.disarmer import Disarmer
from pidispatch.worker.hook import Recorder
from pidispatch.worker.orders import Orders
from pidispatch.worker.sweeper import Sweeper
from tests.integration.worker.bench import LIMITS, QUEUE, Bench
from tests.support.ends import NOW, result_of
from tests.support.oneshots import entries_of, fired_by, identity, marked, rule, write
from tests.support.server import OwnServer
from tests.support.settings import settings_of

ENTRY = rule()
RULE = identity(ENTRY)
ROOT = Path(__file__).resolve().parents[3]
BROKEN = InfraFailed(reason=Reason.INFRA, cause="exit-1")
#: Nobody has a lock for longer than a test takes.
RESTLESS = Patience(tries=5, sleep=lambda _: None)
Logs = list[dict[str, object]]


class Post:
    """A worker with a triggers file, and the attempt of the product without an engine."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench = bench
        self.file = write(folder / "triggers.json", rule(41), ENTRY)
        (folder / "overlay" / "extensions").mkdir(parents=True, exist_ok=True)
        self.settings = settings_of(
            {
                "PI_TRIGGERS_FILE": str(self.file),
                "PI_LOGS_DIR": str(folder / "logs"),
                "PI_STATE_DIR": str(folder / "s"),
                # What ends an attempt for real, before it asks for an engine.
                "PI_GLOBAL_PI_DIR": str(folder / "overlay"),
            }
        )

        self.disarmer = Disarmer(bench.store, self.file, RESTLESS)
        bench.recorder = Recorder(bench.store, bench.records, self.disarmer)
        self.attempt_for_real()

    def attempt_for_real(self) -> None:
        """Let the next attempts be the product's; none may ask for an engine."""
        cases = self.bench.cases
        self.bench.deliverer.attempt = Attempt(
            self.settings,
            _no_engine,
            cases.finish,
            LIMITS,
            SystemClock(),
            {},
            marked=cases.marked,
            spend=cases.spend,
            book=cases.book,
            records=self.bench.records,
        )

    def attempt_that_ends(self, outcome: Outcome) -> None:
        """Let the next attempts climb the ladder's first rungs and its last one, and then run to this end."""
        real: Any = self.bench.deliverer.attempt

        def act(job: ForgeJob, abort: Any) -> Any:
            mark = self.bench.cases.marked(job)
            if mark is not None and mark.job_id != job.id:
                return real(job, lambda _: None, abort)
            _, refused = self.bench.cases.spend(job, NOW)
            result = result_of(refused or outcome)
            self.bench.cases.finish(job, result)
            return result

        self.bench.attempt(act)

    def submit(self, job_id: str = "gh-1", **more: Any) -> ForgeJob:
        """Accept a job of the rule."""
        job = fired_by(ENTRY, 1, job_id, **more)
        assert self.bench.store.submit(job, queue=QUEUE).status == "submitted"
        return job

    def run(self, job_id: str = "gh-1") -> Delivery:
        """Deliver its ticket, with all that comes after."""
        return self.bench.deliver(job_id)

    def record(self, job_id: str = "gh-1") -> RunRecord:
        """What is on the disk."""
        found = self.bench.records.find(job_id)
        assert found is not None
        return found

    @property
    def mark(self) -> Any:
        """The mark in the file."""
        return entries_of(self.file)[1]["on"].get("disarmed")

    @property
    def store_mark(self) -> str | None:
        """Which job the store's mark names."""
        found = self.bench.store.spent([RULE]).get(RULE)
        return None if found is None else found.job_id


def _no_engine() -> Engine:
    raise AssertionError("the engine was asked")


@pytest.fixture
def post(bench: Bench, tmp_path: Path) -> Post:
    return Post(bench, tmp_path)


def told(logs: Logs, prefix: str = "trigger_") -> list[dict[str, object]]:
    """What was said of triggers."""
    return [one for one in logs if str(one["event"]).startswith(prefix)]


@pytest.mark.example("ch1 E6", "the first job of a rule that fires once spends it, a second one is refused")
def test_from_the_job_to_both_marks_and_the_refusal_of_the_next(post: Post, logs: Logs) -> None:
    job = post.submit()
    post.submit("gh-2")
    assert post.run().end is End.RETURNED
    first = post.record()
    assert (first.outcome, first.reason, first.budget_reserved, first.charged) == (
        "policy",
        "config-refused",
        False,
        {},
    )
    assert (first.trigger_type, first.trigger_index) == ("issue", 1)
    assert first.ended_at is not None
    assert post.mark == {"at": first.ended_at.isoformat().replace("+00:00", "Z"), "jobId": "gh-1"}
    assert entries_of(post.file) == [rule(41), marked(ENTRY, post.mark)]
    assert post.store_mark == "gh-1"
    row = post.bench.row("gh-1")
    assert (row.state, row.recorded, row.spend_ms) == (JobState.COMPLETED, True, None)
    assert post.run("gh-2").end is End.RETURNED
    second = post.record("gh-2")
    assert (second.outcome, second.reason, second.budget_reserved) == ("policy", "once-already-spent", False)
    assert post.mark["jobId"] == post.store_mark == "gh-1"
    assert [(one["event"], one["jobId"], one["triggerIndex"]) for one in told(logs)] == [
        ("trigger_disarmed", "gh-1", 1),
        ("trigger_already_disarmed", "gh-2", 1),
    ]
    assert [
        {name: one[name] for name in one if name not in ("event", "log_level")} for one in told(logs, "refused_")
    ] == [
        {"jobId": "gh-1", "kind": "github", "reason": "config-refused", "cause": "overlay-not-served"},
        {"jobId": "gh-2", "triggerIndex": 1},
    ]
    assert not list(post.bench.client.scan_iter("pi:budget:*"))
    assert post.bench.failures == 0
    assert job.target.title not in str(logs)


@pytest.mark.example("ch2 EX-29", "attempt 1 of a one-shot fails: marked; attempt 2 runs; another delivery is refused")
def test_the_second_attempt_of_the_job_that_spent_the_rule_runs(post: Post) -> None:
    post.submit()
    post.submit("gh-2")
    post.attempt_that_ends(BROKEN)
    assert post.run().end is End.AGAIN
    assert (post.mark["jobId"], post.store_mark) == ("gh-1", "gh-1")
    assert post.run("gh-2").end is End.RETURNED
    assert post.record("gh-2").reason == "once-already-spent"
    post.attempt_for_real()
    post.run()
    # Past the mark, to the next thing that stands against it.
    assert (post.record().attempt, post.record().reason) == (2, "config-refused")


@pytest.mark.example("ch1 E6", "of two jobs of a one-shot that climb at the same time the first to spend runs")
def test_a_job_that_finds_the_rule_claimed_at_its_last_rung_is_refused_and_counts_nothing(post: Post) -> None:
    post.submit()
    post.submit("gh-2")

    def act(job: ForgeJob, abort: Any) -> Any:
        # Both are past the rung that looks for a mark by now.
        post.attempt_that_ends(Completed())
        post.run("gh-2")
        charged, refused = post.bench.cases.spend(job, NOW)
        assert (charged, isinstance(refused, Refused)) == ({}, True)
        result = result_of(refused or Completed())
        post.bench.cases.finish(job, result)
        return result

    post.bench.attempt(act)
    post.run()
    assert (post.record().reason, post.record("gh-2").outcome) == ("once-already-spent", "completed")
    assert (post.mark["jobId"], post.store_mark) == ("gh-2", "gh-2")
    assert post.bench.row("gh-1").spend_ms is None


def test_a_mark_in_the_store_alone_names_the_first_job_in_the_file_too_and_its_retry_runs(post: Post) -> None:
    post.submit()
    post.submit("gh-2")
    post.attempt_that_ends(BROKEN)
    lock = post.file.with_name("triggers.json.lock")
    lock.touch()
    post.run()
    assert entries_of(post.file)[1] == ENTRY
    lock.unlink()
    post.run("gh-2")
    assert post.record("gh-2").reason == "once-already-spent"
    assert post.mark["jobId"] == "gh-1"
    post.attempt_for_real()
    post.run()
    assert post.record().reason == "config-refused"


def test_a_read_only_file_is_told_once_and_the_stores_mark_holds(post: Post, logs: Logs) -> None:
    post.file.chmod(0o444)
    before = post.file.read_bytes()
    for number in (1, 2, 3):
        post.submit(f"gh-{number}")
    for number in (1, 2, 3):
        post.run(f"gh-{number}")
    reasons = [post.record(f"gh-{number}").reason for number in (1, 2, 3)]
    assert reasons == ["config-refused", "once-already-spent", "once-already-spent"]
    assert (post.store_mark, post.file.read_bytes()) == ("gh-1", before)
    assert [(one["event"], one["jobId"], one["reason"]) for one in told(logs)] == [
        ("trigger_disarm_failed", "gh-1", "triggers-read-only")
    ]
    # A receiver of whatever file hears it from the store.
    assert post.bench.store.submit(fired_by(ENTRY, 1, "gh-4"), queue=QUEUE).status == "spent"


@pytest.mark.parametrize(
    ("text", "event", "reason"),
    [
        (None, "trigger_disarm_unavailable", None),
        ("{", "trigger_disarm_failed", "operator-file"),
        ('{"triggers": []}', "trigger_disarm_failed", "entry-changed"),
    ],
)
def test_a_file_without_the_entry_keeps_no_job_from_its_record(
    post: Post, logs: Logs, text: str | None, event: str, reason: str | None
) -> None:
    post.submit()
    if text is None:
        post.file.unlink()
    else:
        post.file.write_text(text)
    post.run()
    assert post.record().reason == "config-refused"
    assert post.bench.row("gh-1").recorded
    assert [(one["event"], one.get("reason"), one["triggerIndex"]) for one in told(logs)] == [(event, reason, 1)]
    assert not post.file.exists() if text is None else post.file.read_text() == text


def test_a_job_of_a_rule_that_fires_again_is_no_business_of_the_files(post: Post, logs: Logs) -> None:
    job = fired_by(ENTRY, 1)
    again = job.matched.model_copy(update={"once": None})
    job = job.model_copy(update={"trigger": job.trigger.model_copy(update={"matched": again}), "oneshot": None})
    post.bench.store.submit(job, queue=QUEUE)
    post.run()
    assert (post.record().reason, post.mark, post.store_mark, told(logs)) == ("config-refused", None, None, [])


def test_a_server_that_lost_its_data_keeps_no_rule_from_its_mark(post: Post, logs: Logs) -> None:
    job = fired_by(ENTRY, 1)
    record = RunRecord.of(job, result_of(BROKEN), "build-1")
    post.disarmer(record)
    assert (post.mark, told(logs)) == (None, []), "nobody knows what that was"
    post.disarmer(record, job)
    assert post.mark["jobId"] == "gh-1"
    assert [one["event"] for one in told(logs)] == ["trigger_disarmed"]


def test_a_one_shot_without_a_name_in_the_store_is_marked_in_the_file(post: Post) -> None:
    post.submit(oneshot=None)
    post.run()
    assert post.mark["jobId"] == "gh-1"
    assert post.store_mark is None


def test_a_repetition_that_an_operator_asked_for_does_not_spend_a_rule_that_is_armed_anew(post: Post) -> None:
    post.submit("retry-1", retry_of="gh-1")
    post.run("retry-1")
    assert post.record("retry-1").reason == "config-refused"
    assert (post.mark, post.store_mark) == (None, None)


def test_a_job_on_a_folder_costs_no_question(post: Post, logs: Logs) -> None:
    post.bench.submit()
    post.bench.ended_with(Completed())
    post.bench.deliver()
    assert told(logs) == []


def test_a_full_disk_spends_the_rule_all_the_same(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: RunRecord) -> NoReturn:
        raise InfraError("no room", "record-unwritable")

    post.submit()
    monkeypatch.setattr(post.bench.records, "add", full)
    post.run()
    assert post.bench.records.find("gh-1") is None
    assert not post.bench.row("gh-1").recorded
    assert (post.mark["jobId"], post.store_mark) == ("gh-1", "gh-1")


def test_the_mark_comes_after_the_record_and_before_the_word_that_both_stand(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    post.submit()
    seen: list[tuple[str, bool, bool]] = []

    def look(record: RunRecord, _: object) -> None:
        found = post.bench.records.find(record.job_id) is not None
        seen.append(("disarm", found, bool(post.bench.row(record.job_id).recorded)))

    post.bench.recorder = Recorder(post.bench.store, post.bench.records, look)
    post.run()
    assert seen == [("disarm", True, False)]
    assert post.bench.row("gh-1").recorded


def test_a_sweep_writes_the_record_that_is_missing_and_the_mark_with_it(post: Post) -> None:
    post.submit()
    taken = post.bench.store.acquire("gh-1", 0, "gone#engine#1")
    assert isinstance(taken, Acquired)
    post.bench.store.spend(taken.lease)
    post.bench.client.delete("pi:job:lock:gh-1")
    post.bench.client.zadd("pi:jobs:active", {"gh-1": 1})
    # The end that no worker told, and then its record.
    assert post.bench.store.sweep(rest=False).lost == ("gh-1",)
    assert (post.mark, post.store_mark) == (None, "gh-1")
    post.bench.client.zadd("pi:jobs:unrecorded", {"gh-1": 1})
    _sweep(post)
    assert post.record().reason == "worker-lost"
    assert post.mark["jobId"] == post.store_mark == "gh-1"


def test_a_job_that_is_cancelled_while_it_waits_spends_its_rule(post: Post) -> None:
    post.submit()
    Orders(post.bench.store, post.bench.leases, post.bench.recorder, "build-1").cancel_waiting("gh-1")
    assert post.record().reason == "operator-cancel"
    assert post.mark["jobId"] == post.store_mark == "gh-1"


def test_a_cancel_whose_record_a_sweep_writes_does_so_too(post: Post) -> None:
    job = post.submit()
    record = cancelled_record(job, post.bench.row("gh-1"), datetime.now(UTC), "elsewhere")
    assert post.bench.store.cancel("gh-1", record).changed
    assert (post.mark, post.store_mark) == (None, "gh-1")
    post.bench.client.zadd("pi:jobs:unrecorded", {"gh-1": 1})
    _sweep(post)
    assert post.mark["jobId"] == "gh-1"


def test_a_row_that_is_gone_or_a_store_that_is_away_ends_nothing(post: Post, logs: Logs) -> None:
    post.submit()
    post.run()
    record = post.record()
    post.bench.forget()
    post.disarmer(record)
    with post.bench.away():
        post.disarmer(record)
    assert [(one["event"], one.get("reason")) for one in told(logs)] == [
        ("trigger_disarmed", None),
        ("trigger_disarm_failed", "store-unreachable"),
    ]


def test_a_mistake_of_our_own_is_told_by_its_name_alone(
    post: Post, logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> NoReturn:
        raise RuntimeError("a private text")

    post.submit()
    monkeypatch.setattr("pidispatch.worker.disarmer.disarm", breaks)
    post.run()
    assert [(one["event"], one["reason"]) for one in told(logs)] == [("trigger_disarm_failed", "RuntimeError")]
    assert "private" not in str(told(logs))
    assert post.bench.row("gh-1").recorded


def test_jobs_of_one_worker_that_end_at_once_do_not_use_up_each_others_tries(post: Post, logs: Logs) -> None:
    entries = [rule(number) for number in range(1, 9)]
    write(post.file, *entries)
    records = []
    for index, entry in enumerate(entries):
        job = fired_by(entry, index, f"gh-{index}")
        post.bench.store.submit(job, queue=QUEUE)
        records.append(RunRecord.of(job, result_of(BROKEN), "build-1"))
    # Not one sleep: they wait for each other, not for the file's lock.
    disarmer = Disarmer(post.bench.store, post.file, Patience(tries=1))
    gate = threading.Barrier(len(records))

    def end(record: RunRecord) -> None:
        gate.wait()
        disarmer(record)

    threads = [threading.Thread(target=end, args=(record,)) for record in records]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one["event"] for one in told(logs)] == ["trigger_disarmed"] * len(records)
    assert [one["on"]["disarmed"]["jobId"] for one in entries_of(post.file)] == [f"gh-{n}" for n in range(8)]


def _sweep(post: Post) -> None:
    Sweeper(post.bench.store, lambda _: None, post.bench.recorder)()


#: Marks every second entry of a file, beginning with its argument, once it is told to.
_MARKER = """
import sys
from pathlib import Path
from pidispatch.triggers.disarm import Mark, disarm
from pidispatch.triggers.writer import Patience
from tests.support.oneshots import fired_by, rule
file, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for index in range(first, count, 2):
    job = fired_by(rule(index + 1), index, f"gh-{index}")
    told = disarm(file, job, Mark("2026-01-01T00:00:00Z", job.id), Patience(10_000, 0.0, 0.001))
    assert told.outcome == "disarmed", told
"""


def test_two_processes_that_mark_entries_of_one_file_at_once_lose_none(tmp_path: Path) -> None:
    count = 20
    file = write(tmp_path / "triggers.json", *(rule(number + 1) for number in range(count)))
    processes = [_python(_MARKER, str(file), str(first), str(count)) for first in (0, 1)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        said, _ = process.communicate()
        assert (said, process.returncode) == ("", 0)
    assert [one["on"]["disarmed"]["jobId"] for one in entries_of(file)] == [f"gh-{n}" for n in range(count)]


#: A worker that runs one job and is killed when its record stands and the mark would be next, or half way through it.
_DOOMED = """
import os, signal, sys
from pathlib import Path
from pidispatch.triggers import writer
from tests.integration.worker.bench import Bench
from tests.integration.worker.test_oneshots import Post
from tests.support.server import OwnServer

class Server(OwnServer):
    url = property(lambda self: sys.argv[1])

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

server = Server.__new__(Server)
server.password = None
post = Post(Bench(server, Path(sys.argv[2])), Path(sys.argv[2]))
if sys.argv[3] == "before":
    post.disarmer._spend = die
else:
    writer._rename = die
post.run()
"""


@pytest.mark.parametrize("where", ["before", "within"])
def test_a_worker_that_is_killed_between_record_and_mark_leaves_a_record_and_an_armed_entry(
    server: OwnServer, bench: Bench, tmp_path: Path, where: str
) -> None:
    post = Post(bench, tmp_path)
    post.submit()
    process = _python(_DOOMED, server.url, str(tmp_path), where)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert post.record().reason == "config-refused"
    assert entries_of(post.file) == [rule(41), ENTRY]
    # The store knows, so that nothing fires in between.
    assert post.store_mark == "gh-1"
    assert bench.store.submit(fired_by(ENTRY, 1, "gh-2"), queue=QUEUE).status == "spent"
    lock = post.file.with_name("triggers.json.lock")
    assert lock.exists() is (where == "within")
    if where == "within":
        made = lock.stat().st_mtime - 11
        os.utime(lock, (made, made))
    # A minute later any worker finds that the word is missing.
    assert not bench.row("gh-1").recorded
    bench.client.zadd("pi:jobs:unrecorded", {"gh-1": 1})
    _sweep(post)
    assert post.mark["jobId"] == "gh-1"
    assert bench.row("gh-1").recorded
    assert not lock.exists()


def _python(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )

"""Several gates: all of them hold something for a job, or none does."""

import threading
from datetime import datetime

import pytest
from structlog.testing import capture_logs

from pidispatch.gates.chain import Entered, Gates
from pidispatch.gates.folder import FolderMutex
from pidispatch.gates.host import HostSlots
from pidispatch.values.job import Job
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason
from pidispatch.values.verdict import Admit, Defer, Verdict, Why
from tests.unit.gates.job import NOW, job

LATER = Defer(why=Why.SCOPE_BUSY, delay_ms=1)
NEVER = Refused(reason=Reason.CONFIG_REFUSED)


class Noted:
    """A gate that notes what is asked of it."""

    def __init__(self, name: str, seen: list[str], answer: Verdict | Exception | None = None) -> None:
        self.name = name
        self.seen = seen
        self.answer = answer or Admit()

    def check(self, job: Job, now: datetime) -> Verdict:
        self.seen.append(f"check {self.name} {job.id} {now:%Y}")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def release(self, job: Job) -> None:
        self.seen.append(f"release {self.name} {job.id}")


class Broken(Noted):
    """A gate that cannot be opened again."""

    def release(self, job: Job) -> None:
        super().release(job)
        raise ZeroDivisionError("private")


def test_all_gates_are_passed_in_order_and_left_in_reverse() -> None:
    seen: list[str] = []
    entered = Gates([Noted("a", seen), Noted("b", seen)]).enter(job(1), NOW)
    assert isinstance(entered, Entered)
    assert seen == ["check a local-1 2030", "check b local-1 2030"]
    for _ in range(2):
        entered.leave()
    assert seen[2:] == ["release b local-1", "release a local-1"]


@pytest.mark.parametrize("verdict", [LATER, NEVER])
def test_what_was_taken_is_given_back_before_the_answer(verdict: Defer | Refused) -> None:
    seen: list[str] = []
    gates = Gates([Noted("a", seen), Noted("b", seen), Noted("c", seen, verdict), Noted("d", seen)])
    assert gates.enter(job(1), NOW) == verdict
    assert seen[2:] == ["check c local-1 2030", "release b local-1", "release a local-1"]


def test_a_gate_that_breaks_keeps_nothing_either() -> None:
    seen: list[str] = []
    gates = Gates([Noted("a", seen), Noted("b", seen, ZeroDivisionError())])
    with pytest.raises(ZeroDivisionError):
        gates.enter(job(1), NOW)
    assert seen[1:] == ["check b local-1 2030", "release a local-1"]


def test_a_gate_that_cannot_be_opened_is_told_and_keeps_no_other_shut() -> None:
    seen: list[str] = []
    entered = Gates([Noted("a", seen), Broken("b", seen)]).enter(job(1), NOW)
    assert isinstance(entered, Entered)
    with capture_logs() as events:
        entered.leave()
    assert seen[2:] == ["release b local-1", "release a local-1"]
    told = {"event": "gate_release_failed", "jobId": "local-1", "cause": "ZeroDivisionError", "log_level": "error"}
    assert events == [told]


def test_of_many_who_leave_at_once_one_gives_back() -> None:
    seen: list[str] = []
    entered = Gates([Noted("a", seen)]).enter(job(1), NOW)
    assert isinstance(entered, Entered)
    barrier = threading.Barrier(8)

    def leave() -> None:
        barrier.wait(10)
        entered.leave()

    threads = [threading.Thread(target=leave) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert seen[1:] == ["release a local-1"]


def real(slots: int) -> tuple[Gates, HostSlots]:
    limits = Limits()
    host = HostSlots(lambda: slots, limits)
    return Gates([host, FolderMutex(limits)]), host


def test_a_job_that_meets_a_busy_folder_leaves_its_slot_to_others() -> None:
    gates, host = real(2)
    first = gates.enter(job(1), NOW)
    assert gates.enter(job(2), NOW) == Defer(why=Why.SCOPE_BUSY, delay_ms=5000)
    assert host.free() == 1
    assert isinstance(gates.enter(job(3, "/srv/other"), NOW), Entered)
    assert gates.enter(job(2), NOW) == Defer(why=Why.HOST_BUSY, delay_ms=5000)
    assert isinstance(first, Entered)
    first.leave()
    assert isinstance(gates.enter(job(2), NOW), Entered)


@pytest.mark.example("ch8 F6", "after twenty deliveries that were turned away every counter is where it began")
def test_what_is_turned_away_again_and_again_leaks_nothing() -> None:
    limits = Limits()
    host, folder = HostSlots(lambda: 1, limits), FolderMutex(limits)
    for answer in (LATER, NEVER, ZeroDivisionError()):
        gates = Gates([host, folder, Noted("last", [], answer)])
        for number in range(20):
            try:
                assert gates.enter(job(number), NOW) == answer
            except ZeroDivisionError:
                assert isinstance(answer, ZeroDivisionError)
            assert host.free() == 1
    assert folder.check(job(99), NOW) == Admit()


def test_the_instants_at_which_jobs_come_back_tell_their_cause() -> None:
    """Whoever sees only when a job wakes can tell why it sleeps; a busy machine and a busy folder share one."""
    bounds = Limits().model_dump(by_alias=False)
    waits = {name: value for name, value in bounds.items() if name.endswith(("_recheck_ms", "_base_ms"))}
    assert waits.keys() >= {"scope_busy_recheck_ms", "retry_base_ms"}
    assert waits["scope_busy_recheck_ms"] == 5_000
    assert len(set(waits.values())) == len(waits)

"""A soak is drawn from its seed alone, and holds some of everything."""

from tests.soak.plan import (
    FAULT_EVERY_S,
    FAULT_LATE_S,
    FOLDERS,
    LONGEST_S,
    MORTAL,
    WORKERS,
    Fault,
    Plan,
    Script,
    make_plan,
)

LONG: Plan = make_plan(7, 1200, 2000)


def test_the_same_seed_is_the_same_soak() -> None:
    assert make_plan(7, 1200, 2000) == LONG
    assert make_plan(8, 1200, 2000).jobs[0].id != LONG.jobs[0].id


def test_a_long_one_holds_some_of_everything() -> None:
    assert len({job.id for job in LONG.jobs}) == 2000
    assert {job.script for job in LONG.jobs} == {*Script}
    assert {job.worker for job in LONG.jobs} == {None, *WORKERS}
    assert {job.folder for job in LONG.jobs} == {*range(FOLDERS)}
    assert {fault.kind for fault in LONG.faults} == {*Fault}
    assert {fault.worker for fault in LONG.faults if fault.kind is Fault.WORKER_FROZEN} == {*WORKERS}
    assert {fault.worker for fault in LONG.faults if fault.kind is not Fault.WORKER_FROZEN} == {MORTAL}
    assert 20 < len([job for job in LONG.jobs if job.cancel_after_s is not None]) < 150


def test_jobs_come_in_order_and_within_the_time() -> None:
    instants = [job.at_s for job in LONG.jobs]

    assert instants == sorted(instants)
    assert instants[0] >= 0
    assert instants[-1] < LONG.seconds


def test_faults_follow_one_another_and_are_over_at_the_end() -> None:
    for number, fault in enumerate(LONG.faults):
        assert 0 <= fault.at_s - FAULT_EVERY_S * (number + 1) <= FAULT_LATE_S
    assert LONG.seconds - FAULT_EVERY_S < LONG.faults[-1].at_s + FAULT_LATE_S + LONGEST_S
    assert all(fault.at_s + fault.lasts_s <= LONG.seconds for fault in LONG.faults)


def test_a_calm_one_has_the_same_jobs_and_no_fault() -> None:
    calm = make_plan(7, 1200, 2000, calm=True)

    assert (calm.jobs, calm.faults) == (LONG.jobs, ())


def test_a_short_one_has_jobs_and_no_fault() -> None:
    short = make_plan(1, 20, 5)

    assert (len(short.jobs), short.faults) == (5, ())

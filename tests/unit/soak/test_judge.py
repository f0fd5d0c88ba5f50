"""The judge of the soak finds every broken promise that is planted, and none where all were kept."""

from dataclasses import replace

import pytest

from tests.soak.judge import Ask, Case, Record, RowState, Start, judge, miscounted
from tests.soak.plan import Script

FIRST = Start("a" * 64, 1, "w1", at=10.0, ended_at=12.0, code=0)
SECOND = Start("b" * 64, 2, "w2", at=20.0, ended_at=22.0, code=0)
FAILED = replace(FIRST, code=1)


def ask_of(start: Start) -> Ask:
    return Ask(start.container[:12], start.at + 0.1)


#: What each start is counted for.
DAY = {"budget:2026-05-04": 1, "budget:w:2026-05-04": 1}
#: A job that nothing disturbed.
WORKED = Case(
    id="local-1",
    script=Script.WORK,
    accepted=True,
    starts=(FIRST,),
    asks=(ask_of(FIRST),),
    records=(Record("local-1.json", "completed", None, 1, spent=True, charged={1: DAY}),),
    row=RowState("completed", recorded=True, attempt=1),
)
#: One whose first attempt failed, as it should.
RETRIED = replace(
    WORKED,
    script=Script.FLAKY,
    starts=(FAILED, SECOND),
    asks=(ask_of(FAILED), ask_of(SECOND)),
    records=(Record("local-1.json", "completed", None, 2, (1,), True, {1: DAY, 2: DAY}),),
    row=RowState("completed", recorded=True, attempt=2),
)
#: One whose worker was killed while it ran.
LOST = replace(
    WORKED,
    starts=(replace(FIRST, code=137),),
    records=(Record("local-1.json", "failed", "worker-lost", 1, spent=True, charged={1: DAY}),),
    row=RowState("failed", recorded=True, attempt=1),
)
#: One that was cancelled while it waited.
CANCELLED = replace(
    WORKED,
    starts=(),
    asks=(),
    records=(Record("local-1.json", "policy", "operator-cancel", 1, spent=False),),
    row=RowState("cancelled", recorded=True, attempt=1),
    cancelled=True,
    told_cancelled=True,
)
#: One that was refused for free.
REFUSED = replace(
    CANCELLED,
    script=Script.REFUSED,
    records=(Record("local-1.json", "policy", "config-refused", 1, spent=False),),
    row=RowState("completed", recorded=True, attempt=1),
    cancelled=False,
    told_cancelled=False,
)
#: One whose container was started and could not reach its neighbour, so that it failed by itself.
UNHEARD = replace(RETRIED, script=Script.WORK, asks=(ask_of(SECOND),))
NEVER_ACCEPTED = Case("local-1", Script.WORK, accepted=False)


def broken(case: Case) -> list[tuple[str, str]]:
    return [(one.rule, one.what) for one in judge([case]).violations]


@pytest.mark.parametrize(
    "case",
    [WORKED, RETRIED, LOST, CANCELLED, REFUSED, UNHEARD, NEVER_ACCEPTED],
    ids=["worked", "retried", "lost", "cancelled", "refused", "unheard", "never accepted"],
)
def test_nothing_is_found_where_every_promise_was_kept(case: Case) -> None:
    assert broken(case) == []


#: What is planted, by the rule that has to find it, and some words of what is said.
PLANTED = [
    ("lost", "no record", replace(WORKED, records=())),
    ("lost", "row is gone", replace(WORKED, row=None)),
    ("lost", "has not ended", replace(WORKED, row=RowState("active", recorded=False, attempt=1))),
    ("lost", "does not know", replace(WORKED, row=RowState("completed", recorded=False, attempt=1))),
    ("lost", "never accepted", replace(WORKED, accepted=False)),
    ("records", "2 records", replace(WORKED, records=(*WORKED.records, *WORKED.records))),
    ("records", "twice", replace(RETRIED, records=(replace(RETRIED.records[0], earlier=(2,)),))),
    (
        "records",
        "attempt 3 of 2",
        replace(RETRIED, records=(replace(RETRIED.records[0], attempt=3, earlier=(1, 2)),)),
    ),
    ("records", "the row about 1", replace(RETRIED, row=RowState("completed", recorded=True, attempt=1))),
    ("records", "[1] were started", replace(RETRIED, records=(replace(RETRIED.records[0], earlier=()),))),
    ("twice", "attempt 1 was started 2 times", replace(RETRIED, starts=(FAILED, replace(SECOND, attempt=1)))),
    ("twice", "asked 2 times", replace(WORKED, asks=(ask_of(FIRST), ask_of(FIRST)))),
    ("twice", "no engine started", replace(WORKED, asks=(*WORKED.asks, Ask("f" * 12, 11.0)))),
    # The one after the other, in any order in which they are told.
    ("twice", "had ended with 137", replace(RETRIED, starts=(SECOND, replace(FAILED, code=137)))),
    ("twice", "had ended with 0", replace(RETRIED, starts=(FIRST, SECOND))),
    ("twice", "had asked", replace(RETRIED, script=Script.WORK)),
    ("twice", "ran", replace(RETRIED, starts=(replace(FAILED, ended_at=21.0), SECOND))),
    ("twice", "ran", replace(RETRIED, starts=(replace(FAILED, ended_at=None, code=None), SECOND))),
    ("truth", "no container", replace(WORKED, asks=())),
    ("truth", "no container", replace(WORKED, starts=(replace(FIRST, code=137),))),
    ("truth", "nothing was spent", replace(WORKED, records=(replace(WORKED.records[0], spent=False),))),
    ("truth", "the row says failed", replace(WORKED, row=RowState("failed", recorded=True, attempt=1))),
    ("truth", "refused for free", replace(REFUSED, starts=(FIRST,))),
    ("cancel", "was told", replace(WORKED, cancelled=True, told_cancelled=True)),
    ("cancel", "while it waited", replace(CANCELLED, starts=(FIRST,))),
    ("end", "work ended as failed infra", replace(LOST, records=(replace(LOST.records[0], reason="infra"),))),
    ("end", "operator-cancel", replace(CANCELLED, cancelled=False)),
    (
        "end",
        "flaky ended as policy runner-policy",
        replace(RETRIED, records=(Record("", "policy", "runner-policy", 2),)),
    ),
]


@pytest.mark.parametrize(("rule", "words", "case"), PLANTED, ids=[f"{rule}: {words}" for rule, words, _ in PLANTED])
def test_what_is_planted_is_found(rule: str, words: str, case: Case) -> None:
    found = broken(case)

    assert [what for name, what in found if name == rule and words in what], found


def test_a_failure_of_the_surroundings_is_no_reason_to_ask_a_third_time() -> None:
    third = Start("c" * 64, 3, "w1", at=30.0, ended_at=32.0, code=1)
    both_failed = replace(SECOND, code=1)
    case = replace(RETRIED, script=Script.FAIL, starts=(FAILED, both_failed, third))

    assert ("records", "attempts [3] were started and stand in no record") in broken(case)


def test_jobs_are_counted_once_a_rule() -> None:
    other = replace(WORKED, id="local-2", records=(), row=None)
    verdict = judge([WORKED, other, replace(other, id="local-3")])

    assert (verdict.count("lost"), verdict.count("twice")) == (2, 0)
    assert {one.job_id for one in verdict.violations} == {"local-2", "local-3"}


@pytest.mark.parametrize("charged", [{}, {1: {}}, {1: DAY | {"budget:2026-05-04": 2}}])
def test_a_start_that_is_not_counted_once_in_every_window_is_found(charged: dict[int, dict[str, int]]) -> None:
    case = replace(WORKED, records=(replace(WORKED.records[0], charged=charged),))
    assert [rule for rule, _ in broken(case)] == ["money"]


def test_windows_count_what_all_records_say() -> None:
    records = [*WORKED.records, *RETRIED.records, *REFUSED.records]
    right = {"budget:2026-05-04": 3, "budget:w:2026-05-04": 3}
    assert list(miscounted(right, records)) == []
    assert list(miscounted({"budget:2026-05-04": 4}, records)) == [
        "budget:2026-05-04 counts 4, the records 3",
        "budget:w:2026-05-04 counts 0, the records 3",
    ]

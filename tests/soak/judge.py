"""What a soak must have kept, job by job: judged from what engines and neighbours saw, records and rows beside it.

Pure: it takes what was seen and tells what was broken. Nothing here comes from what the workers say of themselves, but
for the records and rows that are judged.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from tests.soak.plan import Script

#: Attempts that a job may have.
MOST_ATTEMPTS: Final = 2
#: Reasons with which any job may end, because of what went wrong around it.
_BY_FAULT: Final = ("worker-abort", "worker-lost")
_CANCEL: Final = "operator-cancel"
_TERMINAL: Final = ("completed", "failed", "cancelled")
#: Reasons with which a job ends that nothing disturbs; `None` stands for `completed`.
_ENDS: Final[dict[Script, tuple[str | None, ...]]] = {
    Script.WORK: (None,),
    # Where its worker dies after the first attempt ended, nobody starts the second one.
    Script.FLAKY: (None, "infra"),
    Script.FAIL: ("infra",),
    Script.POLICY: ("runner-policy",),
    Script.REFUSED: ("config-refused",),
}


@dataclass(frozen=True)
class Start:
    """A container of a job that an engine started. Times are seconds since 1970."""

    container: str
    attempt: int
    engine: str
    at: float
    #: When it ended, and with which status; `None` where the engine never said so.
    ended_at: float | None = None
    code: int | None = None


@dataclass(frozen=True)
class Ask:
    """A question that reached a neighbour."""

    #: The beginning of the id of the container that asked.
    container: str
    at: float


@dataclass(frozen=True)
class Record:
    """What a record file holds."""

    file: str
    outcome: str
    reason: str | None
    attempt: int
    earlier: tuple[int, ...] = ()
    #: Whether it counts as spent; `None` where nobody can tell.
    spent: bool | None = None
    #: What each attempt was counted for, as far as it stays counted: amounts by the keys of windows.
    charged: Mapping[int, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class RowState:
    """What the store holds of a job."""

    state: str
    recorded: bool
    attempt: int


@dataclass(frozen=True)
class Case:
    """Everything that is known of one job."""

    id: str
    script: Script
    #: The store said that it has it.
    accepted: bool
    starts: tuple[Start, ...] = ()
    asks: tuple[Ask, ...] = ()
    records: tuple[Record, ...] = ()
    #: `None` where there is none; rows stay for a day, longer than any soak takes.
    row: RowState | None = None
    #: Somebody asked to cancel it.
    cancelled: bool = False
    #: Who asked was told that it is.
    told_cancelled: bool = False


@dataclass(frozen=True)
class Violation:
    """A broken promise."""

    rule: str
    what: str
    #: `None` where it is none of a job's.
    job_id: str | None = None


@dataclass
class Verdict:
    """What a soak came to."""

    violations: list[Violation] = field(default_factory=list)

    def count(self, rule: str) -> int:
        """Jobs, or things, that broke a rule."""
        return len({one.job_id or one.what for one in self.violations if one.rule == rule})


def judge(cases: Iterable[Case]) -> Verdict:
    """Every violation of every job."""
    rules = {
        "lost": _lost,
        "records": _records,
        "twice": _twice,
        "truth": _truth,
        "cancel": _cancel,
        "end": _end,
        "money": _money,
    }
    return Verdict(
        [Violation(rule, what, case.id) for case in cases for rule, tell in rules.items() for what in tell(case)]
    )


def _lost(case: Case) -> Iterator[str]:
    """A job that was accepted has ended, and its end is on the disk. One that was not has left no trace."""
    if not case.accepted:
        if case.starts or case.records:
            yield "it was never accepted, and ran"
        return
    if not case.records:
        yield "it has no record"
    if case.row is None:
        yield "its row is gone"
    elif case.row.state not in _TERMINAL:
        yield f"it has not ended: {case.row.state}"
    elif not case.row.recorded:
        yield "its row does not know of its record"


def _records(case: Case) -> Iterator[str]:
    """One file, with each attempt once and none too many."""
    if len(case.records) > 1:
        yield f"it has {len(case.records)} records: {', '.join(one.file for one in case.records)}"
    for record in case.records:
        listed = [*record.earlier, record.attempt]
        if listed != sorted(set(listed)):
            yield f"attempts are listed twice or out of order: {listed}"
        if record.attempt > MOST_ATTEMPTS:
            yield f"attempt {record.attempt} of {MOST_ATTEMPTS}"
        if case.row is not None and case.row.attempt != record.attempt:
            yield f"the record is about attempt {record.attempt}, the row about {case.row.attempt}"
        if missing := {start.attempt for start in case.starts} - set(listed):
            yield f"attempts {sorted(missing)} were started and stand in no record"


def _twice(case: Case) -> Iterator[str]:
    """What was paid for is not started again. Only an attempt that failed by itself (exit 1) is followed by another."""
    for attempt, count in Counter(start.attempt for start in case.starts).items():
        if count > 1:
            yield f"attempt {attempt} was started {count} times"
    asked = Counter(ask.container for ask in case.asks)
    for container, count in asked.items():
        if count > 1:
            yield f"container {container} asked {count} times"
    if strangers := [one for one in asked if not any(start.container.startswith(one) for start in case.starts)]:
        yield f"asked by containers that no engine started: {', '.join(strangers)}"
    starts = sorted(case.starts, key=lambda start: start.at)
    for before, after in pairwise(starts):
        if before.ended_at is None or before.ended_at > after.at:
            yield f"{_name(after)} was started while {_name(before)} ran"
        if before.code != 1:
            yield f"{_name(after)} was started after {_name(before)} had ended with {before.code}"
        elif not case.script.fails and _asked(case, before):
            yield f"{_name(after)} was started though {_name(before)} had asked and was not to fail"


def _truth(case: Case) -> Iterator[str]:
    """The record says what happened, and row and record say the same."""
    for record in case.records:
        own = [start for start in case.starts if start.attempt == record.attempt]
        if record.outcome == "completed" and not any(start.code == 0 and _asked(case, start) for start in own):
            yield f"it is recorded as completed, and no container of attempt {record.attempt} asked and ended with 0"
        if own and record.spent is False:
            yield f"attempt {record.attempt} was started, and its record says that nothing was spent"
        if case.row is not None and (case.row.state == "failed") != (record.outcome == "failed"):
            yield f"the row says {case.row.state}, the record {record.outcome}"
    if case.script is Script.REFUSED and case.starts:
        yield "it was to be refused for free, and was started"


def _cancel(case: Case) -> Iterator[str]:
    """Whoever was told that a job is cancelled was told the truth."""
    reasons = [record.reason for record in case.records]
    if case.told_cancelled and case.records and _CANCEL not in reasons:
        yield f"its canceller was told that it is cancelled, and it ended as {reasons}"
    if case.row is not None and case.row.state == "cancelled":
        for start in case.starts:
            if start.attempt >= case.row.attempt:
                yield f"it was cancelled while it waited, and {_name(start)} was started"


def _end(case: Case) -> Iterator[str]:
    """Each job ends as it was scripted, or by what a fault does to a job."""
    asked = all(_asked(case, start) for start in case.starts)
    allowed = (*_ENDS[case.script], *_BY_FAULT, *((_CANCEL,) if case.cancelled else ()))
    for record in case.records:
        reason = None if record.outcome == "completed" else record.reason
        # Without its network a job fails, as it may when its worker dies.
        if reason not in allowed and (reason != "infra" or asked):
            yield f"{case.script} ended as {record.outcome} {record.reason}"


def _money(case: Case) -> Iterator[str]:
    """What was started is counted, once in every window."""
    for record in case.records:
        for attempt in sorted({start.attempt for start in case.starts} & {*record.earlier, record.attempt}):
            if set(amounts := record.charged.get(attempt, {}).values()) != {1}:
                yield f"attempt {attempt} was started and is counted as {sorted(amounts)}"


def miscounted(counters: Mapping[str, int], records: Iterable[Record]) -> Iterator[str]:
    """Windows whose counter says anything else than all records together."""
    told: Counter[str] = Counter()
    for record in records:
        for charged in record.charged.values():
            told.update(charged)
    for key in sorted(counters.keys() | told.keys()):
        if counters.get(key, 0) != told[key]:
            yield f"{key} counts {counters.get(key, 0)}, the records {told[key]}"


def _asked(case: Case, start: Start) -> bool:
    return any(start.container.startswith(ask.container) for ask in case.asks)


def _name(start: Start) -> str:
    return f"container {start.container[:12]} (attempt {start.attempt}, {start.engine})"

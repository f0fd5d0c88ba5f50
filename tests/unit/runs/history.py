"""Records for the tests of whatever keeps and shows them."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import strategies as st

from pidispatch.values.base import Value
from pidispatch.values.job import LocalJob
from pidispatch.values.outcome import Completed
from pidispatch.values.reason import Reason
from pidispatch.values.record import Result, RunRecord, SessionUse
from pidispatch.values.usage import Context, Usage, UsageRow

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
M = TypeVar("M", bound=Value)
JOB = LocalJob(id="local-0123456789abcdef", folder=Path("/srv/site"), task="t")


def record(job_id: str = JOB.id, **update: Any) -> RunRecord:
    """A completed run with little on record, but for what is named."""
    begun = Result.begin(NOW, "anthropic", "m").ending(Completed())
    return RunRecord.of(JOB, begun, "host-1").model_copy(update={"job_id": job_id, **update})


_words = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
#: Numbers that JSON carries as they are.
_numbers = st.integers(0, 2**53).map(Decimal) | st.integers(0, 10**12).map(lambda n: Decimal(n).scaleb(-6))
_counts = st.none() | st.integers(-(2**53), 2**53)
_instants = st.none() | st.datetimes(timezones=st.just(UTC))
_NUMBERS = [
    *("calls", "input", "output", "cacheRead", "cacheWrite"),
    *("cacheWrite1h", "reasoning", "total", "cost", "unpriced"),
]


def _values(of: type[M], /, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[M]:
    # Not `st.builds`, which would look at the signature and make up fields by their other names.
    return st.fixed_dictionaries(fields).map(of.model_validate)


_rows = _values(UsageRow, provider=_words, model=_words, **dict.fromkeys(_NUMBERS, _numbers))
_usages = _values(
    Usage,
    v=st.integers(1, 9),
    pi_ai=st.none() | _words,
    truncated=st.integers(0, 9),
    models=st.lists(_rows, min_size=1, max_size=3),
)
_contexts = _values(Context, tokens=st.integers(0, 2**53), window=st.integers(1, 2**53))
_sessions = _values(SessionUse, resumed=st.booleans(), reason=st.none() | _words, bytes=_counts)

#: Any record that a run can leave.
records = _values(
    RunRecord,
    job_id=_words.filter(bool),
    kind=st.just("local") | st.none(),
    target=st.none() | _words,
    flow=st.none() | _words,
    started_at=_instants,
    ended_at=_instants,
    outcome=st.sampled_from(["completed", "policy", "failed"]),
    reason=st.none() | st.sampled_from([reason.value for reason in Reason]),
    cause=st.none() | _words,
    exit_code=_counts,
    turns=_counts,
    tokens=st.none() | st.dictionaries(st.sampled_from(["total", "cost", "metered"]), _numbers | st.booleans()),
    usage=st.none() | _usages,
    context=st.none() | _contexts,
    provider=st.none() | _words,
    model=st.none() | _words,
    budget_reserved=st.none() | st.booleans(),
    attempt=st.integers(0, 99),
    host=st.none() | _words,
    image_digest=st.none() | _words,
    changed=st.none() | st.booleans(),
    git_restored=_counts,
    chain_depth=_counts,
    replica=_counts,
    session=st.none() | _sessions,
)

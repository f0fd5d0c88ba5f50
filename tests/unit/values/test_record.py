"""The record of a run: the keys it has, and what can never be in it."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.values.change import Change, FileChange
from pidispatch.values.job import LocalJob
from pidispatch.values.outcome import Aborted, Completed, InfraFailed, Outcome, Refused, recorded_outcome
from pidispatch.values.reason import AbortReason, Reason, RunnerReason
from pidispatch.values.record import Result, RunRecord
from pidispatch.values.usage import Context, Telemetry, Usage, UsageRow

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
END = datetime(2026, 1, 2, 3, 5, 5, tzinfo=UTC)
JOB = LocalJob(
    id="local-0123456789abcdef", folder=Path("/home/someone/secret-place/project"), task="a private task", flow="tidy"
)
ROW = UsageRow(
    provider="anthropic",
    model="m",
    calls=Decimal(2),
    input=Decimal(10),
    output=Decimal(5),
    cache_read=Decimal(0),
    cache_write=Decimal(0),
    cacheWrite1h=Decimal(0),
    reasoning=Decimal(0),
    total=Decimal(15),
    cost=Decimal("0.000105"),
    unpriced=Decimal(0),
)
TELEMETRY = Telemetry(
    turns=2,
    tokens={"total": Decimal(15), "cost": Decimal("0.000105"), "metered": True},
    usage=Usage(v=1, pi_ai="1.6.0", truncated=0, models=(ROW,)),
    context=Context(tokens=15, window=200000),
    reason=RunnerReason.STOP,
    message="a private message",
)
CHANGE = Change(
    changed=True,
    commits=1,
    head="b" * 40,
    files=(FileChange(path="private.txt", kind="added", added=1, removed=0),),
    dirty_before=False,
)


def result(outcome: Outcome) -> Result:
    return Result(
        outcome=outcome,
        started_at=START,
        ended_at=END,
        provider="anthropic",
        model="m",
        exit_code=0,
        telemetry=TELEMETRY,
        image_digest="sha256:00",
        change=CHANGE,
        diff="a private diff",
        change_error="a private error",
        outbox_files=3,
        container_s=1.5,
        spent=True,
        restored=(".git/config", ".git/hooks/pre-commit"),
        kept="/private/kept",
        guard_error="a private error",
    )


@pytest.mark.parametrize(
    ("outcome", "word", "reason", "cause"),
    [
        (Completed(), "completed", None, None),
        (Completed(truncated=True), "completed", None, None),
        (Refused(reason=Reason.CONFIG_REFUSED, cause="worktree"), "policy", "config-refused", "worktree"),
        (Refused(reason=Reason.RUNNER_POLICY), "policy", "runner-policy", None),
        (
            Aborted(reason=Reason.WORKER_ABORT, cause=AbortReason.JOB_TIMEOUT),
            "policy",
            "worker-abort",
            "job-timeout-30m",
        ),
        (
            Aborted(reason=Reason.OPERATOR_CANCEL, cause=AbortReason.OPERATOR_CANCEL),
            "policy",
            "operator-cancel",
            "operator-cancel",
        ),
        (InfraFailed(reason=Reason.INFRA, cause="oom-killed"), "failed", "infra", "oom-killed"),
        (InfraFailed(reason=Reason.CONTAINER_NEVER_STARTED), "failed", "container-never-started", None),
    ],
)
def test_the_words_of_an_outcome(outcome: Outcome, word: str, reason: str | None, cause: str | None) -> None:
    assert recorded_outcome(outcome) == word
    document = json.loads(RunRecord.of(JOB, result(outcome), "host").model_dump_json())
    assert (document["outcome"], document["reason"], document["cause"]) == (word, reason, cause)


def test_the_whole_record() -> None:
    document = json.loads(RunRecord.of(JOB, result(Completed()), "host").model_dump_json())
    usage = document.pop("usage")
    assert document == {
        "jobId": "local-0123456789abcdef",
        "kind": "local",
        "target": "local:project",
        "flow": "tidy",
        "command": None,
        "startedAt": "2026-01-02T03:04:05Z",
        "endedAt": "2026-01-02T03:05:05Z",
        "outcome": "completed",
        "reason": None,
        "cause": None,
        "exitCode": 0,
        "turns": 2,
        "tokens": {"total": 15, "cost": 0.000105, "metered": True},
        "context": {"tokens": 15, "window": 200000},
        "provider": "anthropic",
        "model": "m",
        "budgetReserved": True,
        "attempt": 1,
        "attempts": [],
        "host": "host",
        "imageDigest": "sha256:00",
        "changed": True,
        "gitRestored": 2,
        "parentJobId": None,
        "chainDepth": None,
        "chainEnqueued": None,
        "chainRefused": None,
        "replica": None,
        "replicas": None,
        "triggerIndex": None,
        "triggerType": None,
        "session": None,
        "traceId": None,
        "retryOf": None,
        "said": None,
        "charged": {},
    }
    row = usage.pop("models")[0]
    assert usage == {"v": 1, "piAi": "1.6.0", "truncated": 0, "source": "runner"}
    assert row.pop("cost") == 0.000105
    assert (row["cacheRead"], row["cacheWrite"], row["cacheWrite1h"], row["total"]) == (0, 0, 0, 15)
    assert all(isinstance(row[name], int) for name in row if name not in {"provider", "model"})


@given(
    st.sampled_from(
        [
            Completed(),
            Refused(reason=Reason.CONFIG_REFUSED, detail="a private detail", remedy="a private remedy"),
            InfraFailed(reason=Reason.INFRA, detail="a private detail"),
        ]
    )
)
def test_neither_folder_nor_task_nor_any_other_text_of_a_job_is_recorded(outcome: Outcome) -> None:
    text = RunRecord.of(JOB, result(outcome), "host").model_dump_json()
    for hidden in ("private", "secret-place", "someone", "/home"):
        assert hidden not in text


def test_a_run_that_came_to_nothing() -> None:
    begun = Result.begin(START, "anthropic", "m")
    assert begun.outcome == InfraFailed(reason=Reason.INFRA, cause="unfinished")
    ended = begun.ending(Refused(reason=Reason.JOB_IMAGE_MISSING))
    assert begun.outcome != ended.outcome
    document = json.loads(RunRecord.of(JOB, ended, "host").model_dump_json())
    assert document["changed"] is None
    assert document["exitCode"] is None
    assert document["tokens"] is None
    assert document["usage"] is None
    assert document["budgetReserved"] is False
    assert document["gitRestored"] is None


@pytest.mark.parametrize(
    ("outcome", "spent", "reserved"),
    [
        (Completed(), True, True),
        (Refused(reason=Reason.RUNNER_POLICY), True, True),
        (Aborted(reason=Reason.WORKER_ABORT, cause=AbortReason.SHUTDOWN), True, True),
        (InfraFailed(reason=Reason.WORKER_LOST), True, True),
        (InfraFailed(reason=Reason.CONTAINER_NEVER_STARTED), True, False),
        (InfraFailed(reason=Reason.CONTAINER_NEVER_STARTED), False, False),
        (Refused(reason=Reason.JOB_IMAGE_MISSING), False, False),
    ],
)
def test_what_may_have_run_counts_as_spent(outcome: Outcome, spent: bool, reserved: bool) -> None:
    ended = result(outcome).model_copy(update={"spent": spent})
    assert RunRecord.of(JOB, ended, "host").budget_reserved is reserved


def test_a_reader_takes_no_offence_at_keys_of_later_versions() -> None:
    record = RunRecord.of(JOB, result(Completed()), "host")
    later = json.loads(record.model_dump_json()) | {"venue": "here", "charged": {}}
    assert RunRecord.model_validate_json(json.dumps(later)) == record


@given(st.dictionaries(st.sampled_from(["total", "cost", "input"]), st.decimals(0, 10**12, places=6), min_size=1))
def test_tokens_are_json_numbers(tokens: dict[str, Decimal | bool]) -> None:
    given_tokens = Telemetry(tokens={**tokens, "metered": False})
    record = RunRecord.of(JOB, Result.begin(START, "p", "m").model_copy(update={"telemetry": given_tokens}), "host")
    document = json.loads(record.model_dump_json(), parse_float=Decimal)
    assert document["tokens"].pop("metered") is False
    for name, number in document["tokens"].items():
        assert isinstance(number, int | Decimal)
        assert not isinstance(number, bool)
        assert float(number) == float(tokens[name])


def test_what_a_forge_answered_is_kept_of_a_refusal_and_of_a_fault_alone() -> None:
    refused = Refused(reason=Reason.CONFIG_REFUSED, cause="forge-clock", said="exp is too far in the future")
    failed = InfraFailed(reason=Reason.INFRA, cause="forge-unanswered", said="Server Error")
    said = [RunRecord.of(JOB, result(one), "host").said for one in (refused, failed, Completed())]
    assert said == ["exp is too far in the future", "Server Error", None]

"""What the log says of an end: one event each for refusal, container and job."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pidispatch.config.settings import Settings
from pidispatch.runs.events import tell_end, tell_exit, tell_lost
from pidispatch.runs.site import Effective
from pidispatch.values.job import LocalJob
from pidispatch.values.outcome import Aborted, Completed, InfraFailed, Outcome, Refused
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.record import Result, RunRecord
from tests.support.ends import NOW
from tests.support.oneshots import fired_by, rule

JOB = LocalJob(id="local-1", folder=Path("/home/alice/site"), task="a private task")


def told(outcome: Outcome, attempt: int = 1, **update: object) -> list[dict[str, object]]:
    result = Result.begin(datetime(2026, 1, 1, tzinfo=UTC), "anthropic", "m").ending(outcome)
    result = result.model_copy(update=update)
    with capture_logs() as events:
        tell_exit(JOB, Effective.of(JOB, Settings()), "gate", result)
        tell_end(RunRecord.of(JOB, result, "host-1", attempt))
    assert all(event.pop("log_level") == "info" and event.pop("jobId") == "local-1" for event in events)
    assert "alice" not in str(events)
    assert "private" not in str(events)
    return [dict(event) for event in events]


REFUSALS: list[tuple[Reason, dict[str, object]]] = [
    (Reason.ONCE_ALREADY_SPENT, {"event": "refused_once_already_spent", "triggerIndex": None}),
    (
        Reason.JOB_IMAGE_REPLICAS_UNSUPPORTED,
        {"event": "refused_image_replicas_unsupported", "image": "pi-job:latest"},
    ),
    (
        Reason.JOB_IMAGE_COMMANDS_UNSUPPORTED,
        {"event": "refused_image_commands_unsupported", "image": "pi-job:latest"},
    ),
    (Reason.SKILLS_DIR_MISSING, {"event": "refused_skills_dir_missing", "kind": "local"}),
    (Reason.JOB_USER_UNMAPPABLE, {"event": "refused_job_user_unmappable", "cause": "c"}),
    (Reason.JOB_IMAGE_MISSING, {"event": "refused_image_missing", "image": "pi-job:latest"}),
    (
        Reason.JOB_IMAGE_FORGE_UNSUPPORTED,
        {"event": "refused_image_forge_unsupported", "image": "pi-job:latest", "kind": "local"},
    ),
    (
        Reason.JOB_IMAGE_ANY_UID_UNSUPPORTED,
        {"event": "refused_job_image_any_uid_unsupported", "image": "pi-job:latest"},
    ),
    (Reason.PROVIDER_UNCONFIGURED, {"event": "refused_provider_unconfigured", "provider": "anthropic"}),
    (Reason.EGRESS_PROXY_MISSING, {"event": "refused_egress_proxy_missing", "proxy": "gate"}),
    (Reason.EGRESS_PROXY_STOPPED, {"event": "refused_egress_proxy_stopped", "proxy": "gate"}),
    (Reason.CONFIG_REFUSED, {"event": "refused_config", "kind": "local", "reason": "config-refused", "cause": "c"}),
    (Reason.PI_TOO_LARGE, {"event": "refused_config", "kind": "local", "reason": "pi-too-large", "cause": "c"}),
]


@pytest.mark.parametrize(("reason", "event"), REFUSALS)
def test_a_refusal_is_one_event_beside_the_jobs_own(reason: Reason, event: dict[str, object]) -> None:
    refused = Refused(reason=reason, cause="c", detail="a private detail", remedy="a private remedy")
    end = {"event": "job_completed", "outcome": "policy", "reason": reason.value}
    assert told(refused) == [event, end]


def test_a_spent_rule_is_told_by_its_place() -> None:
    job = fired_by(rule(), 3)
    with capture_logs() as events:
        refused = Refused(reason=Reason.ONCE_ALREADY_SPENT)
        tell_exit(job, Effective.of(job, Settings()), "gate", Result.begin(NOW, "p", "m").ending(refused))
    assert [(one["event"], one["jobId"], one["triggerIndex"]) for one in events] == [
        ("refused_once_already_spent", "gh-1", 3)
    ]


def test_an_unprotected_branch_is_told_by_its_repository() -> None:
    job = fired_by(rule())
    with capture_logs() as events:
        refused = Refused(reason=Reason.UNPROTECTED_BRANCH)
        tell_exit(job, Effective.of(job, Settings()), "gate", Result.begin(NOW, "p", "m").ending(refused))
    assert [(one["event"], one["jobId"], one["repo"]) for one in events] == [("refused_unprotected", "gh-1", job.repo)]


def test_a_container_is_one_event_beside_the_jobs_own() -> None:
    assert told(Completed(), exit_code=0) == [
        {"event": "container_exit", "exitCode": 0, "aborted": False},
        {"event": "job_completed", "outcome": "completed", "reason": None},
    ]
    assert told(Refused(reason=Reason.RUNNER_POLICY), exit_code=2) == [
        {"event": "container_exit", "exitCode": 2, "aborted": False},
        {"event": "job_completed", "outcome": "policy", "reason": "runner-policy"},
    ]
    assert told(Aborted(reason=Reason.WORKER_ABORT, cause=AbortReason.SHUTDOWN), exit_code=137) == [
        {"event": "container_exit", "exitCode": 137, "aborted": True},
        {"event": "job_completed", "outcome": "policy", "reason": "worker-abort"},
    ]


def test_a_failure_is_told_as_one_with_the_number_of_its_attempt() -> None:
    assert told(InfraFailed(reason=Reason.INFRA, cause="unsettled")) == [
        {"event": "job_failed", "attempt": 1, "reason": "infra", "cause": "unsettled"}
    ]
    assert told(InfraFailed(reason=Reason.INFRA), attempt=2)[0]["attempt"] == 2


def test_a_job_that_was_taken_over_is_told_as_no_end() -> None:
    with capture_logs() as events:
        tell_lost(JOB, 2)
    told = {"event": "attempt_lease_lost", "jobId": "local-1", "attempt": 2, "log_level": "warning"}
    assert events == [told]

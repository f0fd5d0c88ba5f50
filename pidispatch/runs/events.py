"""What the log says of an attempt's end: one event for a refusal, one for a container, one for the job itself.

Ids, numbers and names that an operator chose; never text of a job (docs/reference/events.md).
"""

from pidispatch.config.log import log
from pidispatch.runs.site import Effective
from pidispatch.values.job import Job
from pidispatch.values.outcome import Aborted, Refused
from pidispatch.values.reason import Reason
from pidispatch.values.record import Result, RunRecord


def tell_exit(job: Job, effective: Effective, proxy: str, result: Result) -> None:
    """Log what the attempt at `job` met; `proxy` is the name of the neighbour it was to have.

    What that means for the job is told by `tell_end`, once the store has said that it counts.
    """
    outcome = result.outcome
    if result.exit_code is not None:
        log().info("container_exit", jobId=job.id, exitCode=result.exit_code, aborted=isinstance(outcome, Aborted))
    elif isinstance(outcome, Refused):
        _tell_refusal(job, effective, proxy, outcome)


def tell_end(record: RunRecord) -> None:
    """Log the end that counts, once for each: what its record says."""
    if record.outcome == "failed":
        log().info("job_failed", jobId=record.job_id, attempt=record.attempt, reason=record.reason, cause=record.cause)
    else:
        log().info("job_completed", jobId=record.job_id, outcome=record.outcome, reason=record.reason)


def tell_lost(job: Job, attempt: int) -> None:
    """Log that the job was taken over: its end is for another one to tell."""
    log().warning("attempt_lease_lost", jobId=job.id, attempt=attempt)


def _tell_refusal(job: Job, effective: Effective, proxy: str, refused: Refused) -> None:
    match refused.reason:
        case Reason.ONCE_ALREADY_SPENT:
            index = job.matched.index if job.matched is not None else None
            log().info("refused_once_already_spent", jobId=job.id, triggerIndex=index)
        case Reason.JOB_USER_UNMAPPABLE:
            log().info("refused_job_user_unmappable", jobId=job.id, cause=refused.cause)
        case Reason.JOB_IMAGE_MISSING:
            log().info("refused_image_missing", jobId=job.id, image=effective.image)
        case Reason.JOB_IMAGE_FORGE_UNSUPPORTED:
            log().info("refused_image_forge_unsupported", jobId=job.id, image=effective.image, kind=job.kind.value)
        case Reason.JOB_IMAGE_ANY_UID_UNSUPPORTED:
            log().info("refused_job_image_any_uid_unsupported", jobId=job.id, image=effective.image)
        case Reason.JOB_IMAGE_REPLICAS_UNSUPPORTED:
            log().info("refused_image_replicas_unsupported", jobId=job.id, image=effective.image)
        case Reason.JOB_IMAGE_COMMANDS_UNSUPPORTED:
            log().info("refused_image_commands_unsupported", jobId=job.id, image=effective.image)
        case Reason.PROVIDER_UNCONFIGURED:
            log().info("refused_provider_unconfigured", jobId=job.id, provider=effective.provider)
        case Reason.EGRESS_PROXY_MISSING:
            log().info("refused_egress_proxy_missing", jobId=job.id, proxy=proxy)
        case Reason.EGRESS_PROXY_STOPPED:
            log().info("refused_egress_proxy_stopped", jobId=job.id, proxy=proxy)
        case Reason.SKILLS_DIR_MISSING:
            log().info("refused_skills_dir_missing", jobId=job.id, kind=job.kind.value)
        case Reason.UNPROTECTED_BRANCH:
            log().info("refused_unprotected", jobId=job.id, repo=job.scope)
        case Reason.OVER_BUDGET | Reason.SOFT_HOLD | Reason.DAILY_TOKEN_CAP:
            # Told where the numbers are known, with them.
            return
        case _:
            log().info(
                "refused_config",
                jobId=job.id,
                kind=job.kind.value,
                reason=refused.reason.value,
                cause=refused.cause,
            )

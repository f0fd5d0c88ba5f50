"""Whether the rule of a job fires once and was spent by another job (docs/how-to/one-shots.md)."""

from typing import Final

from pidispatch.config.text import printable
from pidispatch.runs.site import Site
from pidispatch.triggers.disarm import Mark, mark_of, triggers_path
from pidispatch.values.job import ForgeJob
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason

#: Characters of a mark that are shown: a person may have written it.
_SHOWN: Final = 100


def refuse_if_spent(site: Site) -> str | Refused | None:
    """The rung: `None` where the rule fires again and again, the refusal where either mark is another job's."""
    job = site.job
    # One that an operator asks for again is no second firing of its rule.
    if not isinstance(job, ForgeJob) or not job.matched.once or job.retry_of is not None:
        return None
    # Each may have a mark that the other one lacks. The job's own is of its attempt before.
    mark = mark_of(triggers_path(site.settings), job)
    if mark is None or mark.job_id == job.id:
        mark = site.marked(job)
    return "" if mark is None or mark.job_id == job.id else spent(job, mark)


def spent(job: ForgeJob, mark: Mark) -> Refused:
    """The refusal of a job whose rule has this mark."""
    index = job.matched.index
    when = f" on {printable(mark.at[:_SHOWN])}" if mark.at else ""
    by = f" by the job {printable(mark.job_id[:_SHOWN])}" if mark.job_id else ""
    return Refused(
        reason=Reason.ONCE_ALREADY_SPENT,
        detail=f"trigger {index} fires once and was spent{when}{by}; that close has had its run",
        remedy=f"arm it again, which takes out on.disarmed and the store's mark: pi-dispatch triggers rearm {index}",
    )

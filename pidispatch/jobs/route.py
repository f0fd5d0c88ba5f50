"""Which queue a job goes to."""

from pidispatch.config.settings import Settings
from pidispatch.jobs.celery_defaults import SHARED_QUEUE
from pidispatch.values.forge import JobKind
from pidispatch.values.job import Job


def route(job: Job, settings: Settings) -> str:
    """The queue of `job`: this machine's own for a job on one of its folders, once the machine has a declared name.

    Without a declared name there is one machine, and the shared queue is its own.
    """
    if job.kind is JobKind.LOCAL and "worker_name" in settings.model_fields_set:
        return f"{SHARED_QUEUE}@{settings.worker_name}"
    return SHARED_QUEUE

"""What only the one who waits for a job may see of its end: kept in the store for an hour, never recorded."""

from typing import Final

from pidispatch.config.log import log
from pidispatch.jobs.endings import Telling
from pidispatch.jobs.store import JobStore
from pidispatch.runs.records import RecordStore
from pidispatch.values.errors import InfraError
from pidispatch.values.job import Job
from pidispatch.values.record import Result

#: Characters of a diff that travel; the whole of it is in the folder.
_DIFF_CHARS: Final = 256 * 1024
_CUT: Final = "\n[the rest of the diff is left out; git diff in the folder shows all of it]\n"


def tell_waiter(store: JobStore, records: RecordStore, job: Job, result: Result) -> None:
    """Keep `result` for the one who waits. Advice: where it cannot be kept, the record tells the essentials."""
    if result.diff is not None and len(result.diff) > _DIFF_CHARS:
        result = result.model_copy(update={"diff": result.diff[:_DIFF_CHARS] + _CUT})
    telling = Telling(result=result, record=str(records.record_path(job.id)))
    try:
        store.tell(job.id, telling.model_dump(mode="json"))
    except InfraError as error:
        log().debug("result_untold", jobId=job.id, cause=error.cause)

"""What only the one who waits for a job may see of its end: kept in the store for an hour, never recorded."""

from typing import Final

from pidispatch.jobs.endings import Telling
from pidispatch.runs.records import RecordStore
from pidispatch.values.job import Job
from pidispatch.values.record import Result

#: Characters of a diff that travel; the whole of it is in the folder.
_DIFF_CHARS: Final = 256 * 1024
_CUT: Final = "\n[the rest of the diff is left out; git diff in the folder shows all of it]\n"


def telling(records: RecordStore, job: Job, result: Result) -> Telling:
    """What the one who waits may see of `result`."""
    if result.diff is not None and len(result.diff) > _DIFF_CHARS:
        result = result.model_copy(update={"diff": result.diff[:_DIFF_CHARS] + _CUT})
    return Telling(result=result, record=str(records.record_path(job.id)))

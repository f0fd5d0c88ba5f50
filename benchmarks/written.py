"""What a job costs that is only written down: taken, ended, recorded and indexed by a bare Celery task, unchecked.

It stands between the bare task and the product: no worker of the product's can be faster. The settings are those on
which its promises hang: acknowledged late, and fetched one for a thread.
"""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import redis
from celery import Celery

from pidispatch.jobs.rows import Acquired
from pidispatch.jobs.store import JobStore
from pidispatch.runs.index import RecordIndex
from pidispatch.runs.records import RecordStore
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason
from pidispatch.values.record import Result, RunRecord

QUEUE: Final = "written"

app = Celery("written", broker=os.environ["BENCH_BROKER"])
app.conf.update(task_acks_late=True, worker_prefetch_multiplier=1, task_default_queue=QUEUE)

_store = JobStore(
    redis.Redis(unix_socket_path=os.environ["BENCH_SOCKET"], decode_responses=True),
    os.environ["BENCH_PREFIX"],
    Limits(),
)
_folder = Path(os.environ["BENCH_WRITTEN"])
_records = RecordStore(_folder, RecordIndex(_folder.parent, _folder))


@app.task(ignore_result=True)
def write_down(job_id: str) -> None:
    """Write the job's way and its end down as a worker does."""
    acquired = _store.acquire(job_id, 0, f"w#e#{job_id}")
    assert isinstance(acquired, Acquired), acquired
    refused = Refused(reason=Reason.PROVIDER_UNCONFIGURED)
    result = Result.begin(datetime.now(UTC), "anthropic", "m").ending(refused)
    record = RunRecord.of(acquired.job, result, "w", 1, ())
    _store.finish(acquired.lease, record)
    _records.add(record)
    _store.recorded(job_id, 1)

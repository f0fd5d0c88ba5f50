"""What waits to be said on the issue or pull request of a job: kept in the store until a worker has posted it.

The key of a job outlives the post, so that whoever writes the job's record a second time says nothing twice.
"""

from datetime import datetime
from typing import Literal, NamedTuple

from pydantic import ValidationError

from pidispatch.jobs.calls import Calls
from pidispatch.jobs.keys import COMMENT, COMMENT_LOCK, COMMENTS
from pidispatch.jobs.rows import RETENTION
from pidispatch.values.base import Value
from pidispatch.values.forge import ForgeKind


class Remark(Value):
    """A comment that is to be left on an item. Fixed words, ids, and names that an operator chose."""

    kind: ForgeKind
    repo: str
    target: Literal["issue", "pull_request"]
    number: int
    text: str
    #: A part of the text by which it is found again.
    marker: str
    #: It was not left before then.
    since: datetime


class DueRemark(NamedTuple):
    """One that the caller is to post, while nobody else is."""

    job_id: str
    remark: Remark
    #: How often it was tried, in vain.
    tries: int
    #: Milliseconds since it was taken first.
    age_ms: int


class Comments(Calls):
    """Remarks: put here by whoever writes a record, taken out by whichever worker comes first."""

    def remark(self, job_id: str, remark: Remark) -> bool:
        """Have it posted; whether nothing was said of this job before. Raises `InfraError`."""
        key = self._key(COMMENT, job_id)
        with self._client.pipeline(transaction=True) as all_of_it:
            all_of_it.hsetnx(key, "remark", remark.model_dump_json())
            all_of_it.pexpire(key, RETENTION[remark.kind].failed_ms)
            # Of one that is said already whoever takes it sees that.
            all_of_it.zadd(self._key(COMMENTS), {job_id: 0}, nx=True)
            first, *_ = self._ask(all_of_it.execute)
        return bool(first)

    def remarks_due(self) -> list[str]:
        """Ids of jobs of which something is to be said now, the longest due first. Raises `InfraError`."""
        due, most = self._key(COMMENTS), self._limits.sweep_batch
        now = self._now_ms()
        found = self._ask(lambda: self._client.zrangebyscore(due, "-inf", now, start=0, num=most))
        return [str(one) for one in found]

    def take_remark(self, job_id: str, worker: str) -> DueRemark | None:
        """Take one for `Limits.comment_lease_s`; `None` where another has it, or it is said. Raises `InfraError`."""
        lock, lease_ms = self._key(COMMENT_LOCK, job_id), round(self._limits.comment_lease_s * 1000)
        # Nobody gives it back: the next try comes later than it runs out.
        if not self._ask(lambda: self._client.set(lock, worker, nx=True, px=lease_ms)):
            return None
        key = self._key(COMMENT, job_id)
        text, tries, first = self._ask(lambda: self._client.hmget(key, ["remark", "tries", "first"]))
        if not text:
            self._ask(lambda: self._client.zrem(self._key(COMMENTS), job_id))
            return None
        try:
            remark = Remark.model_validate_json(text)
        except ValidationError:
            # A worker of the version that wrote it may take it.
            self._put_off(job_id, round(self._limits.comment_longest_s * 1000))
            return None
        now = self._now_ms()
        if first is None:
            self._ask(lambda: self._client.hset(key, "first", now))
        return DueRemark(job_id, remark, int(tries or 0), now - int(first or now))

    def postpone_remark(self, due: DueRemark, delay_ms: int) -> None:
        """Have one that could not be posted tried again, after its lease at the earliest. Raises `InfraError`."""
        self._ask(lambda: self._client.hset(self._key(COMMENT, due.job_id), "tries", due.tries + 1))
        self._put_off(due.job_id, delay_ms)

    def close_remark(self, due: DueRemark) -> None:
        """Nothing is to be said of this job any more. Raises `InfraError`."""
        key = self._key(COMMENT, due.job_id)
        with self._client.pipeline(transaction=True) as all_of_it:
            all_of_it.hset(key, "remark", "")
            all_of_it.pexpire(key, RETENTION[due.remark.kind].failed_ms)
            all_of_it.zrem(self._key(COMMENTS), due.job_id)
            self._ask(all_of_it.execute)

    def _put_off(self, job_id: str, delay_ms: int) -> None:
        at = self._now_ms() + delay_ms
        self._ask(lambda: self._client.zadd(self._key(COMMENTS), {job_id: at}, xx=True))

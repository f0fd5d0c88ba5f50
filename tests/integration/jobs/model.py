"""What the store must do, as plain Python: no server, no scripts, one dictionary of jobs."""

from dataclasses import dataclass, field

from pidispatch.jobs.rows import Lease
from pidispatch.values.limits import Limits

TERMINAL = ("completed", "failed", "cancelled")


@dataclass
class ModelJob:
    """One accepted job."""

    max_attempts: int
    created: int
    published: int
    state: str = "queued"
    gen: int = 0
    attempt: int = 1
    lost: int = 0
    spent: bool = False
    owner: str | None = None
    lease_end: int = 0
    due: int | None = None
    reason: str | None = None
    telemetry: bool = False
    record_attempt: int | None = None
    #: Since when its record is owed; `None` where it is not.
    owed: int | None = None
    #: A request to cancel stands, or was answered.
    asked: bool = False
    answered: bool = False


@dataclass
class Model:
    """The store, with its clock in milliseconds."""

    limits: Limits
    now: int = 1_000_000_000_000
    jobs: dict[str, ModelJob] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    #: Whether the one queue is paused.
    paused: bool = False

    def submit(self, job_id: str, max_attempts: int, key: str | None) -> tuple[str, str]:
        """Status, and the id that stands."""
        if job_id in self.jobs:
            return "duplicate", job_id
        if key is not None:
            survivor = self.keys.get(key)
            if survivor is not None and self.jobs[survivor].created + self.limits.dedup_ms > self.now:
                return "coalesced", survivor
            self.keys[key] = job_id
        self.jobs[job_id] = ModelJob(max_attempts, self.now, self.now)
        return "submitted", job_id

    def acquire(self, job_id: str, gen: int, owner: str) -> str:
        """`acquired`, or why not."""
        job = self.jobs[job_id]
        if job.state in TERMINAL:
            return "finished"
        if job.gen != gen:
            return "stale"
        if job.state == "active":
            return "active"
        if self.paused:
            self._sleep(job, self.limits.paused_recheck_ms)
            return "paused"
        job.state, job.owner, job.due = "active", owner, None
        self._lease(job)
        return "acquired"

    def refused(self, lease: Lease) -> str | None:
        """Why the holder of a lease may not move its job."""
        job = self.jobs[lease.job_id]
        held = job.state == "active" and job.owner == lease.owner and job.gen == lease.gen
        return None if held else "stale"

    def renew(self, lease: Lease) -> str:
        """The answer to a renewal."""
        answer = self.refused(lease)
        if answer is None:
            self._lease(self.jobs[lease.job_id])
        return answer or "won"

    def spend(self, lease: Lease) -> str:
        """The answer to a note of spending."""
        answer = self.renew(lease)
        if answer == "won":
            self.jobs[lease.job_id].spent = True
        return answer

    def defer(self, lease: Lease, delay_ms: int) -> str:
        """`deferred`, or why not."""
        job, answer = self.jobs[lease.job_id], self.refused(lease)
        if answer or job.spent:
            return answer or "stale"
        if job.asked or job.answered:
            return "cancel"
        self._sleep(job, delay_ms)
        return "deferred"

    def finish(self, lease: Lease, state: str, reason: str | None) -> str:
        """The answer to an end."""
        answer, job = self.refused(lease), self.jobs[lease.job_id]
        if answer is None:
            self._record(job, job.attempt)
            self._end(job, state, reason)
        return answer or "won"

    def fail(self, lease: Lease, reason: str, *, never_started: bool) -> str:
        """`deferred` to the next attempt, `won` for the last, or why not."""
        answer, job = self.refused(lease), self.jobs[lease.job_id]
        if answer:
            return answer
        again = job.attempt < job.max_attempts
        if again and (job.asked or job.answered):
            return "cancel"
        self._record(job, job.attempt)
        if again or never_started:
            job.spent = False
        if not again:
            self._end(job, "failed", reason)
            return "won"
        job.attempt += 1
        self._sleep(job, self.limits.retry_base_ms * 2 ** (job.attempt - 2))
        return "deferred"

    def cancel(self, job_id: str, attempt: int, reason: str) -> tuple[str, bool]:
        """What came of it, and whether it was this call."""
        job = self.jobs[job_id]
        if job.state in ("queued", "deferred"):
            if attempt != job.attempt:
                return "stale", False
            job.gen += 1
            self._record(job, attempt)
            self._end(job, "cancelled", reason)
            return "cancelled", True
        if job.state == "active":
            job.asked = True
            return "requested", False
        return job.state, False

    def settle(self, job_id: str, attempt: int, end: tuple[str, str | None] | None, *, spent: bool) -> str:
        """The status of a settling; `end` is state and reason of a record."""
        job = self.jobs[job_id]
        if job.attempt != attempt:
            return "stale"
        if job.state != "active":
            if job.state not in TERMINAL or job.reason != "worker-lost" or job.telemetry or end is None:
                return "stale"
            job.telemetry = True
            self._record(job, attempt)
            return "completed-telemetry"
        if spent and end is None:
            job.spent = True
            self._lost(job, "failed")
            return "won"
        if end is not None and (spent or job.spent):
            job.spent = True
            self._record(job, attempt)
            self._end(job, *end)
            return "won"
        self._lose_unspent(job)
        return "unspent"

    def sweep_leases(self) -> tuple[set[str], set[str]]:
        """Jobs that are lost, and jobs that are queued again."""
        lost, requeued = set(), set()
        for job_id, job in self.jobs.items():
            if job.state != "active" or job.lease_end > self.now:
                continue
            if job.spent:
                # Who was told that it is cancelled is not told otherwise.
                self._lost(job, "completed" if job.answered else "failed")
            else:
                self._lose_unspent(job)
            if job.state in ("failed", "completed"):
                lost.add(job_id)
            elif job.state == "queued":
                requeued.add(job_id)
        return lost, requeued

    def wake_oversleepers(self) -> None:
        """Deferred jobs that are well past their instant wait in their queue."""
        overdue, unclaimed = round(self.limits.overdue_s * 1000), round(self.limits.unclaimed_s * 1000)
        for job in self.jobs.values():
            if job.state == "deferred" and job.due is not None and job.due + overdue <= self.now:
                job.state, job.published, job.due = "queued", job.due + overdue - unclaimed, None

    def unclaimed(self) -> set[str]:
        """Jobs whose ticket would be missed by now."""
        before = self.now - round(self.limits.unclaimed_s * 1000)
        return {job_id for job_id, job in self.jobs.items() if job.state == "queued" and job.published <= before}

    def sweep_records(self) -> set[str]:
        """Jobs whose record has been owed for long."""
        before = self.now - round(self.limits.unrecorded_s * 1000)
        found = {job_id for job_id, job in self.jobs.items() if job.owed is not None and job.owed <= before}
        for job_id in found:
            self.jobs[job_id].owed = self.now
        return found

    def recorded(self, job_id: str, attempt: int) -> str:
        """The answer to a note that a record is written."""
        job = self.jobs[job_id]
        if job.record_attempt != attempt:
            return "stale"
        job.owed = None
        return "won"

    def _lease(self, job: ModelJob) -> None:
        job.lease_end = self.now + round(self.limits.lease_s * 1000)

    def _sleep(self, job: ModelJob, delay_ms: int) -> None:
        job.state, job.owner, job.gen, job.due = "deferred", None, job.gen + 1, self.now + delay_ms

    def _record(self, job: ModelJob, attempt: int) -> None:
        job.record_attempt, job.owed = attempt, self.now

    def _end(self, job: ModelJob, state: str, reason: str | None) -> None:
        job.state, job.reason, job.owner, job.due, job.asked = state, reason, None, None, False

    def _lost(self, job: ModelJob, state: str) -> None:
        self._record(job, job.attempt)
        self._end(job, state, "worker-lost" if state == "failed" else "operator-cancel")

    def _lose_unspent(self, job: ModelJob) -> None:
        job.lost, job.spent = job.lost + 1, False
        if job.asked or job.answered:
            self._lost(job, "cancelled")
        elif job.lost > self.limits.lost_requeues:
            self._lost(job, "failed")
        else:
            job.state, job.owner, job.gen, job.published = "queued", None, job.gen + 1, self.now

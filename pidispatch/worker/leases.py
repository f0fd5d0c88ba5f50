"""The jobs that this worker holds: their leases renewed, requests to cancel them heard, their progress told."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pidispatch.config.log import log
from pidispatch.jobs.rows import Answer, JobState, Lease
from pidispatch.jobs.store import JobStore
from pidispatch.values.errors import InfraError
from pidispatch.values.reason import AbortReason
from pidispatch.worker.held import Held


class Leases:
    """What is held, by job id. `renew` and `watch` are called again and again by threads of their own."""

    def __init__(self, store: JobStore, worker: str) -> None:
        self._store = store
        self._worker = worker
        self._lock = threading.Lock()
        self._held: dict[str, Held] = {}

    @contextmanager
    def hold(self, lease: Lease) -> Iterator[Held]:
        """Hold the job of `lease` until the block ends."""
        held = Held(lease)
        with self._lock:
            self._held[lease.job_id] = held
        try:
            yield held
        finally:
            with self._lock:
                if self._held.get(lease.job_id) is held:
                    del self._held[lease.job_id]

    def get(self, job_id: str) -> Held | None:
        """The job `job_id`, where it is held here."""
        return self._held.get(job_id)

    def all(self) -> list[Held]:
        """Everything that is held now."""
        with self._lock:
            return list(self._held.values())

    def abort_all(self, reason: AbortReason) -> None:
        """End every job for `reason`."""
        for held in self.all():
            held.abort.set(reason)

    def renew(self) -> None:
        """Renew every lease. A server that does not answer, or that lost its data, takes none away."""
        held = {one.lease.job_id: one for one in self.all()}
        if not held:
            return
        answers = self._store.renew([one.lease for one in held.values()])
        for job_id, answer in answers.items():
            # One that ended meanwhile is no longer ours, and nothing is lost by that.
            if (
                answer is Answer.STALE
                and self.get(job_id) is held[job_id]
                and not self._forgotten(held[job_id].lease)
                and held[job_id].lose()
            ):
                log().error("lease_lost", jobId=job_id)

    def _forgotten(self, lease: Lease) -> bool:
        """Whether nobody else has the job: its server lost all data and was told anew. A run goes on through that.

        This worker itself takes the new ticket now and then, and puts it off.
        """
        row = self._store.row(lease.job_id)
        if row is None or row.state in (JobState.QUEUED, JobState.DEFERRED):
            return row is not None
        owner = row.owner or ""
        return owner != lease.owner and owner.rpartition("#")[0] == lease.owner.rpartition("#")[0]

    def watch(self) -> None:
        """Hear requests to cancel, and tell how far the jobs are."""
        held = {one.lease.job_id: one for one in self.all()}
        if not held:
            return
        for job_id in self._store.cancel_requested(list(held)):
            if held[job_id].cancel():
                self._store.acknowledge_cancel(job_id, self._worker)
                log().info("cancel_acknowledged", jobId=job_id)
        for job_id, one in held.items():
            if (news := one.news()) is not None:
                self._tell(job_id, news.turns, news.tokens)

    def _tell(self, job_id: str, turns: int, tokens: int) -> None:
        try:
            self._store.progress(job_id, turns, tokens)
        except InfraError as error:
            log().debug("progress_untold", jobId=job_id, cause=error.cause)

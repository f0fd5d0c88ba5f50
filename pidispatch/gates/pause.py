"""The gate of quiet hours. It is the first: a job that sleeps until the morning must hold nothing and ask nothing."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from pidispatch.config.log import log
from pidispatch.gates.pause_windows import PauseWindow, paused_until
from pidispatch.values.job import Job
from pidispatch.values.limits import Limits
from pidispatch.values.verdict import Admit, Defer, Verdict, Why

_MS = timedelta(milliseconds=1)


class PauseWindows:
    """Puts a job off to the end of the quiet hours it falls into. `windows` is asked once a job, and may change."""

    def __init__(self, windows: Callable[[], Iterable[PauseWindow]], limits: Limits) -> None:
        self._windows = windows
        self._slack = limits.quiet_slack_ms * _MS

    def check(self, job: Job, now: datetime) -> Verdict:
        """Let the job in, or let it sleep to the latest end of all windows that are active for it."""
        until = self._until(job, now)
        # A job that wakes a moment early would be put off again and again.
        if until is None or (until - now <= self._slack and self._until(job, until) is None):
            return Admit()
        log().info("pause_deferred", jobId=job.id, until=f"{until:%Y-%m-%dT%H:%M:%SZ}")
        # Rounded up: woken before the end it would only sleep again.
        return Defer(why=Why.QUIET_HOURS, delay_ms=-((now - until) // _MS))

    def _until(self, job: Job, at: datetime) -> datetime | None:
        return paused_until(self._windows(), job.kind.value, job.scope, at)

    def release(self, _: Job) -> None:
        """Nothing is held."""

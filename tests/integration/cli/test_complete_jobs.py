"""Ids of jobs that a real server names for a completion."""

from datetime import UTC, datetime

import click
import pytest

from pidispatch.cli.completion import complete_failed_jobs, complete_jobs
from pidispatch.jobs.endings import cancelled_record
from pidispatch.values.outcome import Completed, InfraFailed
from pidispatch.values.reason import Reason
from pidispatch.values.verdict import Why
from tests.integration.cli.bench import Bench

CONTEXT = click.Context(click.Command("x"))
PARAMETER = click.Argument(["job_id"])
INFRA = InfraFailed(reason=Reason.INFRA)


def test_what_has_not_ended_is_offered_to_cancel_and_what_failed_to_retry(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    for name in ("runs", "waits", "held", "done", "failed", "failed-later", "cancelled"):
        bench.submit(name)
    bench.take("runs")
    bench.store.defer(bench.take("held"), 60_000, Why.HOST_BUSY)
    bench.end(bench.take("done"), Completed())
    for name in ("failed", "failed-later"):
        bench.end(bench.take(name), INFRA)
        bench.end(bench.take(name), INFRA)
    row = bench.row("cancelled")
    bench.store.cancel("cancelled", cancelled_record(row.job, row, datetime.now(UTC), "here"))

    def offered(incomplete: str = "") -> list[list[str]]:
        return [
            [item.value for item in complete(CONTEXT, PARAMETER, incomplete)]
            for complete in (complete_jobs, complete_failed_jobs)
        ]

    assert offered() == [["runs", "waits", "held"], ["failed-later", "failed"]]
    assert offered("failed-") == [[], ["failed-later"]]
    monkeypatch.setenv("PI_KEY_PREFIX", "other:")
    assert offered() == [[], []]

"""How often one job that runs asks the server, with every cap there is."""

from pathlib import Path

from pidispatch.config.settings import Settings
from tests.integration.worker.bench import Bench
from tests.support.round_trips import round_trips
from tests.support.server import OwnServer

CAPS = {"PI_WEEKLY_CAP": "100", "PI_MONTHLY_CAP": "100", "PI_SOFT_HOLD_PCT": "90", "PI_DAILY_TOKEN_CAP": "9000"}


def test_a_pickup_asks_five_times_whatever_bounds_it(tmp_path: Path) -> None:
    """It is taken, counted in all windows at once, its tokens are booked, its end is stored, its record is told."""
    with OwnServer("valkey", tmp_path / "server") as server:
        bench = Bench(server, tmp_path, Settings.model_validate(CAPS))
        bench.completes_with_tokens(1000)
        for job_id in ("local-1", "local-2"):
            bench.submit(job_id)
        # The first one finds a server that knows no script yet.
        bench.deliver("local-1", gen=0)
        with round_trips() as asked:
            delivery = bench.deliver("local-2", gen=0)
        bench.close()
    assert delivery.record is not None
    assert delivery.record.outcome == "completed"
    assert sorted((delivery.record.charged or {}).values()) == [1, 1, 1, 1000]
    assert asked.times == 5

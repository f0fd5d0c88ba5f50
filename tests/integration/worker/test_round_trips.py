"""How often one job that runs asks the server, with every cap there is."""

from pathlib import Path

from tests.integration.worker.bench import TOKENS, pickup
from tests.support.server import OwnServer


def test_a_pickup_asks_five_times_whatever_bounds_it(tmp_path: Path) -> None:
    """It is taken, counted in all windows at once, its tokens are booked, its end is stored, its record is told."""
    with OwnServer("valkey", tmp_path / "server") as server:
        record, asked = pickup(server, tmp_path)
    assert record.outcome == "completed"
    assert sorted((record.charged or {}).values()) == [1, 1, 1, TOKENS]
    assert asked == 5

"""A server that was away for long is found again within seconds."""

import kombu
import pytest

from pidispatch.worker.reconnect import Reconnecting


def test_the_pauses_stay_short_and_whoever_asks_for_others_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []
    monkeypatch.setattr(kombu.Connection, "ensure_connection", lambda _, **options: asked.append(options))
    connection = Reconnecting("memory://localhost/")
    connection.ensure_connection()
    connection.ensure_connection(interval_max=9)
    short = {"interval_start": 1, "interval_step": 1, "interval_max": 2}
    assert asked == [short, {**short, "interval_max": 9}]

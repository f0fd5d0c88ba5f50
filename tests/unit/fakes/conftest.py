"""A running server per test, on a free loopback port."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.model import CATALOGUE, RequestLog, Scenario, Server, Slow


@pytest.fixture
def log(tmp_path: Path) -> RequestLog:
    """An empty request log."""
    return RequestLog(tmp_path / "log" / "requests.jsonl")


@pytest.fixture
def server(log: RequestLog) -> Iterator[Server]:
    """The catalogue, and a quick version of the slow scenario."""
    with Server({**CATALOGUE, "brisk": Scenario("brisk", (Slow("0123456789", 0.02, 10),))}, log) as running:
        yield running

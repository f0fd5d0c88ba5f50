"""An environment without any variable of ours, and a log that outlives no test."""

import os
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in os.environ:
        if name.startswith("PI_"):
            monkeypatch.delenv(name)
    yield
    structlog.reset_defaults()

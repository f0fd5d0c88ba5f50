"""An environment without any variable of ours, a home of the tests' own, and a log that outlives no test."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog


@pytest.fixture(scope="session")
def tests_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where an account's defaults lead that a test does not set: records, state, pi's own folder."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tests_home: Path) -> Iterator[None]:
    monkeypatch.setenv("HOME", str(tests_home))
    # What is shown must not hang on the terminal that the tests are called from.
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in os.environ:
        if name.startswith("PI_") or name in ("COLUMNS", "LINES", "NO_COLOR"):
            monkeypatch.delenv(name)
    yield
    structlog.reset_defaults()

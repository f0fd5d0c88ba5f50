"""A GitHub of the test's own."""

from collections.abc import Iterator

import pytest

from tests.fakes.github.server import GitHubServer
from tests.integration.forges.scripted import Scripted


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHubServer]:
    """GitHub, where alice may write and nobody else is known."""
    # It is on this machine, whatever proxy others are reached by.
    monkeypatch.setenv("NO_PROXY", "*")
    with GitHubServer(permissions={("acme/web", "alice"): "write"}) as server:
        yield server


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    """GitHub, which says what the test tells it to."""
    monkeypatch.setenv("NO_PROXY", "*")
    with Scripted() as server:
        yield server

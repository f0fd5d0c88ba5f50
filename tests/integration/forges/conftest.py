"""A GitHub of the test's own."""

from collections.abc import Iterator

import pytest

from tests.fakes.github.server import GitHubServer


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHubServer]:
    """GitHub, where alice may write and nobody else is known."""
    # It is on this machine, whatever proxy others are reached by.
    monkeypatch.setenv("NO_PROXY", "*")
    with GitHubServer(permissions={("acme/web", "alice"): "write"}) as server:
        yield server

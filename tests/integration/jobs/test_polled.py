"""What the poller remembers of repositories."""

from typing import Any

import pytest

from pidispatch.jobs.polled import Part, Remembered
from pidispatch.values.errors import InfraError
from tests.integration.jobs.world import PREFIX, World

REPO = "acme/web"
DAYS_MS = 35 * 86_400_000
NOTHING = Remembered({}, {}, {}, {})


def left(world: World) -> dict[str, int]:
    """How long each key stays, in milliseconds."""
    names = [str(name) for name in world.client.scan_iter(f"{PREFIX}poll:*")]
    return {name.removeprefix(f"{PREFIX}poll:{REPO}:"): int(str(world.client.pttl(name))) for name in names}


def test_what_is_noted_is_known_and_each_repository_has_its_own(world: World) -> None:
    store = world.store
    assert store.polled(REPO) == NOTHING
    store.remember(REPO, Part.EVENTS, "up to here", etag='W/"1"')
    store.remember(REPO, Part.COMMENTS, "up to there")
    store.remember(REPO, Part.PULLS, "{}", etag='W/"2"', pulls={8: "abc", 9: "closed"})
    store.remember(REPO, Part.REVIEWS, "r", etag="not kept", review_etags={8: 'W/"3"'})
    assert store.polled(REPO) == Remembered(
        {Part.EVENTS: "up to here", Part.COMMENTS: "up to there", Part.PULLS: "{}", Part.REVIEWS: "r"},
        {Part.EVENTS: 'W/"1"', Part.PULLS: 'W/"2"'},
        {8: "abc", 9: "closed"},
        {8: 'W/"3"'},
    )
    assert store.polled("acme/shop") == NOTHING
    assert set(left(world)) == {
        "cursor:events",
        "cursor:comments",
        "cursor:prs",
        "cursor:reviews",
        "etag:events",
        "etag:pulls",
        "prs",
        "etag:reviews",
    }


def test_what_is_noted_takes_the_place_of_what_was(world: World) -> None:
    store = world.store
    store.remember(REPO, Part.PULLS, "1", etag="e", pulls={8: "abc"})
    store.remember(REPO, Part.REVIEWS, "1", review_etags={8: "e"})
    store.remember(REPO, Part.PULLS, "2", pulls={9: "def"})
    store.remember(REPO, Part.REVIEWS, None, review_etags={})
    assert store.polled(REPO) == Remembered({Part.PULLS: "2"}, {}, {9: "def"}, {})


def test_all_of_it_ends_together(world: World) -> None:
    store = world.store
    store.remember(REPO, Part.EVENTS, "1", etag="e")
    store.remember(REPO, Part.PULLS, "1", etag="e", pulls={8: "abc"})
    store.remember(REPO, Part.REVIEWS, "1", review_etags={8: "e"})
    for name in world.client.scan_iter(f"{PREFIX}poll:*"):
        world.client.pexpire(name, 1_000_000)
    store.keep_polled(REPO)
    found = left(world)
    assert len(found) == 7
    assert all(DAYS_MS - 60_000 < one <= DAYS_MS for one in found.values())


def test_a_server_that_refuses_is_a_fault_of_the_surroundings(world: World) -> None:
    world.client.set(f"{PREFIX}poll:{REPO}:prs", "no hash")
    with pytest.raises(InfraError, match="refused a command"):
        world.store.polled(REPO)
    ask: Any = world.store
    world.client.config_set("maxmemory", "1")
    try:
        with pytest.raises(InfraError):
            ask.remember(REPO, Part.EVENTS, "1")
    finally:
        world.client.config_set("maxmemory", "0")
